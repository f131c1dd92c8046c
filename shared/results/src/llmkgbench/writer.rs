//! Writes result files, record by record: memory does not grow with their number.

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
    /// The file; its earlier content, if any, is unchanged.
    pub file: PathBuf,
    #[source]
    pub source: io::Error,
}

/// Writes a list of records.
pub struct ResultWriter<W> {
    writer: W,
    records: usize,
}

impl<W: Write> ResultWriter<W> {
    /// Begins a list. Wrap files in a `BufWriter`: writes are small.
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

    /// Ends the list and returns the writer. Without this the list is not valid JSON.
    pub fn finish(mut self) -> io::Result<W> {
        self.writer.write_all(if self.records == 0 { b"[]" } else { b"\n]" })?;
        Ok(self.writer)
    }
}

/// A result file that is being written.
pub struct ResultFile<'a> {
    path: &'a Path,
    list: ResultWriter<&'a mut dyn Write>,
}

impl ResultFile<'_> {
    /// Appends a record.
    pub fn write(&mut self, record: &ResultRecord) -> Result<(), WriteError> {
        self.list.write(record).map_err(|source| WriteError { file: self.path.to_owned(), source })
    }
}

/// An archive for a result file, so that protected texts are not written in plaintext.
#[derive(Clone, Copy)]
pub struct Archive<'a> {
    /// Name of the file in the archive.
    pub member: &'a str,
    /// Password of the encryption (AES-256).
    pub password: &'a str,
}

/// Writes the file `path` with the records from `fill`, as plain JSON or in a zip archive, in which case no plaintext is
/// written to disk. The file appears under its name only when complete and synced: a file that was there before survives
/// an error or a crash.
///
/// # Errors
/// The file cannot be written; or the error of `fill`.
pub fn write<E: From<WriteError>>(
    path: &Path,
    archive: Option<Archive<'_>>,
    fill: impl FnOnce(&mut ResultFile<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut failed = None;
    let fill_list = |writer: &mut dyn Write| -> io::Result<()> {
        let mut file = ResultFile { path, list: ResultWriter::new(writer) };
        fill(&mut file).map_err(|error| {
            failed = Some(error);
            io::Error::other("the list is incomplete")
        })?;
        file.list.finish().map(|_| ())
    };
    let written = files::replace(path, |file| {
        let mut file = BufWriter::new(file);
        match archive {
            None => {
                fill_list(&mut file)?;
                file.into_inner().map_err(io::IntoInnerError::into_error)
            }
            Some(Archive { member, password }) => {
                let mut archive = ZipWriter::new(file);
                let aes = SimpleFileOptions::default().with_aes_encryption(AesMode::Aes256, password);
                archive.start_file(member, aes.large_file(true))?;
                fill_list(&mut archive)?;
                archive.finish()?.into_inner().map_err(io::IntoInnerError::into_error)
            }
        }
    });
    match failed {
        Some(error) => Err(error),
        None => written.map_err(|source| WriteError { file: path.to_owned(), source }.into()),
    }
}
