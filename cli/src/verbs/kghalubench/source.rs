//! The knowledge graph that `--kg` names.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, anyhow};
use benchmarks::kinds::kghalubench::draw::{Dump, Endpoint, KnowledgeGraph, Mapping};
use rdf::RdfFormat;

use super::client::{PoliteClient, RequestPacing};
use crate::kit::exit_code::{Exit, usage};

/// A knowledge graph to draw questions from.
#[derive(Clone, Debug)]
pub enum GraphInput {
    /// An RDF document.
    Document(PathBuf),
    /// A SPARQL endpoint.
    Endpoint(String),
}

impl FromStr for GraphInput {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text.split_once(':') {
            Some(("http" | "https", _)) => Self::Endpoint(text.to_owned()),
            _ => Self::Document(text.into()),
        })
    }
}

impl GraphInput {
    /// Reads the graph. What an endpoint answers is kept in the folder `cache`.
    pub fn open(
        &self,
        mapping: Option<&Path>,
        cache: &Path,
        patience: RequestPacing,
    ) -> anyhow::Result<Box<dyn KnowledgeGraph>> {
        match (self, mapping) {
            (_, None) => Err(usage!(
                "{}: say with --mapping FILE where the graph keeps types, labels, descriptions and statistics",
                self.describe()
            )),
            (Self::Endpoint(url), Some(mapping)) => {
                let client = PoliteClient::new(url, cache, patience)?;
                Ok(Box::new(Endpoint::new(client, read_mapping(mapping)?)))
            }
            (Self::Document(path), Some(mapping)) => {
                let format = format_of(path).map_err(Exit::usage)?;
                let mapping = read_mapping(mapping)?;
                let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
                let dump = Dump::parse(&bytes, format, mapping);
                Ok(Box::new(dump.map_err(|error| usage!("{}: {error}", path.display()))?))
            }
        }
    }

    /// Its name for people.
    pub fn describe(&self) -> String {
        match self {
            Self::Endpoint(url) => url.clone(),
            Self::Document(path) => {
                path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
            }
        }
    }
}

fn read_mapping(path: &Path) -> anyhow::Result<Mapping> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    Mapping::from_toml(&text).map_err(|error| usage!("{}: {error}", path.display()))
}

fn format_of(path: &Path) -> anyhow::Result<RdfFormat> {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    match extension {
        "ttl" => Ok(RdfFormat::Turtle),
        "nt" => Ok(RdfFormat::NTriples),
        "jsonld" => Ok(RdfFormat::JsonLd),
        "rdf" => Ok(RdfFormat::RdfXml),
        _ => Err(anyhow!("{}: an RDF document ends with .ttl, .nt, .jsonld or .rdf", path.display())),
    }
}
