//! A client of coordinators: implements the interfaces of `domain` over gRPC.

mod api;
mod choice;
mod connect;
mod coordinators;
mod records;
mod work;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use domain::{ErrorCode, ServiceError};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::{Request, Response, Status, Streaming};

pub use self::api::ApiClient;
use self::choice::Choice;
pub use self::connect::{ClientConfig, Reread};
use crate::status::from_status;
use crate::version;
use crate::wire::work_service_client::WorkServiceClient;

/// A choice of channels that adds the caller's credentials, and the wire version, to every call.
type Wire = InterceptedService<Choice, Introduction>;

/// The metadata of every call.
#[derive(Clone, Copy, Debug)]
struct Introduction;

impl Interceptor for Introduction {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        version::announce_in_request(request)
    }
}

/// A coordinator on the other side of a network, for a worker: a [`WorkExchange`](domain::exchange::WorkExchange).
///
/// It has one connection, made at the first call and again after a failure, then to another coordinator where there are
/// several; it does not retry calls. The connection's driver belongs to the runtime that made the client: use a client
/// on one runtime only.
#[derive(Clone)]
pub struct Client {
    line: Line,
    work: WorkServiceClient<Wire>,
}

impl Client {
    /// A client that connects when it is first used.
    ///
    /// # Errors
    /// [`ErrorCode::Invalid`]: the address or the certificates are invalid, or there is no Tokio runtime.
    pub fn connect_lazy(config: &ClientConfig) -> Result<Self, ServiceError> {
        let choice = Choice::of(config)?;
        let wire = InterceptedService::new(choice, Introduction);
        let line = Line { peer: format!("the coordinator at {}", config.addresses.join(" or ")).into() };
        let limit = crate::limits::MESSAGE_BYTES;
        let work =
            WorkServiceClient::new(wire).max_decoding_message_size(limit).max_encoding_message_size(limit);
        Ok(Self { line, work })
    }
}

/// Shared by all calls: the peer, and the interpretation of its answers.
#[derive(Clone, Debug)]
struct Line {
    /// The peer, as named in errors.
    peer: Arc<str>,
}

impl Line {
    /// A request that the server drops after its deadline.
    fn request<T>(&self, deadline: Duration, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.set_timeout(deadline);
        request
    }

    /// Waits for the answer of one call; the deadline covers all of it.
    async fn answer<T>(
        &self,
        deadline: Duration,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, ServiceError> {
        match tokio::time::timeout(deadline, call).await {
            Err(_) => Err(self.silent(deadline)),
            Ok(Err(status)) => Err(self.error(&status)),
            Ok(Ok(response)) => {
                version::check_answer(response.metadata(), &self.peer)?;
                Ok(response.into_inner())
            }
        }
    }

    /// The next message of a stream; `None` at its end.
    async fn next<W>(
        &self,
        patience: Duration,
        messages: &mut Streaming<W>,
    ) -> Result<Option<W>, ServiceError> {
        match tokio::time::timeout(patience, messages.message()).await {
            Err(_) => Err(self.silent(patience)),
            Ok(Err(status)) => Err(self.error(&status)),
            Ok(Ok(message)) => Ok(message),
        }
    }

    fn error(&self, status: &Status) -> ServiceError {
        from_status(status, &self.peer)
    }

    fn silent(&self, waited: Duration) -> ServiceError {
        let message = format!("no answer from {} within {} s", self.peer, waited.as_secs_f64());
        ServiceError::new(ErrorCode::Unavailable, message)
    }
}
