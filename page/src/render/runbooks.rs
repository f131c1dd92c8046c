//! The page `/runbooks`, to which alerts and dashboards link: the part of docs/monitoring.md about alerts, as it was when this
//! program was built. An alert's link ends with the lower-case words of its heading. Raw text is safe here, because the document
//! is ours.

use std::sync::LazyLock;

use axum::response::Html;
use maud::{PreEscaped, html};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::frame::frame;

/// The document of this version.
const DOCUMENT: &str = include_str!("../../../docs/monitoring.md");

/// Where its part about alerts begins.
const ALERTS: &str = "\n## Alerts\n";

/// The page, which is the same for everybody.
pub(crate) fn page() -> Html<String> {
    static TEXT: LazyLock<String> = LazyLock::new(|| written(alerts()));
    frame("Runbooks", None, None, &html! { h1 { "What to do about alerts" } (PreEscaped(&*TEXT)) })
}

/// The part about alerts; the whole document if its heading was renamed, because too much to read is better than nothing.
fn alerts() -> &'static str {
    DOCUMENT.split_once(ALERTS).map_or(DOCUMENT, |(_, alerts)| alerts)
}

/// A text in HTML. Every heading can be linked to by its words in small letters; links to other documents are left out,
/// because they are not served.
fn written(text: &str) -> String {
    let mut in_heading = false;
    let mut leads_elsewhere = false;
    let events = Parser::new_ext(text, Options::ENABLE_TABLES).filter_map(|event| match event {
        Event::Start(Tag::Heading { .. }) => {
            in_heading = true;
            None
        }
        Event::End(TagEnd::Heading(_)) => {
            in_heading = false;
            None
        }
        Event::Text(words) if in_heading => {
            let heading = html! { h2 id=(words.to_lowercase()) { (&*words) } };
            Some(Event::Html(heading.into_string().into()))
        }
        Event::Start(Tag::Link { ref dest_url, .. }) if !dest_url.starts_with('#') => {
            leads_elsewhere = true;
            None
        }
        Event::End(TagEnd::Link) if std::mem::take(&mut leads_elsewhere) => None,
        event => Some(event),
    });
    let mut html = String::new();
    pulldown_cmark::html::push_html(&mut html, events);
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_alert_has_its_place_and_no_link_leads_away() {
        let page = page().0;
        let sections: Vec<&str> = alerts().lines().filter_map(|line| line.strip_prefix("### ")).collect();
        assert!(sections.len() > 20, "{sections:?}");
        for section in sections {
            assert!(
                page.contains(&format!("<h2 id=\"{}\">{section}</h2>", section.to_lowercase())),
                "{section}"
            );
        }
        for link in page.split("<a href=\"").skip(1) {
            let (target, _) = link.split_once('"').unwrap();
            let there = target.strip_prefix('#').is_some_and(|id| page.contains(&format!("id=\"{id}\"")));
            assert!(there, "{target} leads nowhere");
        }
    }

    #[test]
    fn other_documents_are_named_and_not_linked() {
        let page = written("### Name\n\n**Do**: see [there](else.md) and [here](#name).\n");
        assert_eq!(
            page,
            "<h2 id=\"name\">Name</h2>\n<p><strong>Do</strong>: see there and <a href=\"#name\">here</a>.</p>\n"
        );
    }
}
