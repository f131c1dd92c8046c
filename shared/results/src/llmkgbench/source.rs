//! Finds result files and streams their records.

use std::collections::HashSet;
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::archive::{self, ArchiveReader};
use super::elements::{Element, Elements};
use super::error::{FileError, FileProblem, RecordError, RecordProblem};
use super::record::ResultRecord;
use super::repair::{self, FileRepair};
use crate::password::Password;

/// Maximum size of a record, in bytes of its JSON text: enough for an answer of 50 MB in which every character is written
/// as an escape of twice its size. Larger records are skipped and reported.
pub const RECORD_BYTES_MAX: usize = 128 << 20;

/// Maximum number of unreadable records of a document: it is not read on after them. A small archive may hold hundreds of
/// millions, and whoever reads it keeps an error for each.
pub const UNREADABLE_RECORDS_MAX: usize = 1_000;

/// Maximum size of a file that [`read_single`] reads into memory, in bytes.
pub const SINGLE_BYTES_MAX: u64 = 1 << 30;

/// Maximum number of folder levels that [`discover`] descends.
pub const FOLDER_DEPTH_MAX: usize = 32;

/// A record buffer larger than this, in bytes, is freed after use.
const RETAINED_BUFFER_BYTES: usize = 4 << 20;

/// Bytes read ahead of the splitter.
const READ_BUFFER_BYTES: usize = 64 << 10;

/// A result file that was found and not yet read. It can be read on any thread, and more than once.
#[derive(Clone, Debug)]
pub struct Document {
    path: PathBuf,
    member: Option<Member>,
    password: Option<Password>,
}

/// A file in an archive.
#[derive(Clone, Debug)]
struct Member {
    archive: ArchiveReader,
    name: String,
}

/// A readable record.
#[derive(Debug)]
pub struct ReadRecord {
    /// Position in the list, from 0.
    pub index: usize,
    pub record: ResultRecord,
    /// What was replaced to read it.
    pub repairs: Vec<FileRepair>,
}

/// The result of reading a whole document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadCounts {
    /// Readable records.
    pub records: usize,
    /// Unreadable records.
    pub errors: usize,
}

/// Finds the result files in `paths`, in the order given and by name within folders and archives.
///
/// A path is a JSON file, a zip archive (recognised by its content, not its name) or a folder. Folders and their
/// subfolders are searched for [result files](is_result_name) and for archives that contain some. A file given as a path
/// counts whatever its name; if an archive given as a path contains exactly one `.json` file, that one counts whatever
/// its name. For a path that cannot be opened there is an error in its place, and the search continues. Passwords are
/// tried when a document is read.
pub fn discover(paths: &[PathBuf], password: Option<&str>) -> Vec<Result<Document, FileError>> {
    let mut search =
        Search { password: password.map(Password::new), found: Vec::new(), seen: HashSet::new() };
    for path in paths {
        search.named(path);
    }
    search.found
}

/// Whether a file name (without folders) is one of LLM-KG-Bench's result files:
/// `llm-kg-bench_run-TIME_result.json`, `…_result_SUFFIX.json`, or `llm-kg-bench-results_TIME.json` of 2023.
pub fn is_result_name(name: &str) -> bool {
    // macOS adds such a file for every file in its archives.
    !name.starts_with("._")
        && name.ends_with(".json")
        && (name.contains("_result") || name.starts_with("llm-kg-bench-results"))
}

/// The content of a file, or of the only file in a zip archive (not counting folders), decrypted in memory. For graphs
/// that belong to published results.
pub fn read_single(path: &Path, password: Option<&str>) -> Result<(String, Vec<u8>), FileError> {
    let in_file = |problem| FileError { file: path.display().to_string(), problem };
    let read = |reader: &mut dyn Read| -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        let length = reader.take(SINGLE_BYTES_MAX + 1).read_to_end(&mut content)? as u64;
        if length > SINGLE_BYTES_MAX {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("longer than the limit of {SINGLE_BYTES_MAX} bytes"),
            ));
        }
        Ok(content)
    };
    if !archive::is_archive(path).map_err(|error| in_file(error.into()))? {
        let mut file = service_kit::named_files::open(path).map_err(|error| in_file(error.into()))?;
        let content = read(&mut file).map_err(|error| in_file(error.into()))?;
        return Ok((base_name(&path.to_string_lossy()).to_owned(), content));
    }
    let mut archive = ArchiveReader::open(path).map_err(in_file)?;
    let members = archive.members();
    let [member] = members.as_slice() else {
        return Err(in_file(FileProblem::UnsupportedArchive(format!(
            "it holds {} files, exactly one is expected",
            members.len()
        ))));
    };
    let (mut reader, encrypted) =
        archive.member(member, password.map(Password::new).as_ref()).map_err(in_file)?;
    let content = read(&mut reader).map_err(|error| in_file(member_problem(error, encrypted)))?;
    Ok((member.clone(), content))
}

impl Document {
    /// Its name in messages: its path, or `archive.zip!member.json`.
    pub fn name(&self) -> String {
        match &self.member {
            Some(member) => format!("{}!{}", self.path.display(), member.name),
            None => self.path.display().to_string(),
        }
    }

    /// The file on disk: the file itself, or the archive that contains it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file name alone, without folders and archive; a file written for it gets the same name.
    pub fn file_name(&self) -> String {
        let name =
            self.member.as_ref().map_or_else(|| self.path.to_string_lossy(), |member| (&member.name).into());
        base_name(&name).to_owned()
    }

    /// Whether it is encrypted, to keep its content from crawlers; copies should be encrypted too.
    pub fn is_protected(&self) -> bool {
        self.member.as_ref().is_some_and(|member| member.archive.is_encrypted(&member.name).unwrap_or(false))
    }

    /// Passes every record to `each`, in order; for an unreadable record, `each` gets an error in its place. Stops early,
    /// without an error, if `each` breaks.
    ///
    /// # Errors
    /// The file cannot be read further, or has more than [`UNREADABLE_RECORDS_MAX`] unreadable records. The records before that
    /// place were passed.
    pub fn read(
        &self,
        mut each: impl FnMut(Result<ReadRecord, RecordError>) -> ControlFlow<()>,
    ) -> Result<ReadCounts, FileError> {
        let in_file = |problem| FileError { file: self.name(), problem };
        match &self.member {
            None => {
                let file =
                    service_kit::named_files::open(&self.path).map_err(|error| in_file(error.into()))?;
                let reader = BufReader::with_capacity(READ_BUFFER_BYTES, file);
                self.read_list(reader, FileProblem::Io, &mut each)
            }
            Some(member) => {
                let mut archive = member.archive.clone();
                let (reader, encrypted) =
                    archive.member(&member.name, self.password.as_ref()).map_err(in_file)?;
                let reader = BufReader::with_capacity(READ_BUFFER_BYTES, reader);
                self.read_list(reader, |error| member_problem(error, encrypted), &mut each)
            }
        }
    }

    fn read_list(
        &self,
        reader: impl BufRead,
        io_problem: impl Fn(io::Error) -> FileProblem,
        each: &mut dyn FnMut(Result<ReadRecord, RecordError>) -> ControlFlow<()>,
    ) -> Result<ReadCounts, FileError> {
        let file = self.name();
        let mut elements = Elements::new(reader, RECORD_BYTES_MAX);
        let mut buffer = Vec::new();
        let mut summary = ReadCounts::default();
        loop {
            let element = match elements.next(&mut buffer) {
                Ok(Some(element)) => element,
                Ok(None) => return Ok(summary),
                Err(error) => {
                    let problem = match error {
                        FileProblem::Io(error) => io_problem(error),
                        other => other,
                    };
                    return Err(FileError { file, problem });
                }
            };
            let read = parse_record(element, &buffer).map_err(|problem| RecordError {
                file: file.clone(),
                index: element.index,
                problem,
            });
            match &read {
                Ok(_) => summary.records += 1,
                Err(_) if summary.errors == UNREADABLE_RECORDS_MAX => {
                    let problem = FileProblem::TooManyUnreadable { limit: UNREADABLE_RECORDS_MAX };
                    return Err(FileError { file, problem });
                }
                Err(_) => summary.errors += 1,
            }
            if buffer.capacity() > RETAINED_BUFFER_BYTES {
                buffer = Vec::new();
            }
            if each(read).is_break() {
                return Ok(summary);
            }
        }
    }
}

fn parse_record(element: Element, bytes: &[u8]) -> Result<ReadRecord, RecordProblem> {
    if element.too_long {
        return Err(RecordProblem::TooLong { bytes: element.bytes, limit: RECORD_BYTES_MAX });
    }
    let (value, repairs) = parse_value(bytes)?;
    Ok(ReadRecord { index: element.index, record: ResultRecord::from_value(value)?, repairs })
}

/// Parses a record; if that fails, tries again with its text repaired.
fn parse_value(bytes: &[u8]) -> Result<(Value, Vec<FileRepair>), RecordProblem> {
    let error = match serde_json::from_slice(bytes) {
        Ok(value) => return Ok((value, Vec::new())),
        Err(error) => error,
    };
    let (text, decoded) = repair::decode(bytes);
    let surrogates = repair::replace_lone_surrogates(&text);
    let repairs: Vec<FileRepair> =
        decoded.into_iter().chain(surrogates.as_ref().map(|_| FileRepair::LoneSurrogates)).collect();
    if repairs.is_empty() {
        return Err(RecordProblem::Json(error));
    }
    match serde_json::from_str(surrogates.as_deref().unwrap_or(&text)) {
        Ok(value) => Ok((value, repairs)),
        Err(error) => Err(RecordProblem::Json(error)),
    }
}

/// The error of a file in an archive: data that cannot be decompressed means a damaged archive, not a damaged disk.
fn member_problem(error: io::Error, encrypted: bool) -> FileProblem {
    match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput if encrypted => {
            FileProblem::Undecryptable(error.to_string())
        }
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof => {
            FileProblem::DamagedArchive(error.to_string())
        }
        _ => FileProblem::Io(error),
    }
}

fn base_name(name: &str) -> &str {
    name.rsplit(['/', '\\']).next().unwrap_or(name)
}

struct Search {
    password: Option<Password>,
    found: Vec<Result<Document, FileError>>,
    /// Files already found: `paths` may contain a folder and a file in it.
    seen: HashSet<PathBuf>,
}

impl Search {
    fn named(&mut self, path: &Path) {
        let before = self.found.len();
        match fs::metadata(path) {
            Err(error) => self.fail(path, FileProblem::Io(error)),
            Ok(meta) if meta.is_dir() => {
                let known = self.seen.len();
                self.folder(path, 0);
                if self.found.len() == before && self.seen.len() == known {
                    self.fail(path, FileProblem::NoResultFile);
                }
            }
            Ok(_) => match archive::is_archive(path) {
                Err(error) => self.fail(path, FileProblem::Io(error)),
                Ok(true) => self.archive(path, true),
                Ok(false)
                    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("zip")) =>
                {
                    self.fail(path, FileProblem::NotAnArchive);
                }
                Ok(false) => self.add(path, None),
            },
        }
    }

    fn folder(&mut self, path: &Path, depth: usize) {
        if depth > FOLDER_DEPTH_MAX {
            return self.fail(path, FileProblem::NestedTooDeep { limit: FOLDER_DEPTH_MAX });
        }
        let entries = fs::read_dir(path)
            .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>());
        let mut entries = match entries {
            Ok(entries) => entries,
            Err(error) => return self.fail(path, FileProblem::Io(error)),
        };
        entries.sort();
        for entry in entries {
            let name = entry.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let is_zip =
                Path::new(&name).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("zip"));
            if entry.is_dir() {
                self.folder(&entry, depth + 1);
            } else if is_result_name(&name) {
                self.add(&entry, None);
            } else if is_zip && !name.starts_with("._") {
                self.archive(&entry, false);
            }
        }
    }

    fn archive(&mut self, path: &Path, named: bool) {
        let archive = match ArchiveReader::open(path) {
            Ok(archive) => archive,
            Err(problem) => return self.fail(path, problem),
        };
        let members = archive.members();
        let mut results: Vec<&String> =
            members.iter().filter(|member| is_result_name(base_name(member))).collect();
        if results.is_empty() && named {
            results = members.iter().filter(|member| member.ends_with(".json")).collect();
            if results.len() != 1 {
                return self.fail(path, FileProblem::NoResultFile);
            }
        }
        results.sort();
        for member in results {
            self.add(path, Some(Member { archive: archive.clone(), name: member.clone() }));
        }
    }

    fn add(&mut self, path: &Path, member: Option<Member>) {
        let identity = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let name = member.as_ref().map_or("", |member| &member.name);
        if self.seen.insert(identity.join(name)) {
            self.found.push(Ok(Document { path: path.to_owned(), member, password: self.password.clone() }));
        }
    }

    fn fail(&mut self, path: &Path, problem: FileProblem) {
        self.found.push(Err(FileError { file: path.display().to_string(), problem }));
    }
}
