//! What a caller shows of itself, and whether it has been replaced.

use std::time::Duration;

use domain::{ErrorCode, ServiceError};
use tokio::time::Instant;
use tonic::Code;
use tonic::body::Body;
use tonic::codegen::http::{HeaderValue, Response};

use super::connect::ClientConfig;
use crate::server::BEARER;
use crate::status::to_status;

/// Time between two readings of files, however many calls are refused.
const REREAD_EVERY: Duration = Duration::from_millis(500);

/// The credentials in use. They are numbered, so that calls that fail together read files once.
pub(super) struct Credentials {
    pub(super) config: ClientConfig,
    pub(super) authorization: Option<HeaderValue>,
    pub(super) number: u64,
    read_at: Option<Instant>,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").field("config", &self.config).field("number", &self.number).finish()
    }
}

impl Credentials {
    pub(super) fn new(config: ClientConfig, authorization: Option<HeaderValue>) -> Self {
        Self { config, authorization, number: 0, read_at: None }
    }

    /// Whether files may be read now; notes that they are.
    pub(super) fn may_read(&mut self, now: Instant) -> bool {
        let is_soon = self.read_at.is_some_and(|read| now.saturating_duration_since(read) < REREAD_EVERY);
        if self.config.reread.is_none() || is_soon {
            return false;
        }
        self.read_at = Some(now);
        true
    }

    /// The credentials that were read again, if they differ from these.
    pub(super) fn differing(&self, read: ClientConfig) -> Result<Option<Self>, ServiceError> {
        let (old, reread) = (&self.config, self.config.reread.clone());
        if (&old.ca, &old.token) == (&read.ca, &read.token) {
            return Ok(None);
        }
        let config = ClientConfig { addresses: old.addresses.clone(), reread, ..read };
        let authorization = authorization(&config)?;
        let (number, read_at) = (self.number + 1, self.read_at);
        Ok(Some(Self { config, authorization, number, read_at }))
    }
}

/// The authorization header of a configuration.
pub(super) fn authorization(config: &ClientConfig) -> Result<Option<HeaderValue>, ServiceError> {
    let Some(token) = &config.token else { return Ok(None) };
    let value = HeaderValue::try_from(format!("{BEARER}{token}"));
    let mut value = value.map_err(|_| {
        // Without the token, because it may be almost right.
        ServiceError::new(ErrorCode::Invalid, "the token has characters that a header cannot carry")
    })?;
    value.set_sensitive(true);
    Ok(Some(value))
}

/// Whether the coordinator does not know who calls.
pub(super) fn is_unknown(response: &Response<Body>) -> bool {
    let status = response.headers().get("grpc-status");
    status.is_some_and(|status| Code::from_bytes(status.as_bytes()) == Code::Unauthenticated)
}

/// What a call is answered with that was made with credentials that have been replaced meanwhile.
pub(super) fn try_again() -> Response<Body> {
    let message = "the credentials were refused, and have been replaced in their files meanwhile: try again";
    to_status(ServiceError::new(ErrorCode::Unavailable, message)).into_http()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn files_are_read_at_most_twice_a_second_and_only_what_differs_counts() {
        let with = |token: &str| ClientConfig {
            token: Some(token.to_owned()),
            reread: Some(Arc::new(|| Err("not asked".to_owned()))),
            ..ClientConfig::new("http://127.0.0.1:1")
        };
        let mut credentials = Credentials::new(with("old"), None);
        let now = Instant::now();
        assert!(credentials.may_read(now) && !credentials.may_read(now));
        assert!(!credentials.may_read(now + REREAD_EVERY / 2) && credentials.may_read(now + REREAD_EVERY));
        assert!(credentials.differing(with("old")).unwrap().is_none());
        let renewed = credentials.differing(with("new")).unwrap().unwrap();
        assert_eq!((renewed.number, renewed.authorization.unwrap().as_bytes()), (1, &b"Bearer new"[..]));
        assert!(credentials.differing(with("line\nbreak")).is_err());
        let without = ClientConfig { reread: None, ..with("old") };
        assert!(!Credentials::new(without, None).may_read(now));
    }
}
