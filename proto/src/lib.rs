//! The wire between the parts of a cluster: the only crate that knows gRPC.
//!
//! The messages are in `proto/kgfleet/v1/`. [`Client`] is a coordinator on the other side of a network, and
//! [`server::serve`] puts a coordinator on a socket; both speak [`domain::exchange::WorkExchange`] and
//! [`domain::control::Control`], so that nobody else can tell a coordinator in the same process from a distant one.
//!
//! Reading order: the `.proto` files, [`limits`], [`convert`] (what the wire says in the words of `domain`), `status`
//! (errors), [`version`] (the handshake), [`client`], [`server`].

pub mod client;
pub mod convert;
pub mod limits;
mod pack;
pub mod server;
mod status;
pub mod version;

pub use client::{Client, ClientConfig};
pub use convert::ConversionError;
pub use version::WIRE_VERSION;

/// What prost and tonic make of the `.proto` files.
mod wire {
    #![allow(dead_code, unused_qualifications, clippy::all, reason = "generated, not written")]
    #![allow(clippy::semicolon_if_nothing_returned, reason = "generated, not written")]

    tonic::include_proto!("kgfleet.v1");

    /// The `.proto` files as the reflection service tells them.
    pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/kgfleet.v1.bin"));
}

#[cfg(test)]
mod frozen;
#[cfg(test)]
mod properties;
