//! The frame around the content of every page, the addresses of pages, the form that asks for a token, and error pages.

use axum::response::Html;
use domain::{RunId, ServiceError};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use report::table::printable;
use url::form_urlencoded::{Serializer, byte_serialize};

use crate::admission::Visitor;
use crate::assets::address;
use crate::cache::{PageState, Section};

/// The head of every page, and the frame around its content. `stream` is the address of its live updates.
pub(super) fn frame(
    title: &str,
    visitor: Option<&Visitor>,
    stream: Option<&str>,
    main: &Markup,
) -> Html<String> {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (printable(title)) " · kgfleet" }
                link rel="icon" type="image/svg+xml" href=(address("svg"));
                link rel="stylesheet" href=(address("css"));
                script src=(address("js")) defer {}
            }
            body data-stream=[stream] {
                a.skip href="#main" { "To the content" }
                header.bar {
                    @if let Some(visitor) = visitor {
                        nav aria-label="Pages" {
                            a.home href="/" { "kgfleet" } a href="/" { "Benchmarks" } a href="/workers" { "Workers" }
                        }
                        @if stream.is_some() { span #connection role="status" { noscript { "Reload for newer figures." } } }
                        @if visitor.session.is_some() {
                            form.inline method="post" action="/logout" {
                                (form_token(visitor))
                                span { (printable(visitor.caller.name())) }
                                button type="submit" { "Log out" }
                            }
                        }
                    } @else { span.home { "kgfleet" } }
                }
                main #main { (main) }
                // What screen readers are told of a page that moves.
                @if stream.is_some() { p #spoken .spoken role="status" aria-live="polite" {} }
                footer { p.note { "kgfleet " (env!("CARGO_PKG_VERSION")) } }
            }
        }
    };
    Html(page.into_string())
}

/// The hidden field of forms with the token that proves that this page made the form.
pub(super) fn form_token(visitor: &Visitor) -> Markup {
    html! { input type="hidden" name="form_token" value=(visitor.form_token); }
}

/// A live part of a page.
pub(super) fn section(state: &PageState, id: &str) -> Markup {
    let found = state.sections.iter().find(|section| section.id == id);
    // Sections were made by the same templates, a moment ago.
    html! { div id=(id) { @if let Some(Section { html, .. }) = found { (PreEscaped(&**html)) } } }
}

/// The error page for a visitor.
pub(crate) fn failure(visitor: &Visitor, error: &ServiceError) -> Html<String> {
    let main = html! {
        h1 { "This did not work" }
        p.warning role="alert" { (printable(&error.message)) }
        p { a href="/" { "To the runs" } }
    };
    frame("Error", Some(visitor), None, &main)
}

/// The path of a run's page.
pub(crate) fn path_of(run: &RunId) -> String {
    format!("/runs/{}", byte_serialize(run.as_str().as_bytes()).collect::<String>().replace('+', "%20"))
}

/// A path below a run's with a query.
pub(super) fn path_with(run: &RunId, page: &str, fields: &[(&str, &str)]) -> String {
    let query = Serializer::new(String::new()).extend_pairs(fields).finish();
    format!("{}/{page}?{query}", path_of(run))
}

/// The form. After the login it leads to `next`; `refused` says why the last token was refused.
pub(crate) fn login_page(next: &str, refused: Option<&str>) -> Html<String> {
    let main = html! {
        h1 { "Log in" }
        form.login method="post" action="/login" {
            input type="hidden" name="next" value=(next);
            @if let Some(refused) = refused { p.warning #refused role="alert" { (refused) } }
            label for="token" { "Token" }
            input #token type="password" name="token" autocomplete="current-password" required autofocus
                aria-describedby=[refused.map(|_| "refused")];
            button type="submit" { "Log in" }
            p.note { "An operator of this fleet gives tokens, made by " code { "kgfleet fleet token new" } "." }
        }
    };
    frame("Log in", None, None, &main)
}
