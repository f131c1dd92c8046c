//! A report as one HTML file that loads nothing: it needs no network, no server and no other file.
//!
//! Its tables and plots are readable without scripts. The script sorts, filters and opens dialogues. Texts of models
//! enter the page as compressed JSON and are shown as text nodes only, with control characters and direction marks made
//! visible. A content security policy forbids all other scripts and styles, and all requests.
//!
//! A section is a row of `ALL` in `page.rs`. [`grid()`](grid::grid), [`tables`] and
//! [`dialogue()`](dialogue::dialogue) are also parts of the live page of a coordinator.

pub mod dialogue;
pub mod grid;
mod page;
mod standing;
pub mod tables;

use std::collections::HashMap;
use std::io::{self, Write};
use std::iter;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use domain::text::steers;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::analysis::scheme::Scheme;
use crate::details::{Details, compressed};
use crate::dialogues::Dialogues;
use crate::draw;

pub use page::{KindPage, PageTable};

const SCRIPT: &str = concat!(
    include_str!("sort.js"),
    include_str!("report.js"),
    include_str!("filters.js"),
    include_str!("dialogues.js")
);

/// The script that sorts tables.
pub const SORT_SCRIPT: &str = include_str!("sort.js");

/// The style sheet of pages, light and dark.
pub const STYLE: &str = include_str!("report.css");

/// The content of a page.
pub struct ReportPage<'a> {
    pub title: &'a str,
    pub dialogues: &'a Dialogues,
    /// What kinds of judged benchmarks show of their own.
    pub judged: &'a [KindPage],
    /// The scheme of the combined scores.
    pub combined: &'a Scheme,
    /// The scheme of the compasses.
    pub compass: &'a Scheme,
}

/// The data of the script: names.
#[derive(Serialize)]
struct Index<'a> {
    models: Vec<String>,
    /// The family of each model.
    families: Vec<&'a str>,
    tasks: Vec<&'a str>,
    /// The name of each task's score, and its value for full marks.
    headlines: Vec<(&'a str, f64)>,
    /// Number of dialogues in each block of texts.
    blocks: Vec<u32>,
}

/// The dialogues, a list for each column of their table: so they take the least room.
#[derive(Default, Serialize)]
struct Lines<'a> {
    models: Vec<usize>,
    tasks: Vec<usize>,
    /// What cases and reasons are called; the lists have their places here.
    names: Vec<&'a str>,
    cases: Vec<usize>,
    iterations: Vec<u32>,
    scores: Vec<Option<f64>>,
    rounds: Vec<u32>,
    reasons: Vec<Option<usize>>,
    seconds: Vec<Option<f64>>,
    /// Positions of their texts.
    places: Vec<u32>,
}

impl<'a> Lines<'a> {
    fn of(all: &'a Dialogues) -> Self {
        let mut lines = Self::default();
        let mut known: HashMap<&str, usize> = HashMap::new();
        let rounded = |value: f64, to: f64| (value * to).round() / to;
        for dialogue in all.iter() {
            let mut place = |name: &'a str| {
                *known.entry(name).or_insert_with(|| {
                    lines.names.push(name);
                    lines.names.len() - 1
                })
            };
            let (case, reason) = (place(all.case(dialogue)), all.reason(dialogue).map(&mut place));
            lines.models.push(dialogue.column);
            lines.tasks.push(dialogue.task);
            lines.cases.push(case);
            lines.iterations.push(dialogue.iteration);
            lines.scores.push(dialogue.headline.map(|score| rounded(score, 1e6)));
            lines.rounds.push(dialogue.rounds);
            lines.reasons.push(reason);
            lines.seconds.push(dialogue.seconds.map(|seconds| rounded(seconds, 100.0)));
            lines.places.push(dialogue.place);
        }
        lines
    }
}

/// Writes the page.
pub fn write(report: &ReportPage<'_>, details: Details, mut out: impl Write) -> io::Result<()> {
    let all = report.dialogues;
    let (blocks, counts) = details.finish()?;
    let index = Index {
        models: all.headings(),
        families: all.columns.iter().map(|column| column.family.as_str()).collect(),
        tasks: all.tasks.iter().map(|task| task.label.as_str()).collect(),
        headlines: all.tasks.iter().map(|task| (task.headline.as_str(), task.full_marks())).collect(),
        blocks: counts,
    };
    let style = format!("{STYLE}{}", draw::style());
    let policy = format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        hash(SCRIPT),
        hash(&style)
    );
    out.write_all(page::head(report.title, &policy, &style).into_string().as_bytes())?;
    page::write_body(report, &mut out)?;
    write!(out, "<script type=\"application/json\" id=\"index\">{}</script>", json(&index)?)?;
    let lines = compressed(|encoder| Ok(serde_json::to_writer(encoder, &Lines::of(all))?))?;
    let blocks = blocks.into_iter().enumerate().map(|(number, block)| (format!("block-{number}"), block));
    for (id, packed) in iter::once(("lines".to_owned(), lines)).chain(blocks) {
        // Base64 needs no escape.
        write!(out, "<script type=\"text/plain\" id=\"{id}\">{}</script>", STANDARD.encode(packed))?;
    }
    write!(out, "<script>{SCRIPT}</script></body></html>")?;
    out.flush()
}

/// JSON without characters that could end the script element, or reverse the text for readers of the source.
fn json(value: &impl Serialize) -> io::Result<String> {
    let text = serde_json::to_string(value)?;
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if c == '<' || steers(c) {
            safe.push_str(&format!("\\u{:04x}", c as u32));
        } else {
            safe.push(c);
        }
    }
    Ok(safe)
}

fn hash(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::scheme::{bundled, named};
    use crate::dialogues::SetupFact;
    use crate::dialogues::testing::matrix;
    use crate::draw::{Drawn, Svg};
    use crate::html::page::PageTable;
    use crate::table::Table;

    fn page(all: &Dialogues) -> String {
        let (combined, compass) =
            (named(&bundled(), "sparql-b").unwrap(), named(&bundled(), "semantic").unwrap());
        let (judged, title) = (&[][..], "T");
        let report = ReportPage { title, dialogues: all, judged, combined: &combined, compass: &compass };
        let mut out = Vec::new();
        write(&report, Details::default(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn hostile_names_are_text_everywhere() {
        let hostile = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u{202e}";
        let mut all = matrix(&["m"], &["RdfFriendCount-nt-1"], 3, |_, _, _| 0.5);
        all.columns[0].name = hostile.to_owned();
        all.columns[0].family = hostile.to_owned();
        all.tasks[0].label = hostile.to_owned();
        all.warnings.push(hostile.to_owned());
        let page = page(&all);
        assert!(!page.contains("<script>alert") && !page.contains("<img"), "markup came through");
        assert!(!page.contains('\u{202e}'), "a mark of direction came through");
        assert_eq!(page.matches("<script>").count(), 1, "only the page's own");
    }

    #[test]
    fn the_policy_names_the_script_and_nothing_else_runs() {
        let page = page(&matrix(&["m"], &["t"], 1, |_, _, _| 0.5));
        assert!(
            page.contains(&format!("script-src &#39;sha256-{}&#39;", hash(SCRIPT)))
                || page.contains(&format!("script-src 'sha256-{}'", hash(SCRIPT)))
        );
        assert!(!page.contains(" style=\"") && !page.contains(" onclick"), "the policy forbids them");
        assert!(
            !page.contains("http://")
                || page.matches("http://").count() == page.matches("http://www.w3.org/2000/svg").count()
        );
        assert!(!page.contains("https://"));
    }

    #[test]
    fn a_kind_has_its_section_and_its_names_are_text() {
        let hostile = "<img src=x>\u{202e}";
        let named = |title: &str| {
            let mut table = Table::default().left(["model"]).titled(title);
            table.row([hostile]);
            table
        };
        let judged = [KindPage {
            heading: "Kind of things",
            tables: vec![
                PageTable { table: named("First"), is_folded: false },
                PageTable { table: named(hostile), is_folded: true },
            ],
            figures: [1, 2]
                .map(|_| (hostile.to_owned(), vec![Drawn::of(|_| Svg::new(10.0, 10.0, hostile))]))
                .to_vec(),
        }];
        let (combined, compass) = (named_scheme("sparql-b"), named_scheme("semantic"));
        let all = Dialogues::default();
        let report = ReportPage {
            title: "T",
            dialogues: &all,
            judged: &judged,
            combined: &combined,
            compass: &compass,
        };
        let mut out = Vec::new();
        write(&report, Details::default(), &mut out).unwrap();
        let page = String::from_utf8(out).unwrap();
        assert_eq!(sections(&page), ["kind-of-things"]);
        assert!(
            page.contains("<h2>Kind of things</h2>") && page.contains("<details><summary>&lt;img"),
            "{page}"
        );
        assert_eq!(page.matches("<svg").count(), 4);
        assert!(
            !page.contains("<img") && !page.contains('\u{202e}') && !page.contains("There are no dialogues")
        );
    }

    fn named_scheme(name: &str) -> Scheme {
        named(&bundled(), name).unwrap()
    }

    /// The ids of the sections that the navigation links to; the test checks that they exist.
    fn sections(page: &str) -> Vec<&str> {
        let nav = page.split_once("<nav").unwrap().1.split_once("</nav>").unwrap().0;
        let links: Vec<&str> =
            nav.split("href=\"#").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
        for link in &links {
            assert!(page.contains(&format!("id=\"{link}\"")), "{link}");
        }
        links
    }

    #[test]
    fn the_head_leads_to_the_sections_that_there_are() {
        let some = page(&matrix(&["m"], &["t"], 1, |_, _, _| 0.5));
        assert_eq!(sections(&some), ["models", "scores", "plots", "dialogues", "provenance"]);
        let mut all = matrix(&["m"], &["t-turtle", "t-jsonld"], 1, |_, _, _| 0.5);
        all.setup_of(0).note(SetupFact::Sampling, "temperature 0");
        let expected = ["models", "scores", "plots", "tests", "configuration", "dialogues", "provenance"];
        assert_eq!(sections(&page(&all)), expected);
    }

    #[test]
    fn an_empty_report_is_a_page() {
        let page = page(&Dialogues::default());
        assert!(page.contains("There are no dialogues") && sections(&page) == ["provenance"]);
    }
}
