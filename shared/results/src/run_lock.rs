//! The right to write a run: a lock of the operating system or, on a file system that has none, a file that shows by its
//! heartbeat that its process lives.
//!
//! Beside the file `lock`, one process alone has `lock.process`, a coordinator of a fleet `lock.fleet-NUMBER`. Each creates its file and then looks for
//! those of others, so that of two that come at once at least one sees the other. A file tells when its process has last beaten,
//! by that process's clock; one that has not for [`DEAD_AFTER`] is taken over.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use chacha20poly1305::aead::OsRng;
use chacha20poly1305::aead::rand_core::RngCore;
use domain::machine;
use jiff::Timestamp;
use rustix::io::Errno;

use crate::files;

/// Time between two beats.
pub const BEAT_EVERY: Duration = Duration::from_secs(10);

/// The name of the lock of a run in its folder.
pub const LOCK: &str = "lock";

/// Age of the last beat from which a process counts as dead. Clocks of machines that share a folder may differ by less.
pub const DEAD_AFTER: Duration = Duration::from_secs(120);

/// The holder of the right to write a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// One process, without a cluster.
    Process,
    /// Coordinators of a cluster.
    Fleet,
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Process => "another process",
            Self::Fleet => "a coordinator (ask it instead, with --fleet URL, or stop it first)",
        })
    }
}

/// The right to write a run, held until dropped or until the process dies.
#[derive(Debug)]
pub struct RunLock(#[expect(dead_code, reason = "what holds the lock lives as long as it")] Held);

#[derive(Debug)]
enum Held {
    System(#[expect(dead_code, reason = "the lock lives as long as the open file")] File),
    File(#[expect(dead_code, reason = "it beats as long as it lives")] BeatingFile),
}

impl RunLock {
    /// Takes the lock that is a file for such a holder; the inner error is who has it.
    ///
    /// # Errors
    /// Its folder cannot be written.
    pub fn take(path: &Path, holder: Holder) -> io::Result<Result<Self, Holder>> {
        let file = files::open_or_create(path)?;
        let tried = match holder {
            Holder::Process => file.try_lock(),
            Holder::Fleet => file.try_lock_shared(),
        };
        Self::taken(path, holder, file, tried)
    }

    fn taken(
        path: &Path,
        holder: Holder,
        file: File,
        tried: Result<(), TryLockError>,
    ) -> io::Result<Result<Self, Holder>> {
        match tried {
            Ok(()) => Ok(Ok(Self(Held::System(file)))),
            // A lock that can be shared is held by coordinators.
            Err(TryLockError::WouldBlock) => {
                let is_shared = file.try_lock_shared().is_ok();
                Ok(Err(if is_shared { Holder::Fleet } else { Holder::Process }))
            }
            Err(TryLockError::Error(error)) if has_no_locks(&error) => {
                tell(path, &error);
                let taken = BeatingFile::take(path, holder)?;
                Ok(taken.map(|file| Self(Held::File(file))))
            }
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

/// Whether a file in the folder of a run belongs to its lock. Such a file says nothing of the run.
pub fn is_lock_file(name: &str) -> bool {
    name.strip_prefix(LOCK).is_some_and(|ending| ending.is_empty() || ending.starts_with('.'))
}

/// Whether an error says that the file system has no locks.
fn has_no_locks(error: &io::Error) -> bool {
    let known = [Errno::NOLCK, Errno::NOTSUP, Errno::OPNOTSUPP, Errno::NOSYS];
    Errno::from_io_error(error).is_some_and(|error| known.contains(&error))
}

/// Says once what that means.
fn tell(path: &Path, error: &io::Error) {
    static TOLD: std::sync::Once = std::sync::Once::new();
    TOLD.call_once(|| {
        tracing::warn!(
            "the file system of {} has no locks ({error}): a file with a heartbeat takes their place, and a process that died is \
             waited for {} s; --data-dir (KGFLEET_DATA_DIR) on a local disk avoids this",
            path.display(),
            DEAD_AFTER.as_secs()
        );
    });
}

/// A file that beats until it is dropped, and is removed then.
#[derive(Debug)]
struct BeatingFile {
    path: PathBuf,
    /// Whose it is.
    id: u64,
    beating: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

impl BeatingFile {
    fn take(lock: &Path, holder: Holder) -> io::Result<Result<Self, Holder>> {
        let id = random();
        let path = match holder {
            Holder::Process => with_ending(lock, PROCESS),
            Holder::Fleet => with_ending(lock, &format!("{FLEET}{id:016x}")),
        };
        if !create(&path, id)? {
            if is_alive(&path)? {
                return Ok(Err(Holder::Process));
            }
            // Whoever moves it away first takes it over; another one finds nothing, or a new file.
            let dead = with_ending(lock, &format!(".dead-{:016x}", random()));
            match fs::rename(&path, &dead) {
                Ok(()) if is_alive(&dead)? => {
                    // It was that of another one who has taken it over.
                    fs::rename(&dead, &path)?;
                    return Ok(Err(Holder::Process));
                }
                Ok(()) => fs::remove_file(&dead)?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
            if !create(&path, id)? {
                return Ok(Err(Holder::Process));
            }
        }
        let mut file = Self { path, id, beating: None };
        if let Some(other) = other_alive(lock, holder)? {
            return Ok(Err(other));
        }
        // A simulation has one thread.
        if machine::simulated().is_none() {
            let (end, ended) = mpsc::channel();
            let path = file.path.clone();
            let beats = std::thread::Builder::new().name("lock-beat".to_owned()).spawn(move || {
                while ended.recv_timeout(BEAT_EVERY) == Err(RecvTimeoutError::Timeout) {
                    if !is_own(&path, id) {
                        tracing::error!(path = %path.display(), "this process did not beat in time, and another one has taken over");
                        return;
                    }
                    if let Err(error) = files::replace_shared(&path, &beat(id)) {
                        tracing::warn!(path = %path.display(), %error, "others cannot see that this process lives");
                    }
                }
            })?;
            file.beating = Some((end, beats));
        }
        Ok(Ok(file))
    }
}

impl Drop for BeatingFile {
    fn drop(&mut self) {
        if let Some((end, beats)) = self.beating.take() {
            drop(end);
            let _ = beats.join();
        }
        if is_own(&self.path, self.id) {
            // Otherwise others see that it does not beat.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The ending of the file of one process alone.
const PROCESS: &str = ".process";

/// How the endings of files of coordinators begin.
const FLEET: &str = ".fleet-";

fn with_ending(lock: &Path, ending: &str) -> PathBuf {
    let mut path = lock.as_os_str().to_owned();
    path.push(ending);
    path.into()
}

fn random() -> u64 {
    machine::random(|| OsRng.next_u64())
}

/// The content of a file: the time of a beat, and whose it is.
fn beat(id: u64) -> Vec<u8> {
    format!("{} {id:016x}\n", machine::now()).into_bytes()
}

/// Whether a file is of this holder.
fn is_own(path: &Path, id: u64) -> bool {
    fs::read(path).is_ok_and(|content| content.ends_with(format!(" {id:016x}\n").as_bytes()))
}

/// Creates a file that beats for the first time; false if it is there.
fn create(path: &Path, id: u64) -> io::Result<bool> {
    match File::create_new(path) {
        Ok(mut file) => file.write_all(&beat(id)).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether the process of a file lives, by its last beat; of a file whose process died before it beat, by its age.
fn is_alive(path: &Path) -> io::Result<bool> {
    let Some(content) = files::if_there(fs::read(path))? else { return Ok(false) };
    let beaten =
        std::str::from_utf8(&content).ok().and_then(|text| text.split_whitespace().next()?.parse().ok());
    let written = || fs::metadata(path).ok()?.modified().ok()?.try_into().ok();
    let Some(beaten): Option<Timestamp> = beaten.or_else(written) else { return Ok(true) };
    Ok(machine::now().duration_since(beaten).unsigned_abs() < DEAD_AFTER)
}

/// Who else holds the lock that cannot hold it together with this one.
fn other_alive(lock: &Path, holder: Holder) -> io::Result<Option<Holder>> {
    if holder == Holder::Fleet {
        return Ok(is_alive(&with_ending(lock, PROCESS))?.then_some(Holder::Process));
    }
    let beginning = with_ending(lock, FLEET);
    let folder = lock.parent().unwrap_or(Path::new("."));
    let found = files::names(folder)?.into_iter().map(|name| folder.join(name));
    for path in found.filter(|path| {
        path.as_os_str().as_encoded_bytes().starts_with(beginning.as_os_str().as_encoded_bytes())
    }) {
        if is_alive(&path)? {
            return Ok(Some(Holder::Fleet));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder on a file system whose locks fail with this error.
    struct WithoutLocks(tempfile::TempDir, Errno);

    impl WithoutLocks {
        fn new(error: Errno) -> Self {
            Self(tempfile::tempdir().unwrap(), error)
        }

        fn try_take(&self, holder: Holder) -> io::Result<Result<RunLock, Holder>> {
            let path = self.0.path().join(LOCK);
            let file = files::open_or_create(&path)?;
            RunLock::taken(&path, holder, file, Err(TryLockError::Error(self.1.into())))
        }

        fn take(&self, holder: Holder) -> Result<RunLock, Holder> {
            self.try_take(holder).unwrap()
        }

        fn names(&self) -> Vec<String> {
            let names = files::names(self.0.path()).unwrap();
            names.into_iter().map(|name| name.into_string().unwrap()).collect()
        }
    }

    #[test]
    fn where_a_file_system_has_no_locks_a_file_keeps_others_away() {
        for error in [Errno::NOLCK, Errno::NOTSUP, Errno::OPNOTSUPP, Errno::NOSYS] {
            let folder = WithoutLocks::new(error);
            let lock = folder.take(Holder::Process).unwrap();
            let names = folder.names();
            assert!(names.len() == 2 && names.iter().all(|name| is_lock_file(name)), "{names:?}");
            assert_eq!(folder.take(Holder::Process).err(), Some(Holder::Process));
            assert_eq!(folder.take(Holder::Fleet).err(), Some(Holder::Process));
            drop(lock);
            let coordinators = (folder.take(Holder::Fleet).unwrap(), folder.take(Holder::Fleet).unwrap());
            assert_eq!(folder.take(Holder::Process).err(), Some(Holder::Fleet));
            drop(coordinators);
            folder.take(Holder::Process).unwrap();
            assert_eq!(folder.names(), [LOCK], "nothing is left");
        }
        assert!(!is_lock_file("manifest.json") && !is_lock_file("locked.json"));
    }

    #[test]
    fn a_dead_process_is_taken_over_after_its_time_and_a_living_one_is_not() {
        let folder = WithoutLocks::new(Errno::NOLCK);
        let left = |name: &str, ago: Duration| {
            let beaten = machine::now().checked_sub(ago).unwrap().to_string();
            files::replace_shared(&folder.0.path().join(name), beaten.as_bytes()).unwrap();
        };
        let second = Duration::from_secs(1);
        left("lock.process", DEAD_AFTER - 30 * second);
        assert_eq!(folder.take(Holder::Process).err(), Some(Holder::Process));
        left("lock.process", DEAD_AFTER + second);
        left("lock.fleet-1", DEAD_AFTER + second);
        let lock = folder.take(Holder::Process).unwrap();
        assert_eq!(folder.take(Holder::Process).err(), Some(Holder::Process));
        drop(lock);
        left("lock.fleet-1", DEAD_AFTER - 30 * second);
        assert_eq!(folder.take(Holder::Process).err(), Some(Holder::Fleet));
    }

    #[test]
    fn other_errors_are_errors() {
        assert!(WithoutLocks::new(Errno::IO).try_take(Holder::Process).is_err());
    }
}
