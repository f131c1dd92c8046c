//! The paths of the page and their handlers.

mod commands;
mod exports;
mod logins;
mod pages;

use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use axum::{Extension, Router, middleware};
use domain::{ErrorCode, ServiceError};
use serde::Deserialize;

use crate::admission::Visitor;
use crate::render::frame;
use crate::site::Site;
use crate::{admission, assets};

/// Bytes of a form. The longest field is a token or a name.
const FORM_BYTES_MAX: usize = 16 << 10;

/// A path with the methods that it takes, and what answers them.
type Route = (&'static str, &'static [&'static str], MethodRouter<Arc<Site>>);

/// All paths. The suite of adversaries has a row for each of them.
fn table() -> [Route; 15] {
    const GET: &[&str] = &["GET"];
    const POST: &[&str] = &["POST"];
    [
        ("/", GET, get(pages::list)),
        ("/live", GET, get(pages::list_live)),
        ("/runs/{run}", GET, get(pages::benchmark)),
        ("/runs/{run}/live", GET, get(pages::benchmark_live)),
        ("/runs/{run}/scores.csv", GET, get(exports::scores)),
        ("/runs/{run}/records.jsonl", GET, get(exports::records)),
        ("/runs/{run}/dialogues", GET, get(pages::dialogues)),
        ("/runs/{run}/dialogue", GET, get(pages::dialogue)),
        ("/runs/{run}/command", POST, post(commands::command)),
        ("/workers", GET, get(pages::workers)),
        ("/workers/live", GET, get(pages::workers_live)),
        ("/workers/drain", POST, post(commands::drain)),
        ("/login", &["GET", "POST"], get(logins::form).post(logins::login)),
        ("/logout", POST, post(logins::logout)),
        ("/assets/{name}", GET, get(assets::serve)),
    ]
}

/// Every path with a method that it takes.
pub(crate) fn routes() -> Vec<(&'static str, &'static str)> {
    let of_path = |(path, methods, _): Route| methods.iter().map(move |method| (path, *method));
    table().into_iter().flat_map(of_path).collect()
}

pub(crate) fn router(site: Arc<Site>) -> Router {
    let router = Router::new();
    let router = table().into_iter().fold(router, |router, (path, _, answers)| router.route(path, answers));
    router
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

/// A page, or the error in its place.
fn answer(visitor: &Visitor, page: Result<impl IntoResponse, ServiceError>) -> Response {
    match page {
        Ok(page) => page.into_response(),
        Err(error) => (status(error.code), frame::failure(visitor, &error)).into_response(),
    }
}

/// An error of this page itself.
fn internal(error: impl ToString) -> ServiceError {
    ServiceError::new(ErrorCode::Internal, error.to_string())
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
