//! What tests of several crates share, a module for each part. A part with a feature of its own needs other crates of this
//! workspace or libraries; who uses it names the feature, so that a crate that only skips builds little.
//!
//! | part | what it is | feature |
//! |---|---|---|
//! | [`skip`] | how a test skips: aloud | |
//! | [`published`] | where published dialogues are | |
//! | [`timing`] | what a piece of work takes, for benchmarks | |
//! | [`ports`], [`waiting`] | a free port; a wait for what gives no event | |
//! | [`http`] | reads a page | |
//! | [`receiver`] | a server that stores every request | |
//! | [`proxy`] | a line between two processes that can be cut | |
//! | [`terminal`] | a pseudo-terminal with a screen to read | `terminal` |
//! | [`browser`] | a headless Chromium that is told what to do, and the accessibility checker | `browser` |
//! | [`redis`], [`sentinel`] | real servers, and stores of the queue on them | `redis` |
//! | [`canned_server`] | a server that gives the answers set by the test, to the byte | `canned-server` |
//! | [`quirks`] | what real servers answer where their lists of models are asked for, a row each | `canned-server` |
//! | [`listing_server`] | a server with one of the lists of models of that table | `canned-server` |
//! | [`kubernetes_api`] | a stand-in for the API of Kubernetes, whose controllers the test plays | `kubernetes-api` |
//! | [`sim_server`] | a simulated vLLM whose answers the test holds back | `sim-server` |
//! | [`invented_graph`] | a knowledge graph to draw questions from, of a seed | `invented-graph` |
//! | [`wikidata_graph`] | a knowledge graph in Wikidata's shape, of any size | `invented-graph` |
//! | [`sparql_endpoint`] | a SPARQL endpoint that can refuse requests | `sparql-endpoint` |
//! | [`gated_model`] | a model in the process whose answers the test holds back | `gated-model` |
//! | [`played_worker`] | a worker that makes its records by hand | `played-worker` |
//! | [`failing_coordinator`] | a coordinator with a queue, whose failures are switched on and off | `failing-coordinator` |
//! | [`scripted_coordinator`] | a coordinator that remembers calls and answers what the test says, and a server that can die | `scripted-coordinator` |
//!
//! Some parts lie with the tests of one crate, because only these can use them: a cluster of processes in
//! `cli/tests/it/harness` (cargo tells only them where the binary is), a coordinator whose rounds and clock the test owns in
//! `coordinator/src/tests/ground.rs` (it reaches inside), a page and its visitors in `page/tests/it/world.rs`.

#![allow(clippy::unwrap_used, reason = "a harness of tests fails by panicking")]

#[cfg(feature = "browser")]
pub mod browser;
#[cfg(feature = "canned-server")]
pub mod canned_server;
#[cfg(feature = "failing-coordinator")]
pub mod failing_coordinator;
#[cfg(feature = "gated-model")]
pub mod gated_model;
pub mod http;
#[cfg(feature = "invented-graph")]
pub mod invented_graph;
#[cfg(feature = "kubernetes-api")]
pub mod kubernetes_api;
#[cfg(feature = "canned-server")]
pub mod listing_server;
#[cfg(feature = "played-worker")]
pub mod played_worker;
pub mod ports;
pub mod proxy;
pub mod published;
#[cfg(feature = "canned-server")]
pub mod quirks;
pub mod receiver;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(feature = "scripted-coordinator")]
pub mod scripted_coordinator;
#[cfg(feature = "redis")]
pub mod sentinel;
#[cfg(feature = "sim-server")]
pub mod sim_server;
pub mod skip;
#[cfg(feature = "sparql-endpoint")]
pub mod sparql_endpoint;
#[cfg(feature = "terminal")]
pub mod terminal;
pub mod timing;
pub mod waiting;
#[cfg(feature = "invented-graph")]
pub mod wikidata_graph;

pub use ports::free_port;
pub use published::Conformance;
#[cfg(feature = "redis")]
pub use redis::RedisServer;
#[cfg(feature = "redis")]
pub use sentinel::SentinelServer;
pub use skip::{skip, skip_where_nothing_helps};
pub use waiting::wait_until;
