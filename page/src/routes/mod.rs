//! The paths of the page and their handlers.

mod benchmarks;
mod commands;
mod dialogues;
mod exports;
mod logins;
mod workers;

use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router, middleware};
use domain::{ErrorCode, ServiceError};
use serde::Deserialize;

use crate::render::{frame, runbooks};
use crate::site::Site;
use crate::visitor::Visitor;
use crate::{admission, assets};

/// Bytes of a form. The longest field is a token or a name.
const FORM_BYTES_MAX: usize = 16 << 10;

pub(crate) fn router(site: Arc<Site>) -> Router {
    Router::new()
        .route("/", get(benchmarks::list))
        .route("/live", get(benchmarks::list_live))
        .route("/runs/{run}", get(benchmarks::benchmark))
        .route("/runs/{run}/live", get(benchmarks::benchmark_live))
        .route("/runs/{run}/scores.csv", get(exports::scores))
        .route("/runs/{run}/records.jsonl", get(exports::records))
        .route("/runs/{run}/dialogues", get(dialogues::list))
        .route("/runs/{run}/dialogue", get(dialogues::dialogue))
        .route("/runs/{run}/command", post(commands::command))
        .route("/workers", get(workers::list))
        .route("/workers/live", get(workers::list_live))
        .route("/workers/drain", post(commands::drain))
        .route("/login", get(logins::form).post(logins::login))
        .route("/logout", post(logins::logout))
        .route("/runbooks", get(|| async { runbooks::page() }))
        .route("/assets/{name}", get(assets::serve))
        .layer(DefaultBodyLimit::max(FORM_BYTES_MAX))
        .layer(middleware::from_fn_with_state(Arc::clone(&site), admission::guard))
        .with_state(site)
}

/// What every handler of a page takes: the site and the visitor.
type Visit = (State<Arc<Site>>, Extension<Visitor>);

/// The name of the notice about the command that was just carried out, as the redirect after a form has it.
#[derive(Deserialize)]
struct Done {
    #[serde(default)]
    done: String,
}

/// An error, shown as a page.
struct Failed(Visitor, ServiceError);

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        let Self(visitor, error) = self;
        (status(error.code), frame::failure(&visitor, &error)).into_response()
    }
}

fn status(code: ErrorCode) -> StatusCode {
    match code {
        ErrorCode::NotFound => StatusCode::NOT_FOUND,
        ErrorCode::Invalid => StatusCode::BAD_REQUEST,
        ErrorCode::Denied => StatusCode::FORBIDDEN,
        ErrorCode::Conflict => StatusCode::CONFLICT,
        ErrorCode::Full => StatusCode::TOO_MANY_REQUESTS,
        code if code.is_transient() => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// The fields of a form, the first of each name.
struct Fields(Vec<(String, String)>);

impl Fields {
    fn of(body: &str) -> Self {
        Self(url::form_urlencoded::parse(body.as_bytes()).into_owned().collect())
    }

    fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }
}
