//! The guard in front of every call: who calls, whether they may, and what they may send.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use domain::caller::{Caller, CallerRole};
use domain::{ErrorCode, ServiceError};
use http_body::{Frame, SizeHint};
use service_kit::telemetry::refused;
use tokio::time::Instant;
use tonic::Status;

use super::Serve;
use super::access::{READ, RECORDS, needed, words};
use super::budget::Received;
use super::identity::{AUTHORIZATION, BEARER, Identities};
use super::incoming::Peer;
use super::line::OpenCall;
use crate::api::problem::Problem;
use crate::status::to_status;

/// Numbers calls.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The name of what is for readers beside the calls, in the log.
const METRICS: &str = "metrics";

/// What the calls of a server share.
pub(super) struct Door {
    pub services: Arc<dyn Serve>,
    pub identities: Identities,
    pub received: Received,
}

/// A call that is not let in.
pub(super) struct Refusal {
    pub error: ServiceError,
    /// None if the caller is unknown.
    pub who: Option<Caller>,
}

impl Refusal {
    fn log(&self, peer: Option<&Peer>, call: &str) {
        let who = self.who.as_ref().map(Caller::name).unwrap_or_default();
        let from = peer.map(|peer| peer.address.ip().to_canonical().to_string()).unwrap_or_default();
        refused(who, &from, &format!("{call}: {}", self.error.message));
    }
}

impl Door {
    /// The caller of a request, who has one of these roles.
    pub(super) fn admit(
        &self,
        headers: &HeaderMap,
        peer: Option<&Peer>,
        roles: &[CallerRole],
        call: &str,
    ) -> Result<Caller, Refusal> {
        let denied = |message| ServiceError::new(ErrorCode::Denied, message);
        let header = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = header.map(|header| header.strip_prefix(BEARER).unwrap_or_default());
        let caller = self.identities.who(token).map_err(|why| Refusal {
            error: denied(format!("this coordinator requires authentication: {why}")),
            who: None,
        })?;
        if !roles.iter().any(|role| caller.has(*role)) {
            let message =
                format!("`{}` may not call {call}: it needs the role {}", caller.name(), words(roles));
            return Err(Refusal { error: denied(message), who: Some(caller) });
        }
        let caller = match peer {
            Some(peer) => {
                peer.let_in();
                caller.at(peer.address.ip())
            }
            None => caller,
        };
        tracing::debug!(
            who = caller.name(),
            from = caller.from().map(tracing::field::display),
            call,
            "called"
        );
        Ok(caller)
    }

    /// Logs a call over HTTP that is not let in, and answers it.
    pub(super) fn refuse(&self, refusal: &Refusal, peer: Option<&Peer>, call: &str) -> Response {
        refusal.log(peer, call);
        // Where nobody has to say who calls, a token would change nothing.
        if refusal.who.is_some() || self.identities.is_anyone() {
            Problem::from(&refusal.error).into_response()
        } else {
            Problem::unauthenticated(&refusal.error)
        }
    }
}

/// Lets calls of gRPC in.
pub(super) async fn guard_grpc(State(door): State<Arc<Door>>, mut request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let Some((roles, bytes)) = needed(path) else {
        return Status::unimplemented(format!("there is no call {path}")).into_http::<Body>();
    };
    let call = path.rsplit('/').next().unwrap_or(path);
    let peer = request.extensions().get::<Peer>().cloned();
    let caller = match door.admit(request.headers(), peer.as_ref(), roles, call) {
        Ok(caller) => caller,
        Err(refusal) => {
            refusal.log(peer.as_ref(), call);
            let code = match refusal.who {
                None => tonic::Code::Unauthenticated,
                Some(_) => tonic::Code::PermissionDenied,
            };
            let status = to_status(refusal.error);
            return Status::with_metadata(code, status.message(), status.metadata().clone()).into_http();
        }
    };
    let is_stored = path == RECORDS;
    request.extensions_mut().insert(caller);
    let (parts, body) = request.into_parts();
    match door.received.message(body, bytes, peer.map(|peer| Arc::clone(&peer.line.room))).await {
        Ok((body, room)) => {
            // A long poll would keep it for minutes.
            let _kept = room.filter(|_| is_stored);
            next.run(Request::from_parts(parts, body)).await
        }
        Err(problem) => to_status(problem.into()).into_http(),
    }
}

/// Lets in who may read.
pub(super) async fn guard_readers(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<Peer>().cloned();
    match door.admit(request.headers(), peer.as_ref(), READ, METRICS) {
        Ok(_) => next.run(request).await,
        Err(refusal) => door.refuse(&refusal, peer.as_ref(), METRICS),
    }
}

/// The caller of a gRPC call, as established by the guard.
pub(super) fn caller<T>(request: &tonic::Request<T>) -> Result<Caller, Status> {
    let nobody = || to_status(ServiceError::new(ErrorCode::Denied, "the caller is unknown"));
    request.extensions().get::<Caller>().cloned().ok_or_else(nobody)
}

/// Counts a request as a call of its connection until all of its answer is sent.
pub(super) async fn count(request: Request, next: Next) -> Response {
    let line = request.extensions().get::<Peer>().map(|peer| Arc::clone(&peer.line));
    let call = line.map(|line| line.begin(NEXT.fetch_add(1, Ordering::Relaxed)));
    let answer = next.run(request).await;
    match call {
        Some(call) => answer.map(|body| Body::new(Counted { body, call })),
        None => answer,
    }
}

/// Lets requests through that bring at most so many bytes, which are received before anything is done.
pub(super) async fn receive(
    State((door, limit)): State<(Arc<Door>, usize)>,
    request: Request,
    next: Next,
) -> Response {
    let room = request.extensions().get::<Peer>().map(|peer| Arc::clone(&peer.line.room));
    let (parts, body) = request.into_parts();
    match door.received.whole(body, limit, room).await {
        Ok(bytes) => next.run(Request::from_parts(parts, Body::from(bytes))).await,
        Err(problem) => problem.into_response(),
    }
}

/// An answer whose call counts as in progress until all of it is sent.
struct Counted {
    body: Body,
    call: OpenCall,
}

impl http_body::Body for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.call.asked_for_more();
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(_)) = &frame {
            self.call.handed_out(Instant::now());
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
