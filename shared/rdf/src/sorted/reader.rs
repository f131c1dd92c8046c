//! Reads a file of sorted triples.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use oxrdf::Term;

use super::object::StoredObject;
use super::{MAGIC, SortedError, VERSION, frame};

/// Bytes of blocks that are kept in memory.
const KEPT_BYTES_MAX: usize = 64 << 20;

/// Length of the foot, in bytes.
const FOOT_BYTES: usize = 44;

/// A place is the number of a block, and in the lower bits the offset in it.
const OFFSET_BITS: u32 = 32;

/// A file of sorted triples.
#[derive(Debug)]
pub struct SortedTriples {
    file: File,
    directory: Vec<BlockEntry>,
    triples: u64,
    subjects: u64,
    kept: KeptBlocks,
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
        let length = file.metadata()?.len();
        let mut head = [0; 12];
        let foot_at = length.checked_sub(FOOT_BYTES as u64).filter(|at| *at >= head.len() as u64);
        let foot_at = foot_at.ok_or(SortedError::Damaged("it is too short"))?;
        file.read_exact_at(&mut head, 0)?;
        if head[..8] != MAGIC {
            return Err(SortedError::Damaged("it does not begin as one"));
        }
        if head[8..] != VERSION.to_le_bytes() {
            return Err(SortedError::Damaged("it is of another version"));
        }
        let mut foot = [0; FOOT_BYTES];
        file.read_exact_at(&mut foot, foot_at)?;
        if foot[36..] != MAGIC || foot[32..36] != crc32fast::hash(&foot[..32]).to_le_bytes() {
            return Err(SortedError::Damaged("its end is missing"));
        }
        let numbers: Vec<u64> = foot[..32].chunks_exact(8).map(number).collect();
        let [at, blocks, triples, subjects] = numbers[..] else {
            return Err(SortedError::Damaged("its end is missing"));
        };
        let directory = read_directory(&file, at, foot_at)?;
        if directory.len() as u64 != blocks {
            return Err(SortedError::Damaged("its directory is not complete"));
        }
        Ok(Self { file, directory, triples, subjects, kept: KeptBlocks::default() })
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
            let content = self.block(block)?;
            let mut entries = Entries::of(&content);
            while let Some(entry) = entries.next()? {
                if entry.subject == subject {
                    if only.is_some_and(|only| !only.contains(&entry.property)) {
                        continue;
                    }
                    let object = entry.object.term();
                    let object = object.ok_or(SortedError::Damaged("an object cannot be read"))?;
                    found.push((entry.property.to_owned(), object));
                } else if entry.subject > subject {
                    return Ok(found);
                }
            }
        }
        Ok(found)
    }

    /// Hands every statement to `take`, in their order: a place that [`SortedTriples::subject_at`] understands, subject, property
    /// and object. Nothing of it is kept in memory.
    ///
    /// # Errors
    /// The file cannot be read, or was changed.
    pub fn visit(&self, take: &mut dyn FnMut(u64, &str, &str, StoredObject<'_>)) -> Result<(), SortedError> {
        for (block, entry) in self.directory.iter().enumerate() {
            let (content, _) = frame::read(&self.file, entry.at)?;
            let mut entries = Entries::of(&content);
            while let Some(entry) = entries.next()? {
                take(
                    (block as u64) << OFFSET_BITS | entry.begins as u64,
                    entry.subject,
                    entry.property,
                    entry.object,
                );
            }
        }
        Ok(())
    }

    /// The subject of the statements at a place.
    ///
    /// # Errors
    /// The file cannot be read, or was changed.
    pub fn subject_at(&mut self, place: u64) -> Result<String, SortedError> {
        let content = self.block((place >> OFFSET_BITS) as usize)?;
        let offset = (place & ((1 << OFFSET_BITS) - 1)) as usize;
        let mut entries = Entries { at: offset, ..Entries::of(&content) };
        let entry = entries.next()?.ok_or(SortedError::Damaged("a place is not in it"))?;
        Ok(entry.subject.to_owned())
    }

    fn block(&mut self, number: usize) -> Result<Arc<[u8]>, SortedError> {
        if let Some(kept) = self.kept.get(number) {
            return Ok(kept);
        }
        let entry = self.directory.get(number).ok_or(SortedError::Damaged("a block is missing"))?;
        let (content, _) = frame::read(&self.file, entry.at)?;
        let content: Arc<[u8]> = content.into();
        self.kept.put(number, Arc::clone(&content));
        Ok(content)
    }
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

fn read_directory(file: &File, at: u64, end: u64) -> Result<Vec<BlockEntry>, SortedError> {
    let (mut bytes, mut from) = (Vec::new(), at);
    while from < end {
        let (piece, behind) = frame::read(file, from)?;
        bytes.extend(piece);
        from = behind;
    }
    let mut entries = Vec::new();
    let mut rest = Cut(&bytes, 0);
    while !rest.is_empty() {
        let block = number(rest.take(8)?);
        let first = rest.text()?.into();
        entries.push(BlockEntry { at: block, first });
    }
    Ok(entries)
}

/// Reads bytes from a place on.
struct Cut<'a>(&'a [u8], usize);

impl<'a> Cut<'a> {
    fn is_empty(&self) -> bool {
        self.1 >= self.0.len()
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], SortedError> {
        let end = self.1.checked_add(length).filter(|end| *end <= self.0.len());
        let end = end.ok_or(SortedError::Damaged("an entry is cut off"))?;
        let taken = &self.0[self.1..end];
        self.1 = end;
        Ok(taken)
    }

    fn with_length(&mut self) -> Result<&'a [u8], SortedError> {
        let length = number(self.take(4)?) as usize;
        self.take(length)
    }

    fn text(&mut self) -> Result<&'a str, SortedError> {
        std::str::from_utf8(self.with_length()?).map_err(|_| SortedError::Damaged("a name is no text"))
    }
}

/// The entries of a block.
struct Entries<'a> {
    content: &'a [u8],
    at: usize,
    subject: &'a str,
    /// Where the entry that names the subject is.
    begins: usize,
}

struct Entry<'a> {
    subject: &'a str,
    begins: usize,
    property: &'a str,
    object: StoredObject<'a>,
}

impl<'a> Entries<'a> {
    fn of(content: &'a [u8]) -> Self {
        Self { content, at: 0, subject: "", begins: 0 }
    }

    fn next(&mut self) -> Result<Option<Entry<'a>>, SortedError> {
        let mut cut = Cut(self.content, self.at);
        if cut.is_empty() {
            return Ok(None);
        }
        if cut.take(1)? == [1] {
            self.begins = self.at;
            self.subject = cut.text()?;
        }
        let rest = cut.with_length()?;
        self.at = cut.1;
        let end =
            rest.iter().position(|byte| *byte == 0).ok_or(SortedError::Damaged("an entry is cut off"))?;
        let property =
            std::str::from_utf8(&rest[..end]).map_err(|_| SortedError::Damaged("a name is no text"))?;
        let object = StoredObject(&rest[end + 1..]);
        Ok(Some(Entry { subject: self.subject, begins: self.begins, property, object }))
    }
}

/// The blocks that were read last.
#[derive(Debug, Default)]
struct KeptBlocks {
    blocks: BTreeMap<usize, (u64, Arc<[u8]>)>,
    bytes: usize,
    reads: u64,
}

impl KeptBlocks {
    fn get(&mut self, number: usize) -> Option<Arc<[u8]>> {
        self.reads += 1;
        let (read, content) = self.blocks.get_mut(&number)?;
        *read = self.reads;
        Some(Arc::clone(content))
    }

    /// Keeps a block in place of those that were read least lately.
    fn put(&mut self, number: usize, content: Arc<[u8]>) {
        self.bytes += content.len();
        self.blocks.insert(number, (self.reads, content));
        while self.bytes > KEPT_BYTES_MAX && self.blocks.len() > 1 {
            let Some(oldest) =
                self.blocks.iter().min_by_key(|(_, (read, _))| *read).map(|(number, _)| *number)
            else {
                return;
            };
            if let Some((_, content)) = self.blocks.remove(&oldest) {
                self.bytes -= content.len();
            }
        }
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
        // Every byte of a block is covered by its checksum or its lengths.
        for at in (12..whole.len() - FOOT_BYTES).step_by(whole.len() / 50) {
            let mut changed = whole.clone();
            changed[at] ^= 0x10;
            std::fs::write(&path, changed).unwrap();
            let read = SortedTriples::open(&path).and_then(|sorted| sorted.visit(&mut |_, _, _, _| ()));
            assert!(read.is_err(), "byte {at}");
        }
    }
}
