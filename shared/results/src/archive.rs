//! A run as one file that can be kept and cited: a tar archive in zstd, as `zstd -d < FILE | tar t` shows.
//!
//! The first entry, [`HEAD`], names every other one in order, with its size and SHA-256. A reader takes exactly these
//! entries, as plain files with plain names, and counts bytes while it unpacks instead of trusting the sizes in the
//! archive. So an archive from somebody else can neither write outside its folder nor fill the disk.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use domain::RunId;
use domain::text::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::files;

/// Name of the entry that lists the others.
pub const HEAD: &str = "archive.json";

/// The version of the head that is written, and the newest that is read.
pub const VERSION: u32 = 1;

/// Files in an archive.
pub const FILES_MAX: usize = 200_000;

/// Bytes of all files of an archive: ten times a run of a million dialogues.
pub const UNPACKED_BYTES_MAX: u64 = 64 << 30;

/// Bytes that one byte of an archive may unpack to. Logs are compressed already, and reports compress by a factor of ten.
pub const RATIO_MAX: u64 = 500;

pub const HEAD_BYTES_MAX: u64 = 64 << 20;

/// Folders that a file may lie in.
const PATH_PARTS_MAX: usize = 8;

/// Bytes that tar adds to a file: its header, and zeros up to the next block.
const ENTRY_OVERHEAD_BYTES: u64 = 1024;

/// Compression level: most of an archive is compressed already.
const ZSTD_LEVEL: i32 = 6;

/// What an archive holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchiveHead {
    /// [`VERSION`] of the writer.
    pub version: u32,
    pub run: RunId,
    /// Version of kgfleet that wrote it.
    pub kgfleet: String,
    /// The other entries, in order.
    pub files: Vec<FileHead>,
}

/// A file of an archive, or a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileHead {
    /// Its name, with `/` between folders, and behind that of a folder.
    pub path: String,
    pub bytes: u64,
    /// Hexadecimal.
    pub sha256: String,
}

/// Why an archive cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error("{}: {source}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{}: not an archive of kgfleet: {reason}", path.display())]
    NotAnArchive { path: PathBuf, reason: String },
    #[error("{}: archive version {found} is newer than {VERSION}, the newest this kgfleet reads; use the kgfleet that wrote it", path.display())]
    Newer { path: PathBuf, found: u32 },
    #[error("{}: {what} is over the limit of {limit}", path.display())]
    TooLarge { path: PathBuf, what: &'static str, limit: u64 },
    #[error("{}: `{name}` is no name of a file in an archive", path.display())]
    Name { path: PathBuf, name: String },
    #[error("{}: {name} {problem}", path.display())]
    Damaged { path: PathBuf, name: String, problem: &'static str },
}

/// The length of a file in bytes, and its SHA-256, hexadecimal.
pub fn hashed(file: &Path) -> Result<(u64, String), ArchiveError> {
    let mut hasher = Sha256::new();
    let bytes = File::open(file)
        .and_then(|mut file| io::copy(&mut file, &mut HashWriter(&mut hasher)))
        .map_err(|source| ArchiveError::Io { path: file.to_owned(), source })?;
    Ok((bytes, hex(hasher.finalize())))
}

/// Writes an archive of these files, each with its name in it. The file `path` appears only when it is complete.
///
/// # Errors
/// A file cannot be read, or changes meanwhile; the archive cannot be written.
pub fn write(path: &Path, run: &RunId, contents: &[(String, PathBuf)]) -> Result<ArchiveHead, ArchiveError> {
    let mut listed = Vec::with_capacity(contents.len());
    for (name, file) in contents {
        if !is_plain(name) {
            return Err(ArchiveError::Name { path: path.to_owned(), name: name.clone() });
        }
        let (bytes, sha256) = match is_folder(name) {
            true => (0, hex(Sha256::digest([]))),
            false => hashed(file)?,
        };
        listed.push(FileHead { path: name.clone(), bytes, sha256 });
    }
    let head = ArchiveHead {
        version: VERSION,
        run: run.clone(),
        kgfleet: env!("CARGO_PKG_VERSION").to_owned(),
        files: listed,
    };
    let files = head.files.iter().zip(contents.iter().map(|(_, file)| file.as_path()));
    files::replace(path, |file| pack(file, &head, files))
        .map_err(|source| ArchiveError::Io { path: path.to_owned(), source })?;
    Ok(head)
}

fn pack<'a>(
    file: File,
    head: &ArchiveHead,
    files: impl Iterator<Item = (&'a FileHead, &'a Path)>,
) -> io::Result<File> {
    let mut encoder = zstd::Encoder::new(BufWriter::new(file), ZSTD_LEVEL)?;
    encoder.include_checksum(true)?;
    let mut archive = tar::Builder::new(encoder);
    let mut text = serde_json::to_vec_pretty(head)?;
    text.push(b'\n');
    append(&mut archive, HEAD, text.len() as u64, text.as_slice())?;
    for (listed, file) in files {
        if is_folder(&listed.path) {
            append(&mut archive, &listed.path, 0, io::empty())?;
            continue;
        }
        // As long as it was when it was hashed: a file that grew is refused by its hash when it is read.
        append(&mut archive, &listed.path, listed.bytes, File::open(file)?.take(listed.bytes))?;
    }
    let encoder = archive.into_inner()?;
    encoder.finish()?.into_inner().map_err(io::IntoInnerError::into_error)
}

/// Adds a file with fixed times and permissions, so that equal files make equal archives. Its name must fit into tar's
/// plain header.
fn append(
    archive: &mut tar::Builder<impl Write>,
    name: &str,
    bytes: u64,
    content: impl Read,
) -> io::Result<()> {
    let mut header = tar::Header::new_ustar();
    header.set_path(name)?;
    header.set_size(bytes);
    header.set_mode(if is_folder(name) { 0o755 } else { 0o644 });
    header.set_entry_type(entry_type(name));
    header.set_mtime(0);
    header.set_cksum();
    archive.append(&header, content)
}

/// Unpacks an archive into an empty folder and checks every file in it. After an error the folder must not be used.
///
/// # Errors
/// It is no archive, it is damaged, or it is over a limit.
pub fn unpack(path: &Path, folder: &Path) -> Result<ArchiveHead, ArchiveError> {
    let io = |source| ArchiveError::Io { path: path.to_owned(), source };
    let not = |reason: String| ArchiveError::NotAnArchive { path: path.to_owned(), reason };
    let file = File::open(path).map_err(io)?;
    let most = unpacked_max(file.metadata().map_err(io)?.len());
    let decoder = zstd::Decoder::new(BufReader::new(file)).map_err(io)?;
    let mut archive = tar::Archive::new(decoder.take(most));
    // Raw: extensions of the format, which could be of any length, are not followed.
    let mut entries = archive.entries().map_err(|error| not(error.to_string()))?.raw(true);
    let mut next = || entries.next().transpose();
    let mut first = match next() {
        Ok(Some(entry)) if is_file(&entry, HEAD) => entry,
        Ok(_) => return Err(not(format!("it does not begin with {HEAD}"))),
        Err(error) => return Err(not(error.to_string())),
    };
    let head = read_head(path, &mut first)?;
    drop(first);
    check(path, &head, most)?;
    for listed in &head.files {
        let damaged =
            |problem| ArchiveError::Damaged { path: path.to_owned(), name: listed.path.clone(), problem };
        let mut entry = match next() {
            Ok(Some(entry)) if is_file(&entry, &listed.path) && entry.size() == listed.bytes => entry,
            Ok(Some(_)) => return Err(damaged("is not where the list has it")),
            Ok(None) => return Err(damaged("is missing")),
            Err(_) => return Err(damaged("cannot be read")),
        };
        let target = folder.join(&listed.path);
        if is_folder(&listed.path) {
            fs::create_dir_all(&target).map_err(|source| ArchiveError::Io { path: target, source })?;
            continue;
        }
        let found =
            write_file(&target, &mut entry).map_err(|source| ArchiveError::Io { path: target, source })?;
        if found != (listed.bytes, listed.sha256.clone()) {
            return Err(damaged("is not what was put in: its hash differs"));
        }
    }
    match next() {
        Ok(None) => {}
        Ok(Some(_)) => return Err(not("it has files that its list does not name".to_owned())),
        Err(error) => return Err(not(error.to_string())),
    }
    // The checksum of the compression is behind the last file.
    io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(|error| not(error.to_string()))?;
    Ok(head)
}

/// Maximum size of the content of an archive of this size.
fn unpacked_max(packed: u64) -> u64 {
    packed.saturating_mul(RATIO_MAX).saturating_add(HEAD_BYTES_MAX).min(UNPACKED_BYTES_MAX)
}

fn is_file<R: Read>(entry: &tar::Entry<'_, R>, name: &str) -> bool {
    entry.header().entry_type() == entry_type(name) && *entry.path_bytes() == *name.as_bytes()
}

fn read_head(path: &Path, entry: &mut impl Read) -> Result<ArchiveHead, ArchiveError> {
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    let not = |reason: String| ArchiveError::NotAnArchive { path: path.to_owned(), reason };
    let mut text = Vec::new();
    entry.take(HEAD_BYTES_MAX + 1).read_to_end(&mut text).map_err(|error| not(error.to_string()))?;
    if text.len() as u64 > HEAD_BYTES_MAX {
        return Err(ArchiveError::TooLarge { path: path.to_owned(), what: HEAD, limit: HEAD_BYTES_MAX });
    }
    let version: Version = serde_json::from_slice(&text).map_err(|error| not(error.to_string()))?;
    if version.version > VERSION {
        return Err(ArchiveError::Newer { path: path.to_owned(), found: version.version });
    }
    serde_json::from_slice(&text).map_err(|error| not(error.to_string()))
}

/// Refuses a list with impossible names or sizes, before anything is written.
fn check(path: &Path, head: &ArchiveHead, most: u64) -> Result<(), ArchiveError> {
    let too_large = |what, limit| Err(ArchiveError::TooLarge { path: path.to_owned(), what, limit });
    if head.files.len() > FILES_MAX {
        return too_large("the number of files", FILES_MAX as u64);
    }
    let mut names = HashSet::new();
    let mut bytes: u64 = 0;
    for listed in &head.files {
        if !is_plain(&listed.path) || !names.insert(listed.path.as_str()) {
            return Err(ArchiveError::Name { path: path.to_owned(), name: listed.path.clone() });
        }
        bytes = bytes.saturating_add(listed.bytes).saturating_add(ENTRY_OVERHEAD_BYTES);
    }
    if bytes > most {
        return too_large("the size of its files", most);
    }
    Ok(())
}

fn is_folder(name: &str) -> bool {
    name.ends_with('/')
}

fn entry_type(name: &str) -> tar::EntryType {
    if is_folder(name) { tar::EntryType::Directory } else { tar::EntryType::Regular }
}

/// Whether a name is relative and its parts mean the same on every system.
fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let part = |part: &str| !part.is_empty() && !part.starts_with('.') && part.chars().all(plain);
    let parts = || name.strip_suffix('/').unwrap_or(name).split('/');
    name != HEAD && parts().count() <= PATH_PARTS_MAX && parts().all(part)
}

/// Writes a file; returns its length and hash.
fn write_file(path: &Path, content: &mut impl Read) -> io::Result<(u64, String)> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut hasher = Sha256::new();
    let mut file = File::create_new(path)?;
    let bytes = io::copy(content, &mut Tee(&mut file, HashWriter(&mut hasher)))?;
    Ok((bytes, hex(hasher.finalize())))
}

struct HashWriter<'a>(&'a mut Sha256);

impl Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Tee<'a>(&'a mut File, HashWriter<'a>);

impl Write for Tee<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.0.write(bytes)?;
        self.1.write(&bytes[..written])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Ground(tempfile::TempDir);

    impl Ground {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn file(&self, name: &str, content: &[u8]) -> PathBuf {
            let path = self.0.path().join(name);
            fs::write(&path, content).unwrap();
            path
        }

        /// An archive of these entries, packed as archives are.
        fn packed(&self, entries: &[(&str, tar::EntryType, &[u8])]) -> PathBuf {
            let mut archive = tar::Builder::new(Vec::new());
            for (name, kind, content) in entries {
                let mut header = tar::Header::new_ustar();
                // Beside the checks of the library, which writes no hostile names.
                header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
                header.set_size(content.len() as u64);
                header.set_entry_type(*kind);
                header.set_mode(0o644);
                header.set_cksum();
                archive.append(&header, *content).unwrap();
            }
            let packed = zstd::encode_all(archive.into_inner().unwrap().as_slice(), 3).unwrap();
            self.file("packed.tar.zst", &packed)
        }

        fn unpacked(&self, archive: &Path) -> Result<ArchiveHead, ArchiveError> {
            unpack(archive, tempfile::tempdir_in(self.0.path()).unwrap().path())
        }
    }

    const REGULAR: tar::EntryType = tar::EntryType::Regular;

    fn head_of(files: &[(&str, &[u8])]) -> Vec<u8> {
        let files = files.iter().map(|(path, content)| FileHead {
            path: (*path).to_owned(),
            bytes: content.len() as u64,
            sha256: hex(Sha256::digest(content)),
        });
        let head =
            ArchiveHead { version: 1, run: RunId::new("r"), kgfleet: "0".into(), files: files.collect() };
        serde_json::to_vec(&head).unwrap()
    }

    #[test]
    fn an_archive_is_unpacked_as_it_was_packed_and_equal_files_make_equal_archives() {
        let ground = Ground::new();
        let (a, b) = (ground.file("a", b"one"), ground.file("b", &[7; 100_000]));
        let contents = [("data/runs/r/manifest.json".to_owned(), a), ("report.html".to_owned(), b)];
        let archive = ground.0.path().join("r.tar.zst");
        let head = write(&archive, &RunId::new("r"), &contents).unwrap();
        let first = fs::read(&archive).unwrap();
        write(&archive, &RunId::new("r"), &contents).unwrap();
        assert_eq!(first, fs::read(&archive).unwrap());
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(unpack(&archive, folder.path()).unwrap(), head);
        assert_eq!(fs::read(folder.path().join("data/runs/r/manifest.json")).unwrap(), b"one");
        assert_eq!(fs::read(folder.path().join("report.html")).unwrap(), [7; 100_000]);
        assert!(write(&archive, &RunId::new("r"), &[("../a".to_owned(), PathBuf::new())]).is_err());
    }

    #[test]
    fn every_flipped_byte_and_every_cut_is_found() {
        let ground = Ground::new();
        let contents = [("a".to_owned(), ground.file("a", b"some content"))];
        let archive = ground.0.path().join("r.tar.zst");
        let head = write(&archive, &RunId::new("r"), &contents).unwrap();
        let whole = fs::read(&archive).unwrap();
        for at in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[at] ^= 0x10;
            // The header of zstd has bits that change nothing.
            if let Ok(found) = ground.unpacked(&ground.file("flipped", &flipped)) {
                assert_eq!(found, head, "flipped at {at}");
                assert!(at < 8, "flipped at {at}");
            }
            assert!(ground.unpacked(&ground.file("cut", &whole[..at])).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn names_that_lead_elsewhere_and_entries_that_are_no_files_are_refused() {
        let ground = Ground::new();
        for name in [
            "../evil",
            "/etc/evil",
            "a/../../evil",
            ".hidden",
            "a//b",
            "a\\b",
            "",
            "archive.json",
            "a/b/c/d/e/f/g/h/i",
        ] {
            let head = head_of(&[(name, b"x")]);
            let archive = ground.packed(&[(HEAD, REGULAR, &head), (name, REGULAR, b"x")]);
            let error = ground.unpacked(&archive).unwrap_err();
            assert!(matches!(error, ArchiveError::Name { .. }), "{name}: {error}");
        }
        let head = head_of(&[("a", b"x")]);
        for kind in [
            tar::EntryType::Symlink,
            tar::EntryType::Link,
            tar::EntryType::Directory,
            tar::EntryType::GNULongName,
        ] {
            let archive = ground.packed(&[(HEAD, REGULAR, &head), ("a", kind, b"x")]);
            assert!(matches!(ground.unpacked(&archive), Err(ArchiveError::Damaged { .. })), "{kind:?}");
        }
        // More than the list names, less, and twice the same.
        let more = ground.packed(&[(HEAD, REGULAR, &head), ("a", REGULAR, b"x"), ("b", REGULAR, b"x")]);
        assert!(matches!(ground.unpacked(&more), Err(ArchiveError::NotAnArchive { .. })));
        let less = ground.packed(&[(HEAD, REGULAR, &head)]);
        assert!(matches!(ground.unpacked(&less), Err(ArchiveError::Damaged { .. })));
        let twice = head_of(&[("a", b"x"), ("a", b"x")]);
        let twice = ground.packed(&[(HEAD, REGULAR, &twice), ("a", REGULAR, b"x"), ("a", REGULAR, b"x")]);
        assert!(matches!(ground.unpacked(&twice), Err(ArchiveError::Name { .. })));
        let other = ground.packed(&[(HEAD, REGULAR, &head), ("a", REGULAR, b"y")]);
        assert!(matches!(ground.unpacked(&other), Err(ArchiveError::Damaged { .. })));
    }

    #[test]
    fn bombs_and_other_files_are_refused() {
        let ground = Ground::new();
        // A small file that states and holds far more than such a file may become.
        let zeros = vec![0; (HEAD_BYTES_MAX + (8 << 20)) as usize];
        let head = head_of(&[("a", &zeros)]);
        let bomb = ground.packed(&[(HEAD, REGULAR, &head), ("a", REGULAR, &zeros)]);
        assert!(fs::metadata(&bomb).unwrap().len() * RATIO_MAX < 8 << 20);
        let error = ground.unpacked(&bomb).unwrap_err();
        assert!(matches!(error, ArchiveError::TooLarge { what: "the size of its files", .. }), "{error}");
        let long = ground.packed(&[(HEAD, REGULAR, &zeros)]);
        assert!(ground.unpacked(&long).is_err());
        let newer = ground.packed(&[(HEAD, REGULAR, br#"{"version": 2, "all": "else"}"#)]);
        assert!(matches!(ground.unpacked(&newer), Err(ArchiveError::Newer { found: 2, .. })));
        for content in [&b""[..], b"nothing", b"{}"] {
            assert!(ground.unpacked(&ground.file("other", content)).is_err());
        }
        assert!(matches!(ground.unpacked(Path::new("/no/such")), Err(ArchiveError::Io { .. })));
    }
}
