//! The knowledge graph that `--kg` names.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use benchmarks::kinds::kghalubench::draw::{Endpoint, KnowledgeGraph, Mapping};

use super::client::{PoliteEndpoint, RequestPacing};
use super::document;
use crate::kit::exit_code::usage;
use crate::kit::whole_file;

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
                "{}: say with --mapping FILE where the graph keeps types, labels and descriptions (docs/kghalubench.md explains \
                 the keys), or --mapping wikidata",
                self.describe()
            )),
            (Self::Endpoint(url), Some(mapping)) => {
                let client = PoliteEndpoint::new(url, cache, patience)?;
                Ok(Box::new(Endpoint::new(client, read_mapping(mapping)?)))
            }
            (Self::Document(path), Some(mapping)) => {
                Ok(Box::new(document::open(path, read_mapping(mapping)?)?))
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
    let name = path.to_str().unwrap_or_default();
    let text = match (Mapping::named(name), path.exists()) {
        (Some(known), false) => known.to_owned(),
        _ => whole_file::read_text(path)?,
    };
    Mapping::from_toml(&text).map_err(|error| usage!("{}: {error}", path.display()))
}
