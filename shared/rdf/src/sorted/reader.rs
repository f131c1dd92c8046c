//! Reads a file of sorted triples.

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use oxrdf::{BlankNode, Literal, NamedNode, Term};

use super::{MAGIC, SortedError};

/// Bytes of blocks that are kept in memory.
const KEPT_BYTES_MAX: usize = 64 << 20;

/// Length of the foot, in bytes.
const FOOT_BYTES: usize = 20;

/// A place is the number of a block, and in the lower bits the offset in it.
const OFFSET_BITS: u32 = 32;

/// A file of sorted triples.
#[derive(Debug)]
pub struct SortedTriples {
    file: File,
    directory: Vec<BlockEntry>,
    /// Where the last block ends.
    end: u64,
    triples: u64,
    subjects: u64,
    /// The blocks that were read last, the newest at the end.
    kept: VecDeque<(usize, Arc<str>)>,
}

/// Where a block is, and its first subject.
#[derive(Debug)]
struct BlockEntry {
    at: u64,
    first: Box<str>,
}

impl SortedTriples {
    /// Opens a file. What is read later is checked when it is read.
    ///
    /// # Errors
    /// It cannot be read, or is of another version, or was cut off or changed.
    pub fn open(path: &Path) -> Result<Self, SortedError> {
        let file = File::open(path)?;
        let foot_at = file.metadata()?.len().checked_sub(FOOT_BYTES as u64);
        let foot_at = foot_at.ok_or(SortedError::Damaged("it is too short"))?;
        let (mut head, mut foot) = ([0; MAGIC.len()], [0; FOOT_BYTES]);
        file.read_exact_at(&mut head, 0)?;
        file.read_exact_at(&mut foot, foot_at)?;
        if head != MAGIC {
            return Err(SortedError::Damaged("it does not begin as one of this version"));
        }
        let (at, rest) = foot.split_first_chunk().ok_or(SortedError::Damaged("its end is missing"))?;
        if rest[4..] != MAGIC || rest[..4] != crc32fast::hash(at).to_le_bytes() {
            return Err(SortedError::Damaged("its end is missing"));
        }
        let end = u64::from_le_bytes(*at);
        let text = read(&file, end, foot_at)?;
        let mut lines = text.lines().map(|line| {
            let (number, rest) = line.split_once(' ')?;
            Some((number.parse::<u64>().ok()?, rest))
        });
        let counts = lines.next().flatten().and_then(|(triples, rest)| Some((triples, rest.parse().ok()?)));
        let entry = |(at, first): (u64, &str)| BlockEntry { at, first: first.into() };
        let directory: Option<Vec<BlockEntry>> = lines.map(|line| line.map(entry)).collect();
        let damaged = SortedError::Damaged("its directory cannot be read");
        let ((triples, subjects), directory) = counts.zip(directory).ok_or(damaged)?;
        Ok(Self { file, directory, end, triples, subjects, kept: VecDeque::new() })
    }

    /// Number of triples.
    pub fn triples(&self) -> u64 {
        self.triples
    }

    /// Number of subjects.
    pub fn subjects(&self) -> u64 {
        self.subjects
    }

    /// The statements about a subject, property and object: all, or those with one of these properties.
    ///
    /// # Errors
    /// The file cannot be read, or was changed.
    pub fn of(&mut self, subject: &str, only: Option<&[&str]>) -> Result<Vec<(String, Term)>, SortedError> {
        // A subject may begin in the block before the first that it begins.
        let first = self.directory.partition_point(|entry| *entry.first < *subject).saturating_sub(1);
        let mut found = Vec::new();
        for block in first..self.directory.len() {
            for line in self.block(block)?.lines() {
                let [of, property, object] = parts(line)?;
                if of == subject && only.is_none_or(|only| only.contains(&property)) {
                    let object = term(object).ok_or(SortedError::Damaged("an object cannot be read"))?;
                    found.push((property.to_owned(), object));
                } else if of > subject {
                    return Ok(found);
                }
            }
        }
        Ok(found)
    }

    /// Hands every statement to `take`, in their order: a place that [`SortedTriples::subject_at`] understands, subject, property
    /// and object, the last as N-Triples write it. Nothing of it is kept in memory.
    ///
    /// # Errors
    /// The file cannot be read, or was changed.
    pub fn visit(&self, take: &mut dyn FnMut(u64, &str, &str, &str)) -> Result<(), SortedError> {
        for block in 0..self.directory.len() {
            let mut at = (block as u64) << OFFSET_BITS;
            for line in self.read_block(block)?.lines() {
                let [subject, property, object] = parts(line)?;
                take(at, subject, property, object);
                at += line.len() as u64 + 1;
            }
        }
        Ok(())
    }

    /// The subject of the statement at a place.
    ///
    /// # Errors
    /// The file cannot be read, or was changed.
    pub fn subject_at(&mut self, place: u64) -> Result<String, SortedError> {
        let content = self.block((place >> OFFSET_BITS) as usize)?;
        let offset = (place & ((1 << OFFSET_BITS) - 1)) as usize;
        let line = content.get(offset..).and_then(|rest| rest.lines().next());
        let [subject, ..] = parts(line.ok_or(SortedError::Damaged("a place is not in it"))?)?;
        Ok(subject.to_owned())
    }

    /// A block, kept in place of those that were read least lately.
    fn block(&mut self, number: usize) -> Result<Arc<str>, SortedError> {
        let known = self.kept.iter().position(|(known, _)| *known == number);
        let content = match known.and_then(|at| self.kept.remove(at)) {
            Some((_, content)) => content,
            None => self.read_block(number)?.into(),
        };
        self.kept.push_back((number, Arc::clone(&content)));
        let mut bytes: usize = self.kept.iter().map(|(_, content)| content.len()).sum();
        while bytes > KEPT_BYTES_MAX && self.kept.len() > 1 {
            bytes -= self.kept.pop_front().map_or(0, |(_, content)| content.len());
        }
        Ok(content)
    }

    fn read_block(&self, number: usize) -> Result<String, SortedError> {
        let entry = self.directory.get(number).ok_or(SortedError::Damaged("a block is missing"))?;
        read(&self.file, entry.at, self.directory.get(number + 1).map_or(self.end, |next| next.at))
    }
}

/// What was compressed between two places; its checksum is compared.
fn read(file: &File, begin: u64, end: u64) -> Result<String, SortedError> {
    let length = end.checked_sub(begin).ok_or(SortedError::Damaged("its parts overlap"))?;
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, begin)?;
    let content = zstd::decode_all(bytes.as_slice())?;
    String::from_utf8(content).map_err(|_| SortedError::Damaged("a part of it is no text"))
}

/// Subject, property and object of a line.
fn parts(line: &str) -> Result<[&str; 3], SortedError> {
    let parts: Vec<&str> = line.splitn(3, ' ').collect();
    parts.try_into().map_err(|_| SortedError::Damaged("a statement is cut off"))
}

/// The term of an object; `None` if the text is none. What a parser once took for a name is not checked again.
fn term(object: &str) -> Option<Term> {
    if let Some(iri) = object.strip_prefix('<') {
        return Some(NamedNode::new_unchecked(iri.strip_suffix('>')?).into());
    }
    match object.strip_prefix("_:") {
        Some(label) => Some(BlankNode::new_unchecked(label).into()),
        None => Literal::from_str(object).ok().map(Term::from),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use oxrdf::{BlankNode, Literal, NamedNode};

    use super::*;
    use crate::sorted::SortedWriter;

    /// Objects of every kind; some so long that a subject has several blocks.
    fn object(number: usize) -> Term {
        match number % 6 {
            0 => NamedNode::new(format!("http://e/o{number}")).unwrap().into(),
            1 => BlankNode::new(format!("b{number}")).unwrap().into(),
            2 => Literal::new_simple_literal(format!("nothing \0 in it {number}")).into(),
            3 => Literal::new_language_tagged_literal(format!("Wort {number}"), "de").unwrap().into(),
            4 => Literal::from(number as i64).into(),
            _ => Literal::new_simple_literal("long ".repeat(13_000)).into(),
        }
    }

    fn subject(number: usize) -> String {
        format!("http://e/s{}", number % 40)
    }

    fn written(folder: &Path, bytes_max: usize) -> std::path::PathBuf {
        let path = folder.join("sorted");
        let mut writer = SortedWriter::with_memory(folder, bytes_max);
        for number in (0..600).chain(100..200) {
            writer.add(&subject(number), "http://e/p", &object(number)).unwrap();
        }
        // The 100 literals of type 5 are one and the same for each subject.
        let triples = writer.finish(&mut File::create(&path).unwrap()).unwrap();
        let distinct: BTreeSet<String> =
            (0..600).map(|number| format!("{} {}", subject(number), object(number))).collect();
        assert_eq!(triples, distinct.len() as u64);
        path
    }

    #[test]
    fn what_was_written_is_found_by_subject() {
        for bytes_max in [50_000, 64 << 20] {
            let folder = tempfile::tempdir().unwrap();
            let mut sorted = SortedTriples::open(&written(folder.path(), bytes_max)).unwrap();
            assert_eq!(sorted.subjects(), 40);
            assert!(sorted.directory.len() > 10, "{} blocks", sorted.directory.len());
            for number in 0..40 {
                let found = sorted.of(&subject(number), None).unwrap();
                let found: BTreeSet<String> =
                    found.into_iter().map(|(_, object)| object.to_string()).collect();
                let own = (0..600).filter(|other| other % 40 == number);
                let expected: BTreeSet<String> = own.map(|other| object(other).to_string()).collect();
                assert_eq!(found, expected, "{number}");
            }
            for nobody in ["", "http://e/s", "http://e/s100", "http://e/z"] {
                assert!(sorted.of(nobody, None).unwrap().is_empty(), "{nobody}");
            }
        }
    }

    #[test]
    fn a_visit_sees_every_statement_and_its_places_lead_back() {
        let folder = tempfile::tempdir().unwrap();
        let mut sorted = SortedTriples::open(&written(folder.path(), 64 << 20)).unwrap();
        let mut seen = Vec::new();
        sorted.visit(&mut |place, subject, _, _| seen.push((place, subject.to_owned()))).unwrap();
        assert_eq!(seen.len() as u64, sorted.triples());
        for (place, subject) in seen {
            assert_eq!(sorted.subject_at(place).unwrap(), subject);
        }
    }

    #[test]
    fn a_file_that_was_cut_off_or_changed_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = written(folder.path(), 64 << 20);
        let whole = std::fs::read(&path).unwrap();
        for length in [0, 11, 60, whole.len() - 1] {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert!(matches!(SortedTriples::open(&path), Err(SortedError::Damaged(_))), "{length}");
        }
        // Every byte of a block is covered by its checksum.
        for at in (MAGIC.len()..whole.len() - FOOT_BYTES).step_by(whole.len() / 50) {
            let mut changed = whole.clone();
            changed[at] ^= 0x10;
            std::fs::write(&path, changed).unwrap();
            let read = SortedTriples::open(&path).and_then(|sorted| sorted.visit(&mut |_, _, _, _| ()));
            assert!(read.is_err(), "byte {at}");
        }
    }
}
