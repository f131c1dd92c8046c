//! Writes result files, record by record: memory does not grow with their number.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use zip::write::SimpleFileOptions;
use zip::{AesMode, ZipWriter};

use super::python_json;
use super::record::ResultRecord;
use crate::files;

/// A result file that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("{file}: cannot be written: {source}")]
pub struct WriteError {
    /// The file asked for; what was there before is still there.
    pub file: PathBuf,
    /// Why.
    #[source]
    pub source: io::Error,
}

/// A list of records in the making.
pub struct ResultWriter<W> {
    writer: W,
    records: usize,
}

impl<W: Write> ResultWriter<W> {
    /// A list that is written to `writer`. Wrap files in a `BufWriter`: writes are small.
    pub fn new(writer: W) -> Self {
        Self { writer, records: 0 }
    }

    /// Appends a record.
    pub fn write(&mut self, record: &ResultRecord) -> io::Result<()> {
        self.writer.write_all(if self.records == 0 { b"[" } else { b"," })?;
        self.records += 1;
        python_json::new_line(&mut self.writer, 1)?;
        python_json::write(&mut self.writer, record.fields(), 1)
    }

    /// Records written so far.
    pub fn records(&self) -> usize {
        self.records
    }

    /// Ends the list and gives the writer back. Without this the list is not valid JSON.
    pub fn finish(mut self) -> io::Result<W> {
        self.writer.write_all(if self.records == 0 { b"[]" } else { b"\n]" })?;
        Ok(self.writer)
    }
}

/// Writes the file `path` with the records that `fill` writes. It appears under its name only when complete
/// and synced to disk: what was there before survives an error or a crash.
pub fn write_file(
    path: &Path,
    fill: impl FnOnce(&mut ResultWriter<&mut dyn Write>) -> io::Result<()>,
) -> Result<(), WriteError> {
    replace(path, |file| {
        let mut buffered = BufWriter::new(file);
        fill_list(&mut buffered, fill)?;
        buffered.into_inner().map_err(io::IntoInnerError::into_error)
    })
}

/// Like [`write_file`], into a zip archive with the one file `member`, encrypted with AES-256, so that
/// protected texts do not lie about in the open. The plain text never touches the disk.
pub fn write_encrypted(
    path: &Path,
    member: &str,
    password: &str,
    fill: impl FnOnce(&mut ResultWriter<&mut dyn Write>) -> io::Result<()>,
) -> Result<(), WriteError> {
    replace(path, |file| {
        let mut archive = ZipWriter::new(BufWriter::new(file));
        let options =
            SimpleFileOptions::default().with_aes_encryption(AesMode::Aes256, password).large_file(true);
        archive.start_file(member, options)?;
        fill_list(&mut archive, fill)?;
        archive.finish()?.into_inner().map_err(io::IntoInnerError::into_error)
    })
}

fn fill_list(
    writer: &mut dyn Write,
    fill: impl FnOnce(&mut ResultWriter<&mut dyn Write>) -> io::Result<()>,
) -> io::Result<()> {
    let mut list = ResultWriter::new(writer);
    fill(&mut list)?;
    list.finish().map(|_| ())
}

fn replace(path: &Path, write: impl FnOnce(File) -> io::Result<File>) -> Result<(), WriteError> {
    files::replace(path, write).map_err(|source| WriteError { file: path.to_owned(), source })
}
