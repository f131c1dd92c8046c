//! `--graph NAME=FILE`: graphs that recorded cases refer to but do not contain.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, bail};
use packs::import::GraphDocument;
use rdf::RdfFormat;
use results::llmkgbench::source::read_single;
use tasks::graphs::{GraphLibrary, GraphLibraryBuilder};

/// A named graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphArgument {
    /// The name that cases use.
    pub name: String,
    /// A document, or a zip archive with one document.
    pub file: PathBuf,
}

impl FromStr for GraphArgument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, file)) if !name.is_empty() && !file.is_empty() => {
                Ok(Self { name: name.to_owned(), file: file.into() })
            }
            _ => Err("expected NAME=FILE, such as beastiary=graph.rdf".to_owned()),
        }
    }
}

/// Reads the documents of these graphs now, so that a wrong path is reported at once.
pub fn documents(arguments: &[GraphArgument], password: Option<&str>) -> anyhow::Result<Vec<GraphDocument>> {
    let read = |GraphArgument { name, file }: &GraphArgument| {
        let (document_name, content) =
            read_single(file, password).with_context(|| format!("cannot read the graph `{name}`"))?;
        let Some(format) = format_of(&document_name) else {
            bail!(
                "the graph `{name}`: `{document_name}` has none of the extensions .ttl .nt .jsonld .rdf .owl .xml"
            );
        };
        Ok(GraphDocument { name: name.clone(), file: document_name, format, content: content.into() })
    };
    arguments.iter().map(read).collect()
}

/// A library of these graphs and those of `builder`; these replace graphs of the same name. A graph is parsed when a case
/// first needs it.
pub fn library(
    mut builder: GraphLibraryBuilder,
    arguments: &[GraphArgument],
    password: Option<&str>,
) -> anyhow::Result<GraphLibrary> {
    for GraphDocument { name, format, content, .. } in documents(arguments, password)? {
        builder = builder.with(name, format, move || Ok(content.to_vec()));
    }
    Ok(builder.build())
}

fn format_of(name: &str) -> Option<RdfFormat> {
    match Path::new(name).extension()?.to_str()? {
        // Published graphs in JSON are JSON-LD.
        "json" => Some(RdfFormat::JsonLd),
        ending => RdfFormat::of_ending(ending),
    }
}
