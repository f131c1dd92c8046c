//! The RDF syntaxes of the benchmark and their names.

use std::fmt;
use std::str::FromStr;

/// A concrete syntax of an RDF document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RdfFormat {
    /// RDF 1.1 Turtle.
    Turtle,
    /// RDF 1.1 N-Triples.
    NTriples,
    /// JSON-LD 1.1 (no remote contexts).
    JsonLd,
    /// RDF 1.1 XML Syntax.
    RdfXml,
}

impl RdfFormat {
    /// All formats, in the order of the benchmark.
    pub const ALL: [Self; 4] = [Self::Turtle, Self::JsonLd, Self::RdfXml, Self::NTriples];

    /// The name used in task labels: `turtle`, `jsonld`, `xml` or `nt`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Turtle => "turtle",
            Self::NTriples => "nt",
            Self::JsonLd => "jsonld",
            Self::RdfXml => "xml",
        }
    }

    /// The format of documents whose names have this ending, without its point.
    pub fn of_ending(ending: &str) -> Option<Self> {
        match ending {
            "ttl" => Some(Self::Turtle),
            "nt" => Some(Self::NTriples),
            "jsonld" => Some(Self::JsonLd),
            "rdf" | "xml" | "owl" => Some(Self::RdfXml),
            _ => None,
        }
    }

    /// The language label of a Markdown fence around a document: `turtle`, `json`, `xml` or `ntriples`.
    pub fn media_label(self) -> &'static str {
        match self {
            Self::Turtle => "turtle",
            Self::NTriples => "ntriples",
            Self::JsonLd => "json",
            Self::RdfXml => "xml",
        }
    }
}

impl fmt::Display for RdfFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A format parameter that names none of the four syntaxes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown RDF format `{0}`; known are turtle, json-ld, jsonld, nt, ntriples and xml")]
pub struct UnknownFormat(pub String);

impl FromStr for RdfFormat {
    type Err = UnknownFormat;

    /// Reads the parameter values of the benchmark configuration; both spellings of JSON-LD and N-Triples occur.
    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        match name {
            "turtle" => Ok(Self::Turtle),
            "nt" | "ntriples" => Ok(Self::NTriples),
            "json-ld" | "jsonld" => Ok(Self::JsonLd),
            "xml" => Ok(Self::RdfXml),
            other => Err(UnknownFormat(other.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_label_reads_back() {
        for format in RdfFormat::ALL {
            assert_eq!(format.as_str().parse(), Ok(format));
        }
        assert_eq!("json-ld".parse(), Ok(RdfFormat::JsonLd));
        assert_eq!("ntriples".parse(), Ok(RdfFormat::NTriples));
        assert_eq!("n3".parse::<RdfFormat>(), Err(UnknownFormat("n3".to_owned())));
    }
}
