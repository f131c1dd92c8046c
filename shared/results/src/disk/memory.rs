//! A disk in memory for one thread. A name leads to a file as long as it is there, and an open file outlives its names, as on
//! a disk of a Unix system. Nothing is ever lost: what a power cut leaves is no matter of this disk.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::marker::PhantomData;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Locked;

thread_local! {
    static DISK: RefCell<Option<MemoryDisk>> = const { RefCell::new(None) };
}

/// The simulated disk of this thread, until it is dropped.
pub struct SimulatedDisk {
    /// It belongs to its thread.
    _of_thread: PhantomData<Rc<()>>,
}

impl SimulatedDisk {
    /// Runs and logs of this thread lie on an empty disk in memory from now on.
    pub fn begin() -> Self {
        DISK.with_borrow_mut(|disk| *disk = Some(MemoryDisk::default()));
        Self { _of_thread: PhantomData }
    }

    /// Locks fail with this error of the operating system from now on.
    pub fn fail_locks(&self, error: i32) {
        DISK.with_borrow(|disk| disk.iter().for_each(|disk| lock(&disk.0).lock_error = Some(error)));
    }
}

impl Drop for SimulatedDisk {
    fn drop(&mut self) {
        DISK.with_borrow_mut(Option::take);
    }
}

pub(super) fn simulated() -> Option<MemoryDisk> {
    DISK.with_borrow(Clone::clone)
}

/// Clones share the disk.
#[derive(Clone, Debug, Default)]
pub(super) struct MemoryDisk(Arc<Mutex<Names>>);

#[derive(Debug, Default)]
struct Names {
    folders: BTreeSet<PathBuf>,
    files: BTreeMap<PathBuf, Arc<Mutex<Content>>>,
    /// Counts files that were opened.
    opened: u64,
    /// The error of every lock.
    lock_error: Option<i32>,
}

#[derive(Debug, Default)]
struct Content {
    bytes: Vec<u8>,
    names: usize,
    /// Who holds its lock, by the number of the opened file.
    exclusive: Option<u64>,
    shared: BTreeSet<u64>,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn missing<T>() -> io::Result<T> {
    Err(io::ErrorKind::NotFound.into())
}

impl MemoryDisk {
    pub(super) fn open(&self, path: &Path) -> io::Result<MemoryFile> {
        let mut names = lock(&self.0);
        let Some(content) = names.files.get(path).cloned() else { return missing() };
        names.opened += 1;
        Ok(MemoryFile { content, offset: 0, number: names.opened, lock_error: names.lock_error })
    }

    pub(super) fn create(&self, path: &Path, empty: bool) -> io::Result<MemoryFile> {
        {
            let mut names = lock(&self.0);
            if !path.parent().is_some_and(|folder| names.folders.contains(folder)) {
                return missing();
            }
            let fresh = || Arc::new(Mutex::new(Content { names: 1, ..Content::default() }));
            let content = names.files.entry(path.to_owned()).or_insert_with(fresh);
            if empty {
                lock(content).bytes.clear();
            }
        }
        self.open(path)
    }

    pub(super) fn names(&self, folder: &Path) -> io::Result<Vec<OsString>> {
        let names = lock(&self.0);
        if !names.folders.contains(folder) {
            return missing();
        }
        // Paths are ordered part by part, so that what is in a folder follows it.
        let from = (Bound::Excluded(folder), Bound::Unbounded);
        let files = names.files.range::<Path, _>(from).map(|(path, _)| path);
        let folders = names.folders.range::<Path, _>(from);
        let below = |path: &&PathBuf| path.starts_with(folder);
        let inside = files.take_while(below).chain(folders.take_while(below));
        let inside = inside.filter(|path| path.parent() == Some(folder));
        Ok(inside.filter_map(|path| path.file_name().map(ToOwned::to_owned)).collect())
    }

    pub(super) fn create_folders(&self, folder: &Path) {
        lock(&self.0).folders.extend(folder.ancestors().map(Path::to_owned));
    }

    pub(super) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut names = lock(&self.0);
        let Some(content) = names.files.remove(from) else { return missing() };
        if let Some(before) = names.files.insert(to.to_owned(), content) {
            lock(&before).names -= 1;
        }
        Ok(())
    }

    pub(super) fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut names = lock(&self.0);
        let Some(content) = names.files.get(from).cloned() else { return missing() };
        if names.files.contains_key(to) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        lock(&content).names += 1;
        names.files.insert(to.to_owned(), content);
        Ok(())
    }

    pub(super) fn remove_file(&self, path: &Path) -> io::Result<()> {
        let Some(content) = lock(&self.0).files.remove(path) else { return missing() };
        lock(&content).names -= 1;
        Ok(())
    }

    pub(super) fn remove_folder(&self, folder: &Path) -> io::Result<()> {
        let mut names = lock(&self.0);
        if !names.folders.contains(folder) {
            return missing();
        }
        names.folders.retain(|path| !path.starts_with(folder));
        names.files.retain(|path, content| {
            let stays = !path.starts_with(folder);
            lock(content).names -= usize::from(!stays);
            stays
        });
        Ok(())
    }
}

/// An open file.
#[derive(Debug)]
pub(super) struct MemoryFile {
    content: Arc<Mutex<Content>>,
    offset: u64,
    number: u64,
    lock_error: Option<i32>,
}

impl MemoryFile {
    pub(super) fn content(&self) -> Vec<u8> {
        lock(&self.content).bytes.clone()
    }

    pub(super) fn length(&self) -> u64 {
        lock(&self.content).bytes.len() as u64
    }

    pub(super) fn is_removed(&self) -> bool {
        lock(&self.content).names == 0
    }

    pub(super) fn set_length(&self, length: u64) {
        lock(&self.content).bytes.resize(length as usize, 0);
    }

    pub(super) fn write_at(&self, bytes: &[u8], offset: u64) {
        let content = &mut lock(&self.content).bytes;
        let (begin, end) = (offset as usize, offset as usize + bytes.len());
        if content.len() < end {
            content.resize(end, 0);
        }
        content[begin..end].copy_from_slice(bytes);
    }

    pub(super) fn lock(&self, alone: bool) -> io::Result<Locked> {
        if let Some(error) = self.lock_error {
            return Err(io::Error::from_raw_os_error(error));
        }
        let mut content = lock(&self.content);
        let others = content.shared.iter().chain(&content.exclusive).filter(|holder| **holder != self.number);
        let is_taken = if alone {
            others.count() > 0
        } else {
            content.exclusive.is_some_and(|holder| holder != self.number)
        };
        if is_taken {
            return Ok(Locked::ByAnother);
        }
        content.shared.remove(&self.number);
        if alone {
            content.exclusive = Some(self.number);
        } else {
            content.exclusive = None;
            content.shared.insert(self.number);
        }
        Ok(Locked::Ours)
    }
}

impl Drop for MemoryFile {
    fn drop(&mut self) {
        let mut content = lock(&self.content);
        content.exclusive = content.exclusive.filter(|holder| *holder != self.number);
        content.shared.remove(&self.number);
    }
}

impl Read for MemoryFile {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let content = lock(&self.content);
        let rest = content.bytes.get(self.offset as usize..).unwrap_or_default();
        let read = rest.len().min(into.len());
        into[..read].copy_from_slice(&rest[..read]);
        self.offset += read as u64;
        Ok(read)
    }
}

impl Write for MemoryFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_at(bytes, self.offset);
        self.offset += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for MemoryFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let to = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::End(by) => self.length().checked_add_signed(by),
            SeekFrom::Current(by) => self.offset.checked_add_signed(by),
        };
        self.offset = to.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.offset)
    }
}
