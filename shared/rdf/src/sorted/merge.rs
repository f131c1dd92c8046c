//! Sorts lines that do not fit into memory: sorted runs on disk, which are merged.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Maximum number of runs that are merged at once; each holds a buffer and a decompressor of some 2 MB.
const RUNS_MERGED_MAX: usize = 48;

/// Compression level of runs, which are written and read once.
const LEVEL: i32 = 1;

/// Collects lines; see [`LineSorter::finish`].
pub(super) struct LineSorter {
    folder: PathBuf,
    /// Bytes of lines after which a run is written.
    bytes_max: usize,
    bytes: usize,
    lines: Vec<String>,
    runs: Vec<PathBuf>,
    written: usize,
}

impl LineSorter {
    pub(super) fn new(folder: &Path, bytes_max: usize) -> Self {
        Self {
            folder: folder.to_owned(),
            bytes_max,
            bytes: 0,
            lines: Vec::new(),
            runs: Vec::new(),
            written: 0,
        }
    }

    /// Adds a line, which has no line break.
    pub(super) fn add(&mut self, line: String) -> io::Result<()> {
        self.bytes += line.capacity() + size_of::<String>();
        self.lines.push(line);
        if self.bytes < self.bytes_max { Ok(()) } else { self.spill() }
    }

    /// Writes what is in memory as a run.
    fn spill(&mut self) -> io::Result<()> {
        self.bytes = 0;
        let mut lines = std::mem::take(&mut self.lines);
        lines.sort_unstable();
        lines.dedup();
        self.write_run(|run| lines.iter().try_for_each(|line| writeln!(run, "{line}")))
    }

    fn write_run(&mut self, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        self.written += 1;
        let path = self.folder.join(format!("run-{}", self.written));
        let mut run = zstd::stream::write::Encoder::new(BufWriter::new(File::create(&path)?), LEVEL)?;
        fill(&mut run)?;
        run.finish()?.flush()?;
        self.runs.push(path);
        Ok(())
    }

    /// Hands all lines to `take` in their order, none twice, and removes the runs.
    pub(super) fn finish(mut self, mut take: impl FnMut(&str) -> io::Result<()>) -> io::Result<()> {
        self.spill()?;
        while self.runs.len() > RUNS_MERGED_MAX {
            let some: Vec<PathBuf> = self.runs.drain(..RUNS_MERGED_MAX).collect();
            self.write_run(|run| merge(&some, &mut |line| writeln!(run, "{line}")))?;
        }
        merge(&self.runs, &mut take)
    }
}

/// Merges runs, and removes them.
fn merge(runs: &[PathBuf], take: &mut dyn FnMut(&str) -> io::Result<()>) -> io::Result<()> {
    let open =
        |path: &PathBuf| Ok(BufReader::new(zstd::stream::read::Decoder::new(File::open(path)?)?).lines());
    let mut readers = runs.iter().map(open).collect::<io::Result<Vec<_>>>()?;
    let mut heap = BinaryHeap::with_capacity(readers.len());
    for (number, lines) in readers.iter_mut().enumerate() {
        heap.extend(lines.next().transpose()?.map(|line| Reverse((line, number))));
    }
    let mut last: Option<String> = None;
    while let Some(Reverse((line, number))) = heap.pop() {
        heap.extend(readers[number].next().transpose()?.map(|line| Reverse((line, number))));
        if last.as_ref() != Some(&line) {
            take(&line)?;
            last = Some(line);
        }
    }
    drop(readers);
    runs.iter().try_for_each(fs::remove_file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_sorted_and_once_whatever_fits_into_memory() {
        // So many runs that they are merged more than once.
        for bytes_max in [200, 4_000, 1 << 20] {
            let folder = tempfile::tempdir().unwrap();
            let mut sorter = LineSorter::new(folder.path(), bytes_max);
            for number in 0..3_000_u32 {
                let row = (number.wrapping_mul(2_654_435_761) % 1_000).to_string();
                sorter.add(row).unwrap();
            }
            let mut rows = Vec::new();
            let mut take = |row: &str| {
                rows.push(row.to_owned());
                Ok(())
            };
            sorter.finish(&mut take).unwrap();
            assert!(rows.len() > 600 && rows.windows(2).all(|pair| pair[0] < pair[1]), "{}", rows.len());
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "runs are removed");
        }
    }
}
