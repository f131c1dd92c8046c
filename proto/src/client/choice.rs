//! The calls of a worker, each to the coordinator in use.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use domain::{ErrorCode, ServiceError};
use tonic::Code;
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tonic::transport::{Channel, Endpoint, Error};
use tower::Service;

use super::connect::{ClientConfig, endpoints, invalid};
use super::coordinators::{Coordinators, InUse};
use crate::server::AUTHORIZATION;
use crate::status::to_status;

/// A channel to each of several coordinators, of which one is in use. Clones share the choice.
#[derive(Clone)]
pub(super) struct Choice(Arc<Coordinators<Vec<Channel>>>);

impl Choice {
    /// A choice among the coordinators of a configuration. Each is connected to when it is first used.
    pub(super) fn of(config: &ClientConfig) -> Result<Self, ServiceError> {
        endpoints(config)?;
        if tokio::runtime::Handle::try_current().is_err() {
            let addresses = config.addresses.join(", ");
            return Err(invalid(format!("a client of {addresses} can be made inside a Tokio runtime only")));
        }
        let channels = |config: &ClientConfig| {
            Ok(endpoints(config)?.iter().map(Endpoint::connect_lazy).collect::<Vec<Channel>>())
        };
        Ok(Self(Arc::new(Coordinators::new(config, channels)?)))
    }
}

impl Service<Request<Body>> for Choice {
    type Response = Response<Body>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        // The channel is chosen at the call, and waits for its readiness there.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let coordinators = Arc::clone(&self.0);
        let InUse { lines, authorization, turn, credentials, has_certificates } = coordinators.in_use();
        if let Some(authorization) = authorization {
            request.headers_mut().insert(AUTHORIZATION, authorization);
        }
        let mut channel = lines[turn % lines.len()].clone();
        Box::pin(async move {
            let outcome = async {
                std::future::poll_fn(|context| channel.poll_ready(context)).await?;
                channel.call(request).await
            };
            let outcome = outcome.await;
            let is_unknown = |response: &Response<Body>| is_refused(response, Code::Unauthenticated);
            if outcome.as_ref().map_or(has_certificates, is_unknown) && coordinators.renew(credentials).await
            {
                return Ok(try_again());
            }
            if outcome.as_ref().map_or(true, |response| is_refused(response, Code::Unavailable)) {
                coordinators.leave(turn);
            }
            outcome
        })
    }
}

/// Whether a coordinator refuses a call with this code: because it does not know who calls, or cannot serve at all.
fn is_refused(response: &Response<Body>, code: Code) -> bool {
    let status = response.headers().get("grpc-status");
    status.is_some_and(|status| Code::from_bytes(status.as_bytes()) == code)
}

/// What a call is answered with that was made with credentials that have been replaced meanwhile.
fn try_again() -> Response<Body> {
    let message = "the credentials were refused, and have been replaced in their files meanwhile: try again";
    to_status(ServiceError::new(ErrorCode::Unavailable, message)).into_http()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(config: &ClientConfig) -> String {
        let error = Choice::of(config).err().unwrap();
        assert_eq!(error.code, ErrorCode::Invalid);
        error.message
    }

    #[tokio::test]
    async fn configurations_that_cannot_work_are_refused_with_a_reason() {
        assert!(refusal(&ClientConfig::new("not an address")).contains("`not an address` is not an address"));
        assert!(refusal(&ClientConfig::new("coordinator:7700")).contains("neither http"));
        let token = |address: &str| ClientConfig { token: Some("t".into()), ..ClientConfig::new(address) };
        assert!(refusal(&token("http://coordinator:1")).contains("without TLS"));
        let is_taken = |config: &ClientConfig| Choice::of(config).is_ok();
        assert!(is_taken(&token("http://127.0.0.1:1")) && is_taken(&token("http://[::1]:1")));
        assert!(is_taken(&ClientConfig { insecure: true, ..token("http://coordinator:1") }));
        let ca = Some(b"no PEM".to_vec());
        let mixed = ClientConfig { ca: ca.clone(), ..ClientConfig::new("http://a:1") };
        assert!(refusal(&mixed).contains("not an https address"));
        assert!(is_taken(&ClientConfig::new("http://a:1")));
    }

    #[test]
    fn without_a_runtime_there_is_an_error_and_no_panic() {
        assert!(refusal(&ClientConfig::new("http://a:1")).contains("Tokio runtime"));
    }
}
