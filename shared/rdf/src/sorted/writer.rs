//! Writes a file of sorted triples.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use oxrdf::Term;

use super::merge::RowSorter;
use super::{MAGIC, VERSION, frame, object};

/// Bytes of triples that are sorted in memory at once. With what merging takes it stays below the gigabyte that a machine
/// which draws questions can spare.
const SORTED_BYTES_MAX: usize = 192 << 20;

/// Length after which a block ends, in bytes. A longer one would be read for the sake of one subject, a shorter one compresses
/// less and makes the directory larger.
const BLOCK_BYTES: usize = 64 << 10;

/// Sorts triples into a file.
pub struct SortedWriter {
    sorter: RowSorter,
}

impl SortedWriter {
    /// `folder` holds what does not fit into memory, until the file is finished.
    pub fn new(folder: &Path) -> Self {
        Self::with_memory(folder, SORTED_BYTES_MAX)
    }

    /// The same with another number of bytes that are sorted in memory.
    pub(super) fn with_memory(folder: &Path, bytes_max: usize) -> Self {
        Self { sorter: RowSorter::new(folder, bytes_max) }
    }

    /// Adds a triple, in any order. The same triple again changes nothing.
    ///
    /// # Errors
    /// The folder cannot be written to.
    pub fn add(&mut self, subject: &str, property: &str, object: &Term) -> io::Result<()> {
        self.sorter.add(|row| {
            // No IRI contains the character of code 0, so this sorts by subject first, then by property.
            for part in [subject, property] {
                row.extend_from_slice(part.as_bytes());
                row.push(0);
            }
            object::write(object, row);
        })
    }

    /// Writes the file; its number of triples. The caller syncs it.
    ///
    /// # Errors
    /// The file or the folder cannot be written to.
    pub fn finish(self, file: &mut File) -> io::Result<u64> {
        let mut out = BlockWriter::new(BufWriter::new(file))?;
        self.sorter.finish(|row| out.add(row))?;
        out.finish()
    }
}

/// Cuts sorted rows into blocks.
struct BlockWriter<'a> {
    out: BufWriter<&'a mut File>,
    /// Bytes written so far.
    at: u64,
    block: Vec<u8>,
    subject: Vec<u8>,
    directory: Vec<u8>,
    blocks: u64,
    triples: u64,
    subjects: u64,
}

impl<'a> BlockWriter<'a> {
    fn new(mut out: BufWriter<&'a mut File>) -> io::Result<Self> {
        out.write_all(&MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        Ok(Self {
            out,
            at: (MAGIC.len() + size_of_val(&VERSION)) as u64,
            block: Vec::with_capacity(2 * BLOCK_BYTES),
            subject: Vec::new(),
            directory: Vec::new(),
            blocks: 0,
            triples: 0,
            subjects: 0,
        })
    }

    fn add(&mut self, row: &[u8]) -> io::Result<()> {
        let end = row.iter().position(|byte| *byte == 0).unwrap_or(row.len());
        let (subject, rest) = (&row[..end], row.get(end + 1..).unwrap_or_default());
        let is_new = subject != self.subject.as_slice() || self.triples == 0;
        if is_new {
            self.subjects += 1;
            self.subject.clear();
            self.subject.extend_from_slice(subject);
        }
        if self.block.is_empty() {
            self.directory.extend_from_slice(&self.at.to_le_bytes());
            with_length(subject, &mut self.directory);
        }
        // Every block names its first subject, so that it can be read without the one before.
        if is_new || self.block.is_empty() {
            self.block.push(1);
            with_length(subject, &mut self.block);
        } else {
            self.block.push(0);
        }
        with_length(rest, &mut self.block);
        self.triples += 1;
        if self.block.len() >= BLOCK_BYTES { self.end_block() } else { Ok(()) }
    }

    fn end_block(&mut self) -> io::Result<()> {
        if !self.block.is_empty() {
            self.at += frame::write(&mut self.out, &self.block)?;
            self.blocks += 1;
            self.block.clear();
        }
        Ok(())
    }

    fn finish(mut self) -> io::Result<u64> {
        self.end_block()?;
        let directory = self.at;
        for piece in self.directory.chunks(frame::FRAME_BYTES_MAX) {
            frame::write(&mut self.out, piece)?;
        }
        let mut foot = Vec::new();
        for number in [directory, self.blocks, self.triples, self.subjects] {
            foot.extend_from_slice(&number.to_le_bytes());
        }
        let checksum = crc32fast::hash(&foot);
        foot.extend_from_slice(&checksum.to_le_bytes());
        foot.extend_from_slice(&MAGIC);
        self.out.write_all(&foot)?;
        self.out.flush()?;
        Ok(self.triples)
    }
}

/// Rows are bounded, so their lengths fit.
fn with_length(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}
