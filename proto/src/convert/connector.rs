//! How a model is reached.

use domain::Connector;

use super::{ConversionError, enumerated};
use crate::wire;

/// The number of a connector.
pub(super) fn connector_to_wire(connector: Connector) -> i32 {
    match connector {
        Connector::OpenaiCompatible => wire::Connector::OpenaiCompatible,
        Connector::Anthropic => wire::Connector::Anthropic,
        Connector::Gemini => wire::Connector::Gemini,
        Connector::Simulated => wire::Connector::Simulated,
        Connector::Replay => wire::Connector::Replay,
    }
    .into()
}

pub(super) fn connector_from_wire(field: &'static str, number: i32) -> Result<Connector, ConversionError> {
    Ok(match enumerated(field, number)? {
        wire::Connector::Unspecified => return Err(ConversionError::Missing { field }),
        wire::Connector::OpenaiCompatible => Connector::OpenaiCompatible,
        wire::Connector::Anthropic => Connector::Anthropic,
        wire::Connector::Gemini => Connector::Gemini,
        wire::Connector::Simulated => Connector::Simulated,
        wire::Connector::Replay => Connector::Replay,
    })
}
