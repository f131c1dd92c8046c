//! Logging in and out.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Query, State};
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use coordinator::audit::Deed;
use domain::caller::CallerRole;
use serde::Deserialize;
use service_kit::telemetry;

use super::Fields;
use crate::admission::{Visitor, VisitorConnection, cookie_name};
use crate::render::frame::login_page;
use crate::session::{LIFE, random_token, same};
use crate::site::Site;

#[derive(Deserialize)]
pub(super) struct Wanted {
    #[serde(default)]
    next: String,
}

/// `GET /login`.
pub(super) async fn form(Query(wanted): Query<Wanted>) -> Response {
    login_page(local(&wanted.next), None).into_response()
}

/// `POST /login`: a token becomes a session.
pub(super) async fn login(
    State(site): State<Arc<Site>>,
    Extension(connection): Extension<VisitorConnection>,
    body: String,
) -> Response {
    let fields = Fields::of(&body);
    let next = local(fields.get("next"));
    if site.identities.is_anyone() {
        return Redirect::to(next).into_response();
    }
    let refused = |status: StatusCode, why: &str| (status, login_page(next, Some(why))).into_response();
    let (from, about) = (connection.from(), "the live page");
    let Ok(caller) = site.identities.who(Some(fields.get("token").trim())) else {
        telemetry::refused("", &from, about);
        return refused(StatusCode::UNAUTHORIZED, "This token is unknown.");
    };
    if !caller.has(CallerRole::Reader) && !caller.has(CallerRole::Operator) {
        telemetry::refused(caller.name(), &from, about);
        return refused(
            StatusCode::FORBIDDEN,
            "This token is for workers or a conductor; the page needs the role reader or operator.",
        );
    }
    let (Ok(name), Ok(form_token)) = (random_token(), random_token()) else {
        return refused(StatusCode::SERVICE_UNAVAILABLE, "The system gives no random numbers.");
    };
    let deed = Deed { who: caller.name().to_owned(), from, act: "login".to_owned(), about: about.to_owned() };
    if let Err(error) = site.coordinator.audit().act(deed).await {
        return refused(StatusCode::SERVICE_UNAVAILABLE, &error.to_string());
    }
    site.sessions().begin(&name, form_token, caller, site.now());
    let cookie = set_cookie(&connection, &name, LIFE.as_secs());
    ([cookie], Redirect::to(next)).into_response()
}

/// `POST /logout`.
pub(super) async fn logout(
    State(site): State<Arc<Site>>,
    Extension(connection): Extension<VisitorConnection>,
    Extension(visitor): Extension<Visitor>,
    body: String,
) -> Response {
    if !same(Fields::of(&body).get("form_token"), &visitor.form_token) {
        return (StatusCode::FORBIDDEN, "the form is not of this session\n").into_response();
    }
    if let Some(id) = visitor.session {
        site.sessions().end(&id);
    }
    ([set_cookie(&connection, "", 0)], Redirect::to("/login")).into_response()
}

fn set_cookie(connection: &VisitorConnection, value: &str, seconds: u64) -> (HeaderName, String) {
    let (name, secure) = (cookie_name(connection.secure), if connection.secure { "; Secure" } else { "" });
    (
        header::SET_COOKIE,
        format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}"),
    )
}

/// `next` if it is a path of this page, otherwise the first page: a login never leads to another site.
fn local(next: &str) -> &str {
    let is_local = next.starts_with('/')
        && !next.starts_with("//")
        && next.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if is_local { next } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_leads_to_this_page_only() {
        assert_eq!(local("/runs/a?model=b%20c"), "/runs/a?model=b%20c");
        for foreign in [
            "",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "/a\nSet-Cookie: x",
            "javascript:1",
        ] {
            assert_eq!(local(foreign), "/", "{foreign}");
        }
    }
}
