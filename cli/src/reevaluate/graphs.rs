//! Recorded answers, as they are named on the command line, and the graphs that their cases refer to but do not contain.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, bail};
use packs::import::GraphDocument;
use rdf::RdfFormat;
use results::llmkgbench::source::read_single;

/// Recorded answers.
#[derive(Clone, Debug, clap::Args)]
pub struct Recordings {
    /// Result files, folders or zip archives.
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Password of encrypted archives.
    #[arg(long, value_name = "P", env = "KGFLEET_PASSWORD", hide_env_values = true)]
    pub password: Option<String>,
    /// A graph that recorded cases refer to: a document (.ttl .nt .jsonld .rdf) or a zip archive with one.
    #[arg(long = "graph", value_name = "NAME=FILE")]
    graphs: Vec<GraphArgument>,
}

/// A named graph.
#[derive(Clone, Debug)]
struct GraphArgument {
    name: String,
    file: PathBuf,
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

impl Recordings {
    /// Reads the documents of the graphs now, so that a wrong path is reported at once.
    pub fn graphs(&self) -> anyhow::Result<Vec<GraphDocument>> {
        let read = |GraphArgument { name, file }: &GraphArgument| {
            let (document_name, content) = read_single(file, self.password.as_deref())
                .with_context(|| format!("cannot read the graph `{name}`"))?;
            let Some(format) = format_of(&document_name) else {
                bail!(
                    "the graph `{name}`: `{document_name}` has none of the extensions .ttl .nt .jsonld .rdf .owl .xml"
                );
            };
            Ok(GraphDocument { name: name.clone(), file: document_name, format, content: content.into() })
        };
        self.graphs.iter().map(read).collect()
    }
}

fn format_of(name: &str) -> Option<RdfFormat> {
    match Path::new(name).extension()?.to_str()? {
        // Published graphs in JSON are JSON-LD.
        "json" => Some(RdfFormat::JsonLd),
        ending => RdfFormat::of_ending(ending),
    }
}
