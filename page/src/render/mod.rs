//! What pages look like. Every text that comes from elsewhere is escaped by the templates and loses, or shows, the
//! characters that would steer a reader.

pub(crate) mod dialogues;
pub(crate) mod login;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod workers;

use axum::response::Html;
use domain::{RunId, ServiceError};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use report::table::printable;
use url::form_urlencoded::{Serializer, byte_serialize};

use crate::assets::ASSETS;
use crate::board::{RunsSnapshot, Section};
use crate::door::Visitor;

/// The head of every page, and what stands around its content. `stream` is where its live parts come from.
fn frame(title: &str, visitor: Option<&Visitor>, stream: Option<&str>, main: &Markup) -> Html<String> {
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
                            a.home href="/" { "kgfleet" } a href="/" { "Runs" } a href="/workers" { "Workers" }
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

/// The hidden field by which a form shows that this page made it.
fn form_token(visitor: &Visitor) -> Markup {
    html! { input type="hidden" name="form_token" value=(visitor.form_token); }
}

/// A live part of a page.
fn section(snapshot: &RunsSnapshot, id: &str) -> Markup {
    let found = snapshot.sections.iter().find(|section| section.id == id);
    // Sections were made by the same templates, a moment ago.
    html! { div id=(id) { @if let Some(Section { html, .. }) = found { (PreEscaped(&**html)) } } }
}

/// Why there is no page.
pub(crate) fn failure(visitor: &Visitor, error: &ServiceError) -> Html<String> {
    let main = html! {
        h1 { "This did not work" }
        p.warning role="alert" { (printable(&error.message)) }
        p { a href="/" { "To the runs" } }
    };
    frame("Error", Some(visitor), None, &main)
}

/// The same where nothing is known of the visitor.
pub(crate) fn plain(error: &ServiceError) -> String {
    format!("{}\n", printable(&error.message))
}

/// The path of a run's page.
pub(crate) fn path_of(run: &RunId) -> String {
    format!("/runs/{}", byte_serialize(run.as_str().as_bytes()).collect::<String>().replace('+', "%20"))
}

/// A path below a run's with a query.
fn path_with(run: &RunId, page: &str, fields: &[(&str, &str)]) -> String {
    let query = Serializer::new(String::new()).extend_pairs(fields).finish();
    format!("{}/{page}?{query}", path_of(run))
}
