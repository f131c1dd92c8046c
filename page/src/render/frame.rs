//! The frame around the content of every page, and error pages.

use axum::response::Html;
use domain::ServiceError;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use report::table::printable;

use crate::assets::ASSETS;
use crate::section::{PageState, Section};
use crate::visitor::Visitor;

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
                link rel="icon" type="image/svg+xml" href=(ASSETS.icon());
                link rel="stylesheet" href=(ASSETS.style());
                script src=(ASSETS.script()) defer {}
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

/// The error page if the visitor is unknown.
pub(crate) fn plain(error: &ServiceError) -> String {
    format!("{}\n", printable(&error.message))
}
