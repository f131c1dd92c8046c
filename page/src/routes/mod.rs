//! The paths of the page, and what each of them answers.

mod commands;
mod logins;
mod looks;

use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Router, middleware};
use domain::{ErrorCode, ServiceError};

use crate::assets;
use crate::door::{self, Visitor};
use crate::render;
use crate::site::Site;

/// Bytes of a form. The longest field is a token or a name.
const FORM_BYTES_MAX: usize = 16 << 10;

pub(crate) fn router(site: Arc<Site>) -> Router {
    Router::new()
        .route("/", get(looks::runs))
        .route("/live", get(looks::runs_live))
        .route("/runs/{run}", get(looks::run))
        .route("/runs/{run}/live", get(looks::run_live))
        .route("/runs/{run}/dialogues", get(looks::dialogues))
        .route("/runs/{run}/dialogue", get(looks::dialogue))
        .route("/runs/{run}/command", post(commands::command))
        .route("/workers", get(looks::workers))
        .route("/workers/live", get(looks::workers_live))
        .route("/workers/drain", post(commands::drain))
        .route("/login", get(logins::form).post(logins::login))
        .route("/logout", post(logins::logout))
        .route("/assets/{name}", get(assets::serve))
        .layer(DefaultBodyLimit::max(FORM_BYTES_MAX))
        .layer(middleware::from_fn_with_state(Arc::clone(&site), door::guard))
        .with_state(site)
}

/// Why there is no page, as a page.
struct Failed(Visitor, ServiceError);

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        let Self(visitor, error) = self;
        (status(error.code), render::failure(&visitor, &error)).into_response()
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
