//! The calls of people and tools over HTTP: each is passed to the coordinator's [`Control`] for the caller that the guard has
//! established, and answered in JSON. The coordinator decides what the caller may do.

mod browsers;
mod exports;
mod handlers;
pub mod openapi;
mod packs;
mod routes;
mod streams;

use std::future::Future;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use domain::caller::Caller;
use domain::control::Control;
use domain::{ErrorCode, ServiceError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::exports::ExportTurns;
use self::packs::SentPacks;
pub(super) use self::routes::routes;
use self::routes::{ApiRoute, Takes};
use super::closing::{Closing, leaving};
use super::guard::{Door, receive};
use super::incoming::Peer;
use crate::api::BASE;
use crate::api::problem::Problem;

/// What the routes of the API share.
#[derive(Clone)]
pub(super) struct Api {
    pub door: Arc<Door>,
    pub closing: Closing,
    pub sent: Arc<SentPacks>,
    pub exports: Arc<ExportTurns>,
}

impl Api {
    pub(super) fn new(door: Arc<Door>, closing: Closing) -> Self {
        Self { door, closing, sent: Arc::default(), exports: Arc::default() }
    }

    /// All routes, each behind the guard.
    pub(super) fn router(self) -> Router {
        let mut router = Router::new();
        for route in routes() {
            let (path, answers) = (format!("{BASE}{}", route.path), (route.handler)());
            let answers = match route.takes {
                Takes::Bytes(limit) => {
                    answers.layer(from_fn_with_state((Arc::clone(&self.door), limit), receive))
                }
                Takes::Pack => answers,
            };
            router = router.route(&path, answers.layer(from_fn_with_state((self.clone(), route), guard)));
        }
        router
            .route("/api/{*rest}", axum::routing::any(no_such_call))
            // The guard has a limit for each route.
            .layer(DefaultBodyLimit::disable())
            .with_state(self)
    }

    /// The coordinator as the caller may use it.
    fn control(&self, caller: &Caller) -> Arc<dyn Control> {
        self.door.services.control(caller)
    }

    /// Waits for the result of a call, or for the end of the server.
    async fn result<T>(
        &self,
        call: impl Future<Output = Result<T, ServiceError>>,
    ) -> Result<T, ServiceError> {
        tokio::select! {
            result = call => result,
            () = self.closing.cut() => Err(leaving()),
        }
    }

    /// The same, answered as JSON.
    async fn json<T: Serialize>(&self, call: impl Future<Output = Result<T, ServiceError>>) -> Response {
        match self.result(call).await.and_then(|value| to_json(&value)) {
            Ok(body) => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
            Err(error) => Problem::from(&error).into_response(),
        }
    }

    /// The same where there is nothing to say.
    async fn done(&self, call: impl Future<Output = Result<(), ServiceError>>) -> Response {
        match self.result(call).await {
            Ok(()) => StatusCode::NO_CONTENT.into_response(),
            Err(error) => Problem::from(&error).into_response(),
        }
    }
}

/// Lets the callers of a route in.
async fn guard(State((api, route)): State<(Api, ApiRoute)>, mut request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<Peer>().cloned();
    let admitted = match browsers::refusal(&api.door.identities, peer.as_ref(), request.headers()) {
        Some(refusal) => Err(refusal),
        None => api.door.admit(request.headers(), peer.as_ref(), route.roles, route.operation),
    };
    match admitted {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(refusal) => api.door.refuse(&refusal, peer.as_ref(), route.operation),
    }
}

async fn no_such_call(request: Request) -> Response {
    let message = format!("there is no call {} {}", request.method(), request.uri().path());
    Problem::from(&ServiceError::new(ErrorCode::NotFound, message)).into_response()
}

fn to_json<T: Serialize>(value: &T) -> Result<Vec<u8>, ServiceError> {
    serde_json::to_vec(value).map_err(|error| ServiceError::new(ErrorCode::Internal, error.to_string()))
}

/// The body of a request; an empty one is that of a body without fields.
fn from_json<T: DeserializeOwned>(body: &Bytes) -> Result<T, ServiceError> {
    let text: &[u8] = if body.is_empty() { b"{}" } else { body };
    serde_json::from_slice(text).map_err(|error| {
        ServiceError::new(
            ErrorCode::Invalid,
            format!("the body of the request is not what this call takes: {error}"),
        )
    })
}
