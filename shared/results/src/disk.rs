//! The files of runs and logs: those of the operating system or, in a simulation, of a disk in memory.
//!
//! This is `std::fs` as far as runs and logs use it.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::SystemTime;

#[cfg(feature = "test-support")]
use self::memory::MemoryFile;
#[cfg(feature = "test-support")]
pub use self::memory::SimulatedDisk;

#[cfg(feature = "test-support")]
mod memory;

/// Does the same on the simulated disk, if this thread has one.
macro_rules! simulated {
    (|$disk:ident| $does:expr) => {
        #[cfg(feature = "test-support")]
        if let Some($disk) = memory::simulated() {
            return $does;
        }
    };
}

/// An open file.
#[derive(Debug)]
pub struct DiskFile(Place);

#[derive(Debug)]
enum Place {
    System(fs::File),
    #[cfg(feature = "test-support")]
    Memory(MemoryFile),
}

/// What a lock of a file came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Locked {
    Ours,
    ByAnother,
}

/// Does one thing with the file, whichever it is.
macro_rules! either {
    ($file:expr, |$opened:ident| $does:expr) => {
        match $file {
            Place::System($opened) => $does,
            #[cfg(feature = "test-support")]
            Place::Memory($opened) => $does,
        }
    };
}

impl DiskFile {
    /// Opens a file for reading.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        simulated!(|disk| disk.open(path).map(|file| Self(Place::Memory(file))));
        fs::File::open(path).map(Place::System).map(Self)
    }

    /// Creates a file for writing, or empties it.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        simulated!(|disk| disk.create(path, true).map(|file| Self(Place::Memory(file))));
        fs::File::create(path).map(Place::System).map(Self)
    }

    /// Creates a file for writing that is not there.
    ///
    /// # Errors
    /// [`AlreadyExists`](io::ErrorKind::AlreadyExists).
    pub(crate) fn create_new(path: &Path) -> io::Result<Self> {
        simulated!(|disk| match disk.open(path) {
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => disk.create(path, true).map(|file| Self(Place::Memory(file))),
        });
        fs::File::create_new(path).map(Place::System).map(Self)
    }

    /// Opens a file for reading and writing, or creates it.
    pub(crate) fn open_or_create(path: &Path) -> io::Result<Self> {
        simulated!(|disk| disk.create(path, false).map(|file| Self(Place::Memory(file))));
        let options = fs::File::options().create(true).truncate(false).read(true).write(true).open(path);
        options.map(Place::System).map(Self)
    }

    /// Returns when content and metadata would survive a power cut.
    pub(crate) fn sync_all(&self) -> io::Result<()> {
        match &self.0 {
            Place::System(file) => file.sync_all(),
            #[cfg(feature = "test-support")]
            Place::Memory(_) => Ok(()),
        }
    }

    /// Returns when the content would survive a power cut.
    pub(crate) fn sync_data(&self) -> io::Result<()> {
        match &self.0 {
            Place::System(file) => file.sync_data(),
            #[cfg(feature = "test-support")]
            Place::Memory(_) => Ok(()),
        }
    }

    /// Whether no name leads to it any more.
    pub(crate) fn is_removed(&self) -> io::Result<bool> {
        match &self.0 {
            Place::System(file) => Ok(file.metadata()?.nlink() == 0),
            #[cfg(feature = "test-support")]
            Place::Memory(file) => Ok(file.is_removed()),
        }
    }

    /// Its length in bytes.
    pub(crate) fn length(&self) -> io::Result<u64> {
        match &self.0 {
            Place::System(file) => Ok(file.metadata()?.len()),
            #[cfg(feature = "test-support")]
            Place::Memory(file) => Ok(file.length()),
        }
    }

    pub(crate) fn set_length(&self, length: u64) -> io::Result<()> {
        match &self.0 {
            Place::System(file) => file.set_len(length),
            #[cfg(feature = "test-support")]
            Place::Memory(file) => {
                file.set_length(length);
                Ok(())
            }
        }
    }

    pub(crate) fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        match &self.0 {
            Place::System(file) => file.write_all_at(bytes, offset),
            #[cfg(feature = "test-support")]
            Place::Memory(file) => {
                file.write_at(bytes, offset);
                Ok(())
            }
        }
    }

    /// Takes the lock of the file alone, until it is closed.
    ///
    /// # Errors
    /// The file system has no locks.
    pub(crate) fn lock(&self) -> io::Result<Locked> {
        match &self.0 {
            Place::System(file) => locked(file.try_lock()),
            #[cfg(feature = "test-support")]
            Place::Memory(file) => file.lock(true),
        }
    }

    /// Takes the lock of the file together with others that do so.
    ///
    /// # Errors
    /// The file system has no locks.
    pub(crate) fn lock_shared(&self) -> io::Result<Locked> {
        match &self.0 {
            Place::System(file) => locked(file.try_lock_shared()),
            #[cfg(feature = "test-support")]
            Place::Memory(file) => file.lock(false),
        }
    }
}

fn locked(tried: Result<(), fs::TryLockError>) -> io::Result<Locked> {
    match tried {
        Ok(()) => Ok(Locked::Ours),
        Err(fs::TryLockError::WouldBlock) => Ok(Locked::ByAnother),
        Err(fs::TryLockError::Error(error)) => Err(error),
    }
}

impl Read for DiskFile {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        either!(&mut self.0, |file| file.read(into))
    }
}

impl Write for DiskFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        either!(&mut self.0, |file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        either!(&mut self.0, |file| file.flush())
    }
}

impl Seek for DiskFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        either!(&mut self.0, |file| file.seek(to))
    }
}

/// The content of a file.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    simulated!(|disk| disk.open(path).map(|file| file.content()));
    fs::read(path)
}

/// Length and time of the last change.
pub(crate) fn stamp(path: &Path) -> io::Result<(u64, Option<SystemTime>)> {
    simulated!(|disk| disk.open(path).map(|file| (file.length(), None)));
    let metadata = fs::metadata(path)?;
    Ok((metadata.len(), metadata.modified().ok()))
}

pub(crate) fn is_file(path: &Path) -> bool {
    simulated!(|disk| disk.open(path).is_ok());
    path.is_file()
}

/// The names in a folder, in no particular order.
pub(crate) fn names(folder: &Path) -> io::Result<Vec<OsString>> {
    simulated!(|disk| disk.names(folder));
    fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name())).collect()
}

pub(crate) fn create_folders(folder: &Path) -> io::Result<()> {
    simulated!(|disk| {
        disk.create_folders(folder);
        Ok(())
    });
    fs::create_dir_all(folder)
}

/// Makes the names in a folder durable.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    simulated!(|disk| disk.names(folder).map(drop));
    fs::File::open(folder)?.sync_all()
}

pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    simulated!(|disk| disk.rename(from, to));
    fs::rename(from, to)
}

/// Gives a file a second name.
pub(crate) fn link(from: &Path, to: &Path) -> io::Result<()> {
    simulated!(|disk| disk.link(from, to));
    fs::hard_link(from, to)
}

pub(crate) fn remove_file(path: &Path) -> io::Result<()> {
    simulated!(|disk| disk.remove_file(path));
    fs::remove_file(path)
}

/// Removes a folder with everything in it.
pub(crate) fn remove_folder(folder: &Path) -> io::Result<()> {
    simulated!(|disk| disk.remove_folder(folder));
    fs::remove_dir_all(folder)
}

/// Bytes that are free where a folder lies.
pub fn free_bytes(folder: &Path) -> io::Result<u64> {
    simulated!(|_disk| Ok(u64::MAX));
    let space = rustix::fs::statvfs(folder)?;
    Ok(space.f_bavail.saturating_mul(space.f_frsize))
}
