//! A pack as files: the input and output of editing and sealing.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use tasks::TaskData;

use crate::error::PackError;
use crate::header::{HEADER_PATH, Header, MANIFEST_PATH};

/// Maximum number of entries of a pack.
pub const ENTRIES_MAX: usize = 10_000;

/// Maximum depth of an entry's path.
const LEVELS_MAX: usize = 8;

/// The files of a pack by path, sorted. Contents are shared, so clones are cheap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    name: String,
    files: BTreeMap<String, Arc<[u8]>>,
}

impl Parts {
    /// No files yet; `name` appears in errors.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), files: BTreeMap::new() }
    }

    /// The name of this pack in errors.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Adds a file.
    ///
    /// # Errors
    /// The path is taken, reserved or unacceptable, or there are too many files.
    pub fn insert(&mut self, path: &str, content: impl Into<Arc<[u8]>>) -> Result<(), PackError> {
        let acceptable = path != MANIFEST_PATH && is_acceptable(path) && !self.files.contains_key(path);
        if !acceptable || self.files.len() >= ENTRIES_MAX {
            return Err(PackError::BadPath { pack: self.name.clone(), entry: path.to_owned() });
        }
        self.files.insert(path.to_owned(), content.into());
        Ok(())
    }

    /// The content of a file.
    pub fn get(&self, path: &str) -> Option<&Arc<[u8]>> {
        self.files.get(path)
    }

    /// The content of a file as text.
    ///
    /// # Errors
    /// There is no such file, or it is not UTF-8.
    pub fn text(&self, path: &str) -> Result<&str, PackError> {
        let content = self
            .get(path)
            .ok_or_else(|| PackError::MissingEntry { pack: self.name.clone(), entry: path.to_owned() })?;
        std::str::from_utf8(content).map_err(|error| self.invalid(path, error))
    }

    /// Paths and contents, sorted by path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.iter().map(|(path, content)| (path.as_str(), &**content))
    }

    /// The author's description of the pack.
    ///
    /// # Errors
    /// `pack.toml` is missing or not valid.
    pub fn header(&self) -> Result<Header, PackError> {
        toml::from_str(self.text(HEADER_PATH)?).map_err(|error| self.invalid(HEADER_PATH, error))
    }

    /// Adds `pack.toml`, for programs that assemble packs.
    ///
    /// # Errors
    /// It exists already.
    pub fn insert_header(&mut self, header: &Header) -> Result<(), PackError> {
        let text = toml::to_string(header).map_err(|error| self.invalid(HEADER_PATH, error))?;
        self.insert(HEADER_PATH, text.into_bytes())
    }

    /// Adds a task as `tasks/LABEL.json`, for programs that assemble packs. Its texts are used literally: only tasks
    /// in TOML may refer to files.
    ///
    /// # Errors
    /// The label is unacceptable as a path, or taken.
    pub fn insert_task(&mut self, task: &TaskData) -> Result<(), PackError> {
        let path = format!("tasks/{}.json", task.label);
        let json = serde_json::to_vec_pretty(task).map_err(|error| self.invalid(&path, error))?;
        self.insert(&path, json)
    }

    /// Reads all files below a directory. Hidden files and editors' backups (`*~`) are left out.
    ///
    /// # Errors
    /// A file cannot be read, or has an invalid path.
    pub fn read_dir(dir: &Path) -> Result<Self, PackError> {
        let mut parts = Self::new(dir.display().to_string());
        let mut pending = vec![(dir.to_owned(), String::new(), 0)];
        while let Some((folder, prefix, level)) = pending.pop() {
            for item in std::fs::read_dir(&folder).map_err(io(&folder))? {
                let item = item.map_err(io(&folder))?;
                let file_name = item.file_name().to_string_lossy().into_owned();
                if file_name.starts_with('.') || file_name.ends_with('~') {
                    continue;
                }
                let entry = format!("{prefix}{file_name}");
                if !item.file_type().map_err(io(&item.path()))?.is_dir() {
                    parts.insert(&entry, std::fs::read(item.path()).map_err(io(&item.path()))?)?;
                } else if level < LEVELS_MAX {
                    pending.push((item.path(), format!("{entry}/"), level + 1));
                } else {
                    return Err(PackError::BadPath { pack: parts.name, entry });
                }
            }
        }
        Ok(parts)
    }

    /// Writes all files below a directory, creating it if needed. This writes plaintext test data to disk: call it
    /// only when a person wants to edit a pack.
    ///
    /// # Errors
    /// A file exists already, or cannot be written.
    pub fn write_dir(&self, dir: &Path) -> Result<(), PackError> {
        use std::io::Write;
        for (path, content) in self.iter() {
            let target = dir.join(path);
            if let Some(folder) = target.parent() {
                std::fs::create_dir_all(folder).map_err(io(folder))?;
            }
            // Never overwrite a file: it may contain edits that are not sealed yet.
            let mut file = std::fs::File::create_new(&target).map_err(io(&target))?;
            file.write_all(content).map_err(io(&target))?;
        }
        Ok(())
    }

    pub(crate) fn invalid(&self, entry: &str, message: impl std::fmt::Display) -> PackError {
        PackError::Invalid {
            pack: self.name.clone(),
            entry: entry.to_owned(),
            message: message.to_string().trim_end().to_owned(),
        }
    }
}

/// An IO error with its path.
pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> PackError + use<> {
    let path = path.display().to_string();
    move |source| PackError::Io { path, source }
}

/// Whether a path stays below the directory it is unpacked to, and is valid on every file system.
fn is_acceptable(path: &str) -> bool {
    let levels = path.split('/').count();
    levels <= LEVELS_MAX
        && path.len() <= 200
        && path.split('/').all(|part| {
            !part.is_empty()
                && !part.starts_with('.')
                && part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_could_leave_the_directory_are_refused() {
        let mut parts = Parts::new("p");
        for path in ["", "/etc/passwd", "../up", "a/../b", "a//b", "a\\b", ".hidden", "c:x", MANIFEST_PATH] {
            assert!(matches!(parts.insert(path, *b""), Err(PackError::BadPath { .. })), "{path}");
        }
        parts.insert("tasks/A-b_1.toml", *b"x").unwrap();
        assert!(parts.insert("tasks/A-b_1.toml", *b"y").is_err(), "a path is taken once");
    }

    #[test]
    fn directories_read_back_and_existing_files_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let mut parts = Parts::new(dir.path().display().to_string());
        parts.insert("pack.toml", *b"name = 1").unwrap();
        parts.insert("tasks/deep/a.toml", *b"\xff").unwrap();
        parts.write_dir(dir.path()).unwrap();
        std::fs::write(dir.path().join(".DS_Store"), "x").unwrap();
        assert_eq!(Parts::read_dir(dir.path()).unwrap(), parts);
        assert!(matches!(parts.write_dir(dir.path()), Err(PackError::Io { .. })));
        assert!(matches!(parts.text("tasks/deep/a.toml"), Err(PackError::Invalid { .. })));
        assert!(matches!(parts.header(), Err(PackError::Invalid { .. })));
    }
}
