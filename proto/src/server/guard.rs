//! The guard in front of every call: authentication, authorisation and resource limits.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use domain::caller::Caller;
use domain::{ErrorCode, ServiceError};
use http_body::{Frame, SizeHint};
use tokio::time::Instant;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Bytes, Service, http};
use tonic::{Request, Status};

use super::access::{CallRoles, Sends, needed, words};
use super::budget::{Budgeted, Received};
use super::identity::{AUTHORIZATION, BEARER, Identities};
use super::incoming::Peer;
use super::line::OpenCall;
use super::{RefusedCall, Serve};
use crate::status::to_status;

/// Numbers calls.
static NEXT: AtomicU64 = AtomicU64::new(0);

#[derive(Clone)]
pub(super) struct Guard<S> {
    inner: S,
    services: Arc<dyn Serve>,
    identities: Identities,
    received: Received,
}

impl<S> Guard<S> {
    pub(super) fn new(
        inner: S,
        services: Arc<dyn Serve>,
        identities: Identities,
        received: Received,
    ) -> Self {
        Self { inner, services, identities, received }
    }
}

/// The caller of a request, as established by the guard.
pub(super) fn caller<T>(request: &Request<T>) -> Result<Caller, Status> {
    let nobody = || to_status(ServiceError::new(ErrorCode::Denied, "the caller is unknown"));
    request.extensions().get::<Caller>().cloned().ok_or_else(nobody)
}

fn denied(code: tonic::Code, message: String) -> Status {
    let status = to_status(ServiceError::new(ErrorCode::Denied, message));
    Status::with_metadata(code, status.message(), status.metadata().clone())
}

impl<S> Guard<S> {
    /// What the call may send, and the caller, if allowed; `None` if the call is open to everybody.
    fn admit(
        &self,
        request: &http::Request<Body>,
        peer: Option<&Peer>,
    ) -> Result<(Sends, Option<Caller>), Refused> {
        let path = request.uri().path();
        let (access, sends) = needed(path).ok_or_else(|| Refused {
            status: Status::unimplemented(format!("there is no call {path}")),
            who: None,
        })?;
        let CallRoles::Of(roles) = access else { return Ok((sends, None)) };
        let header = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = header.map(|header| header.strip_prefix(BEARER).unwrap_or_default());
        let caller = self.identities.who(token).map_err(|why| {
            let message = format!("this coordinator requires authentication: {why}");
            Refused { status: denied(tonic::Code::Unauthenticated, message), who: None }
        })?;
        if !roles.iter().any(|role| caller.has(*role)) {
            let (name, call) = (caller.name(), last_part(path));
            let message = format!("`{name}` may not call {call}: it needs the role {}", words(roles));
            let status = denied(tonic::Code::PermissionDenied, message);
            return Err(Refused { status, who: Some(caller) });
        }
        let caller = match peer {
            Some(peer) => caller.at(peer.address.ip()),
            None => caller,
        };
        Ok((sends, Some(caller)))
    }
}

/// A call that is not let in.
struct Refused {
    status: Status,
    who: Option<Caller>,
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

impl<S> Service<http::Request<Body>> for Guard<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: http::Request<Body>) -> Self::Future {
        let peer = request.extensions().get::<Peer>().cloned();
        let (sends, caller) = match self.admit(&request, peer.as_ref()) {
            Ok(admitted) => admitted,
            Err(Refused { status, who }) => {
                self.services.refused(&RefusedCall {
                    who: who.as_ref().map(Caller::name),
                    from: peer.map(|peer| peer.address.ip().to_canonical()),
                    // What a stranger makes up is not repeated.
                    call: needed(request.uri().path()).map_or("", |_| last_part(request.uri().path())),
                    why: status.message(),
                });
                return Box::pin(async move { Ok(status.into_http()) });
            }
        };
        let mut call = None;
        if let Some(Peer { line, .. }) = &peer {
            let (room, received) = (line.room.clone(), &self.received);
            request = request.map(|body| Body::new(Budgeted::new(body, sends, room, received)));
            // A stranger's calls do not make the connection a known one.
            call = caller.is_some().then(|| line.begin(NEXT.fetch_add(1, Ordering::Relaxed)));
        }
        if let Some(caller) = caller {
            self.services.heard(&caller);
            request.extensions_mut().insert(caller);
        }
        let answer = self.inner.call(request);
        Box::pin(async move { answer.await.map(|answer| answer.map(|body| Body::new(Held { body, call }))) })
    }
}

/// An answer whose call counts as in progress until all of it is sent.
struct Held {
    body: Body,
    call: Option<OpenCall>,
}

impl http_body::Body for Held {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if let Some(call) = &self.call {
            call.asked_for_more();
        }
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if let (Some(call), Poll::Ready(Some(_))) = (&self.call, &frame) {
            call.handed_out(Instant::now());
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
