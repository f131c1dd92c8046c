//! Sorts rows of bytes that do not fit into memory: sorted runs on disk, which are merged.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// Maximum number of runs that are merged at once; each holds a buffer and a decompressor of some 2 MB.
const RUNS_MERGED_MAX: usize = 48;

/// Maximum length of a row, in bytes: more than the largest tokens of the parsers together.
const ROW_BYTES_MAX: u32 = 128 << 20;

/// Compression level of runs, which are written and read once.
const LEVEL: i32 = 1;

/// Collects rows; see [`RowSorter::finish`].
pub(super) struct RowSorter {
    folder: PathBuf,
    /// Bytes of rows after which a run is written.
    bytes_max: usize,
    bytes: Vec<u8>,
    /// Where each row begins and ends in `bytes`.
    rows: Vec<(usize, usize)>,
    runs: Vec<PathBuf>,
    written: usize,
}

impl RowSorter {
    pub(super) fn new(folder: &Path, bytes_max: usize) -> Self {
        let (bytes, rows) = (Vec::new(), Vec::new());
        Self { folder: folder.to_owned(), bytes_max, bytes, rows, runs: Vec::new(), written: 0 }
    }

    /// Adds the row that `write` appends.
    pub(super) fn add(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let start = self.bytes.len();
        write(&mut self.bytes);
        self.rows.push((start, self.bytes.len()));
        if self.bytes.len() + self.rows.len() * size_of::<(usize, usize)>() < self.bytes_max {
            return Ok(());
        }
        self.spill()
    }

    /// Writes what is in memory as a run.
    fn spill(&mut self) -> io::Result<()> {
        let mut run = RunWriter::create(self.next_run())?;
        let bytes = &self.bytes;
        self.rows.sort_unstable_by(|a, b| bytes[a.0..a.1].cmp(&bytes[b.0..b.1]));
        let mut last: Option<&[u8]> = None;
        for (start, end) in &self.rows {
            let row = &bytes[*start..*end];
            if last != Some(row) {
                run.write(row)?;
                last = Some(row);
            }
        }
        self.runs.push(run.finish()?);
        self.bytes.clear();
        self.rows.clear();
        Ok(())
    }

    fn next_run(&mut self) -> PathBuf {
        self.written += 1;
        self.folder.join(format!("run-{}", self.written))
    }

    /// Hands all rows to `take` in their order, none twice, and removes the runs.
    pub(super) fn finish(mut self, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        if !self.rows.is_empty() {
            self.spill()?;
        }
        // What is no longer filled is given back before the merge takes memory.
        (self.bytes, self.rows) = (Vec::new(), Vec::new());
        while self.runs.len() > RUNS_MERGED_MAX {
            let some: Vec<PathBuf> = self.runs.drain(..RUNS_MERGED_MAX).collect();
            let mut run = RunWriter::create(self.next_run())?;
            merge(&some, &mut |row| run.write(row))?;
            self.runs.push(run.finish()?);
        }
        merge(&self.runs, &mut take)
    }
}

/// Merges runs, and removes them.
fn merge(runs: &[PathBuf], take: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut readers = runs.iter().map(|path| RunReader::open(path)).collect::<io::Result<Vec<_>>>()?;
    let mut heap = BinaryHeap::with_capacity(readers.len());
    for (number, reader) in readers.iter_mut().enumerate() {
        heap.extend(reader.next()?.map(|row| Reverse((row, number))));
    }
    let mut last: Option<Vec<u8>> = None;
    while let Some(Reverse((row, number))) = heap.pop() {
        heap.extend(readers[number].next()?.map(|row| Reverse((row, number))));
        if last.as_ref() != Some(&row) {
            take(&row)?;
            last = Some(row);
        }
    }
    drop(readers);
    runs.iter().try_for_each(fs::remove_file)
}

/// Writes a run: rows with their lengths, compressed as a whole.
struct RunWriter {
    path: PathBuf,
    out: zstd::stream::write::Encoder<'static, BufWriter<File>>,
}

impl RunWriter {
    fn create(path: PathBuf) -> io::Result<Self> {
        let out = zstd::stream::write::Encoder::new(BufWriter::new(File::create(&path)?), LEVEL)?;
        Ok(Self { path, out })
    }

    fn write(&mut self, row: &[u8]) -> io::Result<()> {
        let length = u32::try_from(row.len()).ok().filter(|length| *length <= ROW_BYTES_MAX);
        let length = length.ok_or_else(|| {
            let words = format!("a statement is longer than {} MB", ROW_BYTES_MAX >> 20);
            io::Error::new(io::ErrorKind::InvalidData, words)
        })?;
        self.out.write_all(&length.to_le_bytes())?;
        self.out.write_all(row)
    }

    fn finish(self) -> io::Result<PathBuf> {
        self.out.finish()?.flush()?;
        Ok(self.path)
    }
}

/// Reads a run row by row.
struct RunReader(zstd::stream::read::Decoder<'static, BufReader<File>>);

impl RunReader {
    fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(zstd::stream::read::Decoder::new(File::open(path)?)?))
    }

    /// The next row; `None` at the end.
    fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut length = [0; 4];
        match self.0.read_exact(&mut length) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error),
        }
        let mut row = vec![0; u32::from_le_bytes(length) as usize];
        self.0.read_exact(&mut row)?;
        Ok(Some(row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_sorted_and_once_whatever_fits_into_memory() {
        // So many runs that they are merged more than once.
        for bytes_max in [200, 4_000, 1 << 20] {
            let folder = tempfile::tempdir().unwrap();
            let mut sorter = RowSorter::new(folder.path(), bytes_max);
            for number in 0..3_000_u32 {
                let row = (number.wrapping_mul(2_654_435_761) % 1_000).to_string();
                sorter.add(|out| out.extend_from_slice(row.as_bytes())).unwrap();
            }
            let mut rows = Vec::new();
            let mut take = |row: &[u8]| {
                rows.push(row.to_vec());
                Ok(())
            };
            sorter.finish(&mut take).unwrap();
            assert!(rows.len() > 600 && rows.windows(2).all(|pair| pair[0] < pair[1]), "{}", rows.len());
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "runs are removed");
        }
    }
}
