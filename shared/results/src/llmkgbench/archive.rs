//! Zip archives, plain or encrypted (AES as written by WinZip and 7-Zip, and the old ZipCrypto). Decryption happens in
//! memory while reading; nothing decrypted is written to disk.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use zip::ZipArchive;
use zip::read::ZipReadOptions;
use zip::result::ZipError;

use super::error::FileProblem;

/// A password that debug output does not show.
#[derive(Clone)]
pub struct Password(Arc<str>);

impl Password {
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Password(…)")
    }
}

/// A zip archive opened for reading.
pub struct ArchiveReader(ZipArchive<BufReader<File>>);

/// The first bytes of every zip archive: a local file header, or the end record of an empty one.
const SIGNATURES: [[u8; 4]; 2] = [*b"PK\x03\x04", *b"PK\x05\x06"];

/// Whether a file starts like a zip archive, whatever its name.
pub fn is_archive(path: &Path) -> io::Result<bool> {
    let mut start = Vec::with_capacity(4);
    named_files::open(path)?.take(4).read_to_end(&mut start)?;
    Ok(SIGNATURES.iter().any(|signature| start == signature))
}

impl ArchiveReader {
    /// Reads the directory of an archive.
    pub fn open(path: &Path) -> Result<Self, FileProblem> {
        let file = named_files::open(path).map_err(FileProblem::Io)?;
        if !is_archive(path).map_err(FileProblem::Io)? {
            return Err(FileProblem::NotAnArchive);
        }
        ZipArchive::new(BufReader::new(file)).map(Self).map_err(problem)
    }

    /// The names of the files in it, in stored order. Names that are not valid text are left out.
    pub fn members(&self) -> Vec<String> {
        self.0
            .file_names()
            .filter_map(|name| Some(name.ok()?.into_owned()))
            .filter(|name| !name.ends_with('/'))
            .collect()
    }

    /// Opens one file of the archive for reading. Reading it to its end checks its checksum (and, if encrypted, its
    /// authentication code).
    pub fn member(&mut self, name: &str, password: Option<&Password>) -> Result<impl Read + '_, FileProblem> {
        let options = ZipReadOptions::new();
        let encrypted = self.is_encrypted(name)?;
        let options = match password {
            Some(password) if encrypted => options.password(Some(password.as_str().as_bytes())),
            None if encrypted => return Err(FileProblem::PasswordNeeded),
            // A password that is not needed is not an error: folders contain both kinds.
            _ => options,
        };
        self.0.by_name_with_options(name, options).map_err(problem)
    }

    /// Whether reading a file of the archive needs a password.
    pub fn is_encrypted(&mut self, name: &str) -> Result<bool, FileProblem> {
        let index = self.0.index_for_name(name).ok_or(FileProblem::NoResultFile)?;
        Ok(self.0.by_index_raw(index).map_err(problem)?.encrypted())
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
