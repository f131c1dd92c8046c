//! Zip archives, plain or encrypted (AES as written by WinZip and 7-Zip, and the old ZipCrypto). Decryption happens in
//! memory while reading; nothing decrypted is written to disk.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use zip::ZipArchive;
use zip::read::ZipReadOptions;
use zip::result::ZipError;

use super::error::FileProblem;
use crate::password::Password;

/// A zip archive whose directory was read. A clone shares the directory, which an archive of many files would otherwise
/// have read again for each of them.
#[derive(Clone)]
pub struct ArchiveReader(ZipArchive<ReopenedFile>);

impl std::fmt::Debug for ArchiveReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArchiveReader").field("files", &self.0.len()).finish_non_exhaustive()
    }
}

/// A file that is opened by its first use and, in a clone, by its first use there: who keeps thousands of clones keeps no
/// file open, and each reads at its own place.
struct ReopenedFile {
    path: Arc<Path>,
    file: Option<BufReader<File>>,
}

impl ReopenedFile {
    fn file(&mut self) -> io::Result<&mut BufReader<File>> {
        if self.file.is_none() {
            self.file = Some(BufReader::new(service_kit::named_files::open(&self.path)?));
        }
        self.file.as_mut().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Clone for ReopenedFile {
    fn clone(&self) -> Self {
        Self { path: Arc::clone(&self.path), file: None }
    }
}

impl Read for ReopenedFile {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.file()?.read(into)
    }
}

impl Seek for ReopenedFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file()?.seek(to)
    }
}

/// The first bytes of every zip archive: a local file header, or the end record of an empty one.
const SIGNATURES: [[u8; 4]; 2] = [*b"PK\x03\x04", *b"PK\x05\x06"];

/// Whether a file starts like a zip archive, whatever its name.
pub fn is_archive(path: &Path) -> io::Result<bool> {
    let mut start = Vec::with_capacity(4);
    service_kit::named_files::open(path)?.take(4).read_to_end(&mut start)?;
    Ok(SIGNATURES.iter().any(|signature| start == signature))
}

impl ArchiveReader {
    /// Reads the directory of an archive.
    pub fn open(path: &Path) -> Result<Self, FileProblem> {
        if !is_archive(path).map_err(FileProblem::Io)? {
            return Err(FileProblem::NotAnArchive);
        }
        let archive = ZipArchive::new(ReopenedFile { path: path.into(), file: None }).map_err(problem)?;
        // The clone has closed the file.
        Ok(Self(archive.clone()))
    }

    /// The names of the files in it, in stored order. Names that are not valid text are left out.
    pub fn members(&self) -> Vec<String> {
        self.0
            .file_names()
            .filter_map(|name| Some(name.ok()?.into_owned()))
            .filter(|name| !name.ends_with('/'))
            .collect()
    }

    /// Opens one file of the archive for reading, and says whether it is encrypted. Reading it to its end checks its checksum
    /// (and, if encrypted, its authentication code).
    pub fn member(
        &mut self,
        name: &str,
        password: Option<&Password>,
    ) -> Result<(impl Read + '_, bool), FileProblem> {
        let options = ZipReadOptions::new();
        let encrypted = self.is_encrypted(name)?;
        let options = match password {
            Some(password) if encrypted => options.password(Some(password.as_str().as_bytes())),
            None if encrypted => return Err(FileProblem::PasswordNeeded),
            // A password that is not needed is not an error: folders contain both kinds.
            _ => options,
        };
        Ok((self.0.by_name_with_options(name, options).map_err(problem)?, encrypted))
    }

    /// Whether reading a file of the archive needs a password.
    pub fn is_encrypted(&self, name: &str) -> Result<bool, FileProblem> {
        let index = self.0.index_for_name(name).ok_or(FileProblem::NoResultFile)?;
        Ok(self.0.by_index_data(index).map_err(problem)?.encrypted())
    }
}

fn problem(error: ZipError) -> FileProblem {
    match error {
        ZipError::InvalidPassword => FileProblem::WrongPassword,
        ZipError::UnsupportedArchive(text) if text == ZipError::PASSWORD_REQUIRED => {
            FileProblem::PasswordNeeded
        }
        ZipError::UnsupportedArchive(text) => FileProblem::UnsupportedArchive(text.to_owned()),
        ZipError::CompressionMethodNotSupported(method) => {
            FileProblem::UnsupportedArchive(format!("compression method {method}"))
        }
        ZipError::Io(error) if error.kind() != io::ErrorKind::UnexpectedEof => FileProblem::Io(error),
        other => FileProblem::DamagedArchive(other.to_string()),
    }
}
