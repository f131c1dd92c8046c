//! Who may read the files that a process writes: its user alone, unless more is wished.

use std::sync::{Mutex, OnceLock, PoisonError};

use rustix::fs::Mode;
use rustix::process::umask;

/// The bits that nobody but the user of the process has.
const OF_OTHERS: Mode = Mode::RWXG.union(Mode::RWXO);

/// The umask that this process was started with.
static INHERITED: OnceLock<Mode> = OnceLock::new();

/// Held while the inherited one is back: whoever came in between would take it for this process's own.
static BACK: Mutex<()> = Mutex::new(());

/// From now on, new files and folders have no rights that this umask takes away; without one, none for others than the user of
/// the process, besides what the process was started with. Call it before there are threads.
pub fn restrict(wished: Option<u32>) {
    let inherited = umask(OF_OTHERS);
    INHERITED.get_or_init(|| inherited);
    umask(wished.map_or(inherited | OF_OTHERS, Mode::from_bits_truncate));
}

/// Does something with the umask that this process was started with: starts a program of somebody else, whose files are that
/// program's affair, or writes a file for other users. What other threads write meanwhile is as readable.
pub fn as_inherited<T>(act: impl FnOnce() -> T) -> T {
    let Some(inherited) = INHERITED.get() else { return act() };
    let _back = BACK.lock().unwrap_or_else(PoisonError::into_inner);
    let own = umask(*inherited);
    let done = act();
    umask(own);
    done
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn files_are_for_their_user_unless_more_is_wished() {
        let folder = tempfile::tempdir().unwrap();
        let mode = |name: &str| {
            let path = folder.path().join(name);
            File::create(&path).unwrap();
            fs::metadata(path).unwrap().permissions().mode() & 0o777
        };
        let started_with = umask(Mode::from_bits_truncate(0o022));
        restrict(None);
        let (own, of_others) = (mode("own"), as_inherited(|| mode("of others")));
        restrict(Some(0o027));
        let (wished, again) = (mode("wished"), as_inherited(|| mode("again")));
        umask(started_with);
        assert_eq!([own, of_others, wished, again], [0o600, 0o644, 0o640, 0o644]);
    }
}
