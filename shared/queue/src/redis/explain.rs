//! Converts errors of Redis to errors of the queue.

use ::redis::{ErrorKind, RedisError, ServerErrorKind};

use super::link::Refused;
use crate::error::Error;

/// An unexpected answer.
pub(super) fn corrupt(what: &str) -> Error {
    Error::Corrupt { message: format!("unexpected answer of Redis: {what}") }
}

/// Converts one error.
pub(super) fn explain(refused: Refused) -> Error {
    let error = match refused {
        Refused::Queue(error) => return error,
        Refused::Redis(error) => error,
    };
    match error.code() {
        Some("OOM") => {
            let message =
                "Redis has reached its `maxmemory`: raise it, or remove runs that are over (`kgfleet rm`)"
                    .into();
            Error::Unwritable { message }
        }
        Some("READONLY" | "MISCONF" | "NOREPLICAS") => Error::Unwritable { message: error.to_string() },
        Some("NOAUTH" | "WRONGPASS" | "NOPERM") => unfit(&error),
        Some("WRONGTYPE") => {
            Error::Corrupt { message: format!("a key of the queue was overwritten: {error}") }
        }
        _ => match error.kind() {
            ErrorKind::AuthenticationFailed | ErrorKind::InvalidClientConfig => unfit(&error),
            ErrorKind::Server(ServerErrorKind::ResponseError | ServerErrorKind::CrossSlot)
            | ErrorKind::UnexpectedReturnType => corrupt(&error.to_string()),
            // Loading, failing over, resharding, network: all are temporary.
            _ => Error::Unavailable { message: error.to_string() },
        },
    }
}

fn unfit(error: &RedisError) -> Error {
    Error::Unfit { message: format!("Redis refused the login or a command: {error}") }
}
