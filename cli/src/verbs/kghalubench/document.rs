//! Opens an RDF document as a knowledge graph. A small one is read into memory; a large or a compressed one is sorted into a file,
//! once, so that questions can be drawn without holding it.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use anyhow::Context;
use benchmarks::kinds::kghalubench::draw::{DocumentHash, Dump, Mapping};
use rdf::sorted::{SortedError, SortedTriples, SortedWriter};
use rdf::stream::{StreamError, StreamFormat, read_triples};
use rdf::{NamedOrBlankNode, RdfFormat};

use crate::kit::exit_code::{Exit, usage};
use crate::kit::output::{note, say};

/// Maximum size of a document that is read into memory, in bytes. In memory it takes some twenty times as much.
const IN_MEMORY_BYTES_MAX: u64 = 16 << 20;

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

/// Reads a document. What it is sorted into is kept in the folder `cache`.
pub(super) fn open(path: &Path, mapping: Mapping, cache: &Path) -> anyhow::Result<Dump> {
    let (ending, compression) = kind_of(path).unwrap_or(("", Compression::None));
    let mut file = service_kit::named_files::open(path).with_context(|| path.display().to_string())?;
    let length = file.metadata()?.len();
    let of_document = |error: &dyn std::fmt::Display| usage!("{}: {error}", path.display());
    if let Some(format) = RdfFormat::of_ending(ending)
        && compression == Compression::None
        && (length <= IN_MEMORY_BYTES_MAX || format == RdfFormat::JsonLd)
    {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).with_context(|| path.display().to_string())?;
        return Dump::parse(&bytes, format, mapping).map_err(|error| of_document(&error));
    }
    let Some(format) = StreamFormat::of_ending(ending) else {
        let known = StreamFormat::ENDINGS.map(|(ending, _)| format!(".{ending}")).join(" ");
        return Err(of_document(&format!(
            "an RDF document ends with one of {known}, each alone or followed by .gz, .bz2 or .zst, or with .jsonld"
        )));
    };
    let document = hash(file, length).with_context(|| path.display().to_string())?;
    let sorted = Sorting { path, format, compression, length }.into_file(&document, cache)?;
    Dump::open(sorted, document, mapping).map_err(|error| of_document(&error))
}

fn hash(mut file: File, length: u64) -> io::Result<DocumentHash> {
    let mut hash = DocumentHash::new(length);
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hash),
            read => hash.update(&buffer[..read]),
        }
    }
}

/// A document that is to be sorted.
struct Sorting<'a> {
    path: &'a Path,
    format: StreamFormat,
    compression: Compression,
    length: u64,
}

impl Sorting<'_> {
    /// The sorted file of the document: made before, or now. A file is complete before it has its name, so what was killed while it
    /// made one leaves none, and the next command begins again.
    fn into_file(self, document: &DocumentHash, cache: &Path) -> anyhow::Result<SortedTriples> {
        let name = document.name();
        let place = |ending: &str| cache.join(format!("{name}.{ending}"));
        fs::create_dir_all(cache).with_context(|| cache.display().to_string())?;
        // Of two commands that need the same file one makes it; the system gives the lock back however that one ends.
        let lock = File::create(place("lock")).with_context(|| place("lock").display().to_string())?;
        if lock.try_lock().is_err() {
            note!("another command sorts {}; this one waits for it", self.path.display());
            lock.lock().with_context(|| place("lock").display().to_string())?;
        }
        let path = place("triples");
        match SortedTriples::open(&path) {
            Ok(sorted) => return Ok(sorted),
            Err(SortedError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => say(&format!("{}: {error}; it is made again", path.display())),
        }
        let mega = self.length >> 20;
        note!("sorting {} ({mega} MB) into {}, once", self.path.display(), path.display());
        let scratch = place("part");
        self.sort(&scratch, &path)?;
        SortedTriples::open(&path).with_context(|| path.display().to_string())
    }

    fn sort(&self, scratch: &Path, path: &Path) -> anyhow::Result<()> {
        // Of a command that was killed.
        match fs::remove_dir_all(scratch) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).with_context(|| scratch.display().to_string());
            }
            _ => {}
        }
        fs::create_dir_all(scratch).with_context(|| scratch.display().to_string())?;
        let mut writer = SortedWriter::new(scratch);
        let file =
            service_kit::named_files::open(self.path).with_context(|| self.path.display().to_string())?;
        let mut input = self.compression.open(file)?;
        read_triples(&mut input, self.format, &mut |subject, property, object| match subject {
            NamedOrBlankNode::NamedNode(subject) => writer.add(subject.as_str(), property.as_str(), object),
            // Blank nodes have no name to ask about.
            NamedOrBlankNode::BlankNode(_) => Ok(()),
        })
        .map_err(|error| match error {
            StreamError::Io(error) => anyhow::Error::new(error).context(self.path.display().to_string()),
            error => Exit::usage(anyhow::anyhow!("{}: {error}", self.path.display())),
        })?;
        results::files::replace(path, |mut file| writer.finish(&mut file).map(|_| file))
            .and_then(|()| fs::remove_dir_all(scratch))
            .with_context(|| path.display().to_string())
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
