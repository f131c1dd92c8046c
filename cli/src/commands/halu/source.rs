//! Which knowledge graph `--kg` names.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, anyhow};
use halu::{Dump, Mapping, world};
use rdf::RdfFormat;

use crate::exit_code::Exit;

/// The name of the invented graph.
const WORLD: &str = "world";

/// A knowledge graph to draw questions from.
#[derive(Clone, Debug)]
pub enum Source {
    /// The invented graph of a seed.
    World(u64),
    /// An RDF document.
    Document(PathBuf),
}

impl FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == WORLD => Ok(Self::World(1)),
            Some((WORLD, seed)) => {
                seed.parse().map(Self::World).map_err(|_| format!("`{seed}` is no seed: give a whole number"))
            }
            _ => Ok(Self::Document(text.into())),
        }
    }
}

impl Source {
    /// Reads the graph.
    pub fn open(&self, mapping: Option<&Path>) -> anyhow::Result<Dump> {
        match (self, mapping) {
            (Self::World(_), Some(_)) => Err(Exit::usage(anyhow!(
                "--mapping: the invented graph has a mapping of its own; leave it out"
            ))),
            (Self::World(seed), None) => Ok(world::generate(*seed).open()?),
            (Self::Document(path), None) => Err(Exit::usage(anyhow!(
                "{}: say with --mapping FILE where the graph keeps types, labels, descriptions and statistics",
                path.display()
            ))),
            (Self::Document(path), Some(mapping)) => {
                let format = format_of(path).map_err(Exit::usage)?;
                let text = std::fs::read_to_string(mapping).with_context(|| mapping.display().to_string())?;
                let named = |error: halu::GraphError, file: &Path| {
                    Exit::usage(anyhow!("{}: {error}", file.display()))
                };
                let parsed = Mapping::from_toml(&text).map_err(|error| named(error, mapping))?;
                let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
                Dump::parse(&bytes, format, parsed).map_err(|error| named(error, path))
            }
        }
    }

    /// What people call it.
    pub fn describe(&self) -> String {
        match self {
            Self::World(seed) => format!("the invented graph of seed {seed}"),
            Self::Document(path) => {
                path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
            }
        }
    }
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
