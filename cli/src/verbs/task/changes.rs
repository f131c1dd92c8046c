//! Waits for a change of a task file or of its data, which lie below its folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

/// Between two looks at the folder. Nobody notices, and a look at a few files costs microseconds.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Files that are looked at; more are not the data of a task file.
const FILES_MAX: usize = 1000;

/// The files below a folder as they were at one moment.
#[derive(PartialEq, Eq)]
pub(super) struct FolderState {
    folder: PathBuf,
    /// Length in bytes and time of the last change.
    files: BTreeMap<PathBuf, (u64, Option<SystemTime>)>,
}

impl FolderState {
    /// The state now. What cannot be read is not there.
    pub(super) fn of(folder: &Path) -> Self {
        let (mut files, mut folders) = (BTreeMap::new(), vec![folder.to_owned()]);
        while let Some(next) = folders.pop() {
            for entry in fs::read_dir(next).into_iter().flatten().flatten() {
                // A link is not followed, so that the walk ends.
                let Ok(metadata) = entry.metadata() else { continue };
                if metadata.is_dir() {
                    folders.push(entry.path());
                } else {
                    files.insert(entry.path(), (metadata.len(), metadata.modified().ok()));
                }
                if files.len() + folders.len() >= FILES_MAX {
                    return Self { folder: folder.to_owned(), files };
                }
            }
        }
        Self { folder: folder.to_owned(), files }
    }

    /// Waits until the folder is in another state.
    pub(super) fn until_it_changes(&self) {
        while Self::of(&self.folder) == *self {
            thread::sleep(LOOK_EVERY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_new_and_removed_files_are_changes() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        fs::create_dir(&data).unwrap();
        let state = || FolderState::of(folder.path());
        let empty = state();
        assert!(empty == state());
        fs::write(data.join("a.ttl"), "one").unwrap();
        let one = state();
        assert!(one != empty);
        fs::write(data.join("a.ttl"), "other").unwrap();
        let other = state();
        assert!(other != one);
        fs::remove_file(data.join("a.ttl")).unwrap();
        other.until_it_changes();
        assert!(state() == empty);
    }
}
