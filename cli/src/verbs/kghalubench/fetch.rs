//! `kgfleet halu fetch`: what Wikimedia's public interfaces say about items of Wikidata, as a graph to draw questions from.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use benchmarks::kinds::kghalubench::draw::fetched::{self, FetchedError};
use rdf::Triple;
use serde_json::Value;
use url::Url;

use super::client::{self, PoliteClient, RequestPacing};
use crate::kit::exit_code::{Exit, ExitCode, usage};
use crate::kit::output::note;

/// Items or properties of one request, as Wikidata allows for anybody.
const IDS_MAX: usize = 50;

/// Maximum size of the list of items, in bytes, and of items in it.
const LIST_BYTES_MAX: u64 = 16 << 20;
const ITEMS_MAX: usize = 200_000;

/// Items after which the command says how far it is.
const SAID_EVERY: usize = 100;

/// Seconds that replicas of Wikidata's database may lag behind. If they lag more, it wants to be asked later.
const LAG_SECONDS_MAX: &str = "5";

/// Fetch a graph of items of Wikidata through Wikimedia's public interfaces: labels, statements, texts and views of pages.
///
/// The graph is written as N-Triples for `kgfleet halu generate --mapping wikidata`. One request is sent at a time. Answers are
/// kept, so that the same command goes on after an interruption and asks nothing twice.
///
/// Exit codes: 0 the graph is written; 2 the arguments or the list cannot be used; 3 a server does not answer as it should, or a
/// file cannot be read or written.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The items: a file with one in each line, such as `Q42`.
    #[arg(long, value_name = "FILE")]
    items: PathBuf,
    /// Who asks: a mail address or a page, as Wikimedia wants to know of programs. It is sent with every request.
    #[arg(long, value_name = "TEXT")]
    contact: String,
    /// The graph to write, such as `wikidata.nt`. An existing file is replaced.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Language of labels, and of the Wikipedia whose pages are read.
    #[arg(long, default_value = "en", value_name = "CODE", value_parser = language)]
    language: String,
    /// First and last month of page views: YYYYMM.
    #[arg(long, num_args = 2, default_values = ["202401", "202412"], value_names = ["FROM", "TO"], value_parser = clap::value_parser!(u32).range(201_507..=999_912))]
    views: Vec<u32>,
    /// Where answers are kept.
    #[arg(long, default_value = "halu-cache", value_name = "DIR")]
    cache: PathBuf,
    /// Milliseconds between two requests.
    #[arg(long, default_value_t = 200, value_name = "MS", value_parser = clap::value_parser!(u32).range(0..=60_000))]
    pause: u32,
    /// Seconds that a server may take for one answer.
    #[arg(long, default_value_t = client::ANSWER_SECONDS, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    patience: u32,
    /// Attempts for one request.
    #[arg(long, default_value_t = client::ATTEMPTS, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=client::ATTEMPTS_MAX))]
    attempts: u32,
    /// Address of Wikidata.
    #[arg(long, default_value = "https://www.wikidata.org", value_name = "URL")]
    wikidata: String,
    /// Address of Wikipedia. Default: that of the language.
    #[arg(long, value_name = "URL")]
    wikipedia: Option<String>,
    /// Address of the page views.
    #[arg(long, default_value = "https://wikimedia.org", value_name = "URL")]
    page_views: String,
}

fn language(text: &str) -> Result<String, String> {
    let is_code = !text.is_empty() && text.len() <= 12 && text.bytes().all(|byte| byte.is_ascii_lowercase());
    if is_code { Ok(text.to_owned()) } else { Err("write the code of a Wikipedia, such as en".to_owned()) }
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let list = named_files::read_text(&arguments.items, LIST_BYTES_MAX)
        .with_context(|| arguments.items.display().to_string())?;
    let ids = read_list(&list).map_err(|line| usage!("{}: {line}", arguments.items.display()))?;
    let pacing = RequestPacing {
        answer: Duration::from_secs(arguments.patience.into()),
        attempts: arguments.attempts,
        pause: Duration::from_millis(arguments.pause.into()),
    };
    let client = PoliteClient::new(&arguments.cache, pacing, Some(&arguments.contact))?;
    let mut fetching = Fetching { arguments, client };
    let triples = fetching.all(&ids)?;
    results::files::replace(&arguments.out, |file| write(&triples, file))
        .with_context(|| arguments.out.display().to_string())?;
    note!("{} triples about {} items", triples.len(), ids.len());
    Ok(ExitCode::Success)
}

/// The items of a list, none twice; what is wrong with it.
fn read_list(text: &str) -> Result<Vec<String>, String> {
    let mut ids = Vec::new();
    let mut seen = BTreeSet::new();
    for (number, line) in text.lines().enumerate() {
        let id = line.trim().rsplit('/').next().unwrap_or_default();
        if id.is_empty() {
            continue;
        }
        let is_item = id.strip_prefix('Q').is_some_and(|number| number.parse::<u64>().is_ok());
        if !is_item {
            return Err(format!("line {}: `{id}` is no item, such as Q42", number + 1));
        }
        if seen.insert(id) {
            ids.push(id.to_owned());
        }
    }
    match ids.len() {
        0 => Err("it names no items".to_owned()),
        count if count > ITEMS_MAX => Err(format!("it names {count} items; {ITEMS_MAX} are the most")),
        _ => Ok(ids),
    }
}

fn write(triples: &BTreeSet<String>, file: File) -> io::Result<File> {
    let mut out = BufWriter::new(file);
    for triple in triples {
        writeln!(out, "{triple} .")?;
    }
    out.into_inner().map_err(io::IntoInnerError::into_error)
}

/// A graph that is being fetched.
struct Fetching<'a> {
    arguments: &'a Arguments,
    client: PoliteClient,
}

impl Fetching<'_> {
    /// All triples about these items, as lines.
    fn all(&mut self, ids: &[String]) -> anyhow::Result<BTreeSet<String>> {
        let (mut triples, mut mentioned) = (BTreeSet::new(), BTreeSet::new());
        let mut done = 0;
        let mut take = |found: Vec<Triple>| triples.extend(found.iter().map(ToString::to_string));
        for some in ids.chunks(IDS_MAX) {
            for item in self.items(some)? {
                mentioned.extend(item.mentioned);
                take(item.triples);
                if let Some(page) = &item.page {
                    take(self.page(&item.id, page)?);
                    take(self.views(&item.id, page)?);
                }
                done += 1;
                if done % SAID_EVERY == 0 {
                    note!("{done} of {} items", ids.len());
                }
            }
        }
        let known: BTreeSet<&String> = ids.iter().collect();
        let unnamed: Vec<String> = mentioned.into_iter().filter(|id| !known.contains(id)).collect();
        for some in unnamed.chunks(IDS_MAX) {
            take(self.labels(some)?);
        }
        Ok(triples)
    }

    fn items(&mut self, ids: &[String]) -> anyhow::Result<Vec<fetched::FetchedItem>> {
        let url = self.entities(ids, "labels|claims|sitelinks")?;
        let Arguments { language, .. } = self.arguments;
        let wiki = format!("{language}wiki");
        self.ask(&url, |answer| fetched::items(answer, language, &wiki)).map(Option::unwrap_or_default)
    }

    fn labels(&mut self, ids: &[String]) -> anyhow::Result<Vec<Triple>> {
        let url = self.entities(ids, "labels")?;
        let language = &self.arguments.language;
        self.ask(&url, |answer| fetched::labels(answer, language)).map(Option::unwrap_or_default)
    }

    fn entities(&self, ids: &[String], props: &str) -> anyhow::Result<Url> {
        let parameters: [(&str, &str); 7] = [
            ("action", "wbgetentities"),
            ("format", "json"),
            ("ids", &ids.join("|")),
            // Names that are the same in many languages stand in none of them.
            ("languagefallback", "1"),
            ("languages", &self.arguments.language),
            ("maxlag", LAG_SECONDS_MAX),
            ("props", props),
        ];
        address(&self.arguments.wikidata, &["w", "api.php"], &parameters)
    }

    fn page(&mut self, id: &str, title: &str) -> anyhow::Result<Vec<Triple>> {
        let Arguments { language, wikipedia, .. } = self.arguments;
        let own = || format!("https://{language}.wikipedia.org");
        let parameters = [
            ("action", "query"),
            ("explaintext", "1"),
            ("format", "json"),
            ("formatversion", "2"),
            ("maxlag", LAG_SECONDS_MAX),
            ("prop", "extracts"),
            ("redirects", "1"),
            ("titles", title),
        ];
        let url = address(&wikipedia.clone().unwrap_or_else(own), &["w", "api.php"], &parameters)?;
        self.ask(&url, |answer| fetched::page(answer, id, language)).map(Option::unwrap_or_default)
    }

    fn views(&mut self, id: &str, title: &str) -> anyhow::Result<Vec<Triple>> {
        let Arguments { language, views, page_views, .. } = self.arguments;
        let [from, to] = views[..] else { return Ok(Vec::new()) };
        let (project, title) = (format!("{language}.wikipedia.org"), title.replace(' ', "_"));
        let (from, to) = (format!("{from}0100"), format!("{to}3100"));
        let path = ["api", "rest_v1", "metrics", "pageviews", "per-article"];
        let rest = [project.as_str(), "all-access", "user", &title, "monthly", &from, &to];
        let url = address(page_views, &[&path[..], &rest].concat(), &[])?;
        let views = self.ask(&url, |answer| fetched::page_views(answer, id).map(|triple| vec![triple]))?;
        // What was never viewed is not found.
        Ok(match views {
            Some(views) => views,
            None => vec![fetched::no_page_views(id)?],
        })
    }

    /// What an answer says; `None` if there is nothing at the address.
    fn ask<T>(
        &mut self,
        url: &Url,
        read: impl FnOnce(&str) -> Result<T, FetchedError>,
    ) -> anyhow::Result<Option<T>> {
        let Some(answer) = self.client.get(url, whole)? else { return Ok(None) };
        read(&answer).map(Some).with_context(|| url.to_string())
    }
}

/// Whether an answer is complete. MediaWiki says with success that it lags too far behind.
fn whole(answer: &str) -> Result<(), String> {
    let answer: Value =
        serde_json::from_str(answer).map_err(|error| format!("its answer is no JSON: {error}"))?;
    match answer.pointer("/error/code").and_then(Value::as_str) {
        None => Ok(()),
        Some(code) => Err(format!("it answers with the error `{code}`")),
    }
}

fn address(server: &str, path: &[&str], parameters: &[(&str, &str)]) -> anyhow::Result<Url> {
    let mut url = models::http::parse_endpoint(server).map_err(Exit::usage)?;
    url.path_segments_mut()
        .map_err(|()| usage!("{server}: no address of a server"))?
        .pop_if_empty()
        .extend(path);
    if !parameters.is_empty() {
        url.query_pairs_mut().extend_pairs(parameters);
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_items_is_read_and_what_is_none_is_named() {
        assert_eq!(read_list("Q42\n\n http://www.wikidata.org/entity/Q7 \nQ42\n").unwrap(), ["Q42", "Q7"]);
        assert!(read_list("Q42\nP31\n").unwrap_err().contains("line 2: `P31`"));
        assert!(read_list("\n").is_err());
    }

    #[test]
    fn an_answer_of_a_server_that_lags_is_none() {
        assert_eq!(whole(r#"{"entities": {}}"#), Ok(()));
        assert!(whole(r#"{"error": {"code": "maxlag", "lag": 7}}"#).unwrap_err().contains("maxlag"));
        assert!(whole("<html>").is_err());
    }

    #[test]
    fn titles_stand_in_addresses_as_they_must() {
        let url = address("https://w.example", &["a", "AC/DC_?"], &[("titles", "A & B|C")]).unwrap();
        assert_eq!(url.as_str(), "https://w.example/a/AC%2FDC_%3F?titles=A+%26+B%7CC");
    }
}
