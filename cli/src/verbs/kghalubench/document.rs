//! Opens an RDF document as a knowledge graph.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::Context;
use benchmarks::kinds::kghalubench::draw::{DocumentHash, Dump, Mapping};
use rdf::stream::{StreamError, StreamFormat};
use rdf::{QueryGraph, RdfFormat};

use crate::kit::exit_code::usage;
use crate::kit::output::note;

/// Length of a document from which its reader is told that it takes a while, in bytes.
const LARGE_BYTES: u64 = 16 << 20;

/// Bytes that are read at once.
const BUFFER_BYTES: usize = 1 << 20;

/// How a document is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compression {
    None,
    Gzip,
    Bzip2,
    Zstandard,
}

impl Compression {
    const ENDINGS: [(&str, Self); 3] = [("gz", Self::Gzip), ("bz2", Self::Bzip2), ("zst", Self::Zstandard)];

    /// What the document says. Official dumps are compressed in parts that follow each other, and all of them are read.
    fn open(self, file: File) -> io::Result<Box<dyn Read>> {
        let file = io::BufReader::with_capacity(BUFFER_BYTES, file);
        Ok(match self {
            Self::None => Box::new(file),
            Self::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(file)),
            Self::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(file)),
            Self::Zstandard => Box::new(zstd::stream::read::Decoder::with_buffer(file)?),
        })
    }
}

/// The syntax and the compression that the name of a document tells.
fn kind_of(path: &Path) -> Option<(&str, Compression)> {
    let (rest, ending) = path.file_name()?.to_str()?.rsplit_once('.')?;
    match Compression::ENDINGS.iter().find(|(known, _)| *known == ending) {
        Some((_, compression)) => Some((rest.rsplit_once('.')?.1, *compression)),
        None => Some((ending, Compression::None)),
    }
}

/// Reads a document into memory.
pub(super) fn open(path: &Path, mapping: Mapping) -> anyhow::Result<Dump> {
    let (ending, compression) = kind_of(path).unwrap_or(("", Compression::None));
    let named = || path.display().to_string();
    let file = service_kit::named_files::open(path).with_context(named)?;
    let length = file.metadata()?.len();
    let of_document = |error: &dyn std::fmt::Display| usage!("{}: {error}", path.display());
    if RdfFormat::of_ending(ending) == Some(RdfFormat::JsonLd) && compression == Compression::None {
        let mut bytes = Vec::new();
        (&file).read_to_end(&mut bytes).with_context(named)?;
        return Dump::parse(&bytes, RdfFormat::JsonLd, mapping).map_err(|error| of_document(&error));
    }
    let Some(format) = StreamFormat::of_ending(ending) else {
        let known = StreamFormat::ENDINGS.map(|(ending, _)| format!(".{ending}")).join(" ");
        return Err(of_document(&format!(
            "an RDF document ends with one of {known}, each alone or followed by .gz, .bz2 or .zst, or with .jsonld"
        )));
    };
    if length > LARGE_BYTES {
        note!("reading {} ({} MB) into memory", path.display(), length >> 20);
    }
    let document = hash(&file, length).with_context(named)?;
    let again = service_kit::named_files::open(path).with_context(named)?;
    let mut input = compression.open(again).with_context(named)?;
    let graph = QueryGraph::read(&mut input, format).map_err(|error| match error {
        StreamError::Io(error) => anyhow::Error::new(error).context(named()),
        error => of_document(&error),
    })?;
    Dump::new(graph, document, mapping).map_err(|error| of_document(&error))
}

fn hash(mut file: &File, length: u64) -> io::Result<DocumentHash> {
    let mut hash = DocumentHash::new(length);
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hash),
            read => hash.update(&buffer[..read]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_document_tells_syntax_and_compression() {
        for (name, kind) in [
            ("a.ttl", Some(("ttl", Compression::None))),
            ("latest-truthy.nt.bz2", Some(("nt", Compression::Bzip2))),
            ("a.b.nq.gz", Some(("nq", Compression::Gzip))),
            ("a.trig.zst", Some(("trig", Compression::Zstandard))),
            ("zst", None),
            ("a.gz", None),
        ] {
            assert_eq!(kind_of(Path::new(name)), kind, "{name}");
        }
    }
}
