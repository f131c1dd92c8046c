//! Writes a file of sorted triples.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use oxrdf::Term;
use zstd::bulk::Compressor;

use super::MAGIC;
use super::merge::LineSorter;

/// Bytes of triples that are sorted in memory at once. With what merging takes it stays below the gigabyte that a machine
/// which draws questions can spare.
const SORTED_BYTES_MAX: usize = 192 << 20;

/// Length after which a block ends, in bytes. A longer one would be read for the sake of one subject, a shorter one compresses
/// less and makes the directory larger.
const BLOCK_BYTES: usize = 64 << 10;

/// Compression level: the file is written once, and reading takes the same time at every level.
const LEVEL: i32 = 3;

/// Sorts triples into a file.
pub struct SortedWriter {
    sorter: LineSorter,
}

impl SortedWriter {
    /// `folder` holds what does not fit into memory, until the file is finished.
    pub fn new(folder: &Path) -> Self {
        Self::with_memory(folder, SORTED_BYTES_MAX)
    }

    /// The same with another number of bytes that are sorted in memory.
    pub(super) fn with_memory(folder: &Path, bytes_max: usize) -> Self {
        Self { sorter: LineSorter::new(folder, bytes_max) }
    }

    /// Adds a triple, in any order. The same triple again changes nothing.
    ///
    /// # Errors
    /// The folder cannot be written to.
    pub fn add(&mut self, subject: &str, property: &str, object: &Term) -> io::Result<()> {
        // A blank comes before all characters of IRIs, so this sorts by subject first, then by property.
        self.sorter.add(format!("{subject} {property} {object}"))
    }

    /// Writes the file; its number of triples. The caller syncs it.
    ///
    /// # Errors
    /// The file or the folder cannot be written to.
    pub fn finish(self, file: &mut File) -> io::Result<u64> {
        let mut out = BlockWriter::new(BufWriter::new(file))?;
        self.sorter.finish(|line| out.add(line))?;
        out.finish()
    }
}

/// Cuts sorted lines into blocks.
struct BlockWriter<'a> {
    out: BufWriter<&'a mut File>,
    compressor: Compressor<'static>,
    /// Bytes written so far.
    at: u64,
    block: String,
    subject: String,
    directory: String,
    triples: u64,
    subjects: u64,
}

impl<'a> BlockWriter<'a> {
    fn new(mut out: BufWriter<&'a mut File>) -> io::Result<Self> {
        out.write_all(&MAGIC)?;
        let mut compressor = Compressor::new(LEVEL)?;
        compressor.include_checksum(true)?;
        let (block, subject, directory) = (String::new(), String::new(), String::new());
        let at = MAGIC.len() as u64;
        Ok(Self { out, compressor, at, block, subject, directory, triples: 0, subjects: 0 })
    }

    fn add(&mut self, line: &str) -> io::Result<()> {
        let subject = line.split(' ').next().unwrap_or_default();
        if subject != self.subject || self.triples == 0 {
            self.subjects += 1;
            subject.clone_into(&mut self.subject);
        }
        if self.block.is_empty() {
            // Writing into a string does not fail.
            let _ = writeln!(self.directory, "{} {subject}", self.at);
        }
        self.block.push_str(line);
        self.block.push('\n');
        self.triples += 1;
        if self.block.len() >= BLOCK_BYTES { self.end_block() } else { Ok(()) }
    }

    fn end_block(&mut self) -> io::Result<()> {
        let compressed = self.compressor.compress(self.block.as_bytes())?;
        self.block.clear();
        self.at += compressed.len() as u64;
        self.out.write_all(&compressed)
    }

    fn finish(mut self) -> io::Result<u64> {
        if !self.block.is_empty() {
            self.end_block()?;
        }
        let directory_at = self.at.to_le_bytes();
        self.block = format!("{} {}\n{}", self.triples, self.subjects, self.directory);
        self.end_block()?;
        self.out.write_all(&directory_at)?;
        self.out.write_all(&crc32fast::hash(&directory_at).to_le_bytes())?;
        self.out.write_all(&MAGIC)?;
        self.out.flush()?;
        Ok(self.triples)
    }
}
