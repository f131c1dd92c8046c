//! Which runs are the user's own.
//!
//! A manifest names addresses, and variables and files with keys that are sent there. So whoever wrote it decides where
//! the user's keys go, and it may come from anywhere: in an archive or a copied folder. Therefore the note
//! that a run is the user's own is not beside the run but in the user's state folder:
//!
//! ```text
//! STATE/kgfleet/own-runs/HASH    an empty note for each run or pipeline that this user started, or trusts since
//! ```
//!
//! STATE is `$XDG_STATE_HOME` or `~/.local/state`. HASH is the hash of the run's name and its [`Targets`]: if a
//! manifest is changed to contact another address, or to send another key there, no note matches it.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use benchmarks::names::benchmark_of;
use domain::RunId;
use results::manifest::hash;

use crate::kit::exit_code::usage;
use crate::kit::output::{printable, say};
use crate::place::targets::Targets;
use crate::place::{folders, local};

/// The folder of this program in that of the user's state.
const PROGRAM: &str = "kgfleet";

/// The folder of the notes.
const NOTES: &str = "own-runs";

/// Maximum number of notes. Beyond it, the oldest runs become foreign; `--trust-endpoints` makes them the user's own
/// again.
const NOTES_MAX: usize = 10_000;

/// Permission bits that let others write.
const OTHERS_WRITE: u32 = 0o022;

/// The notes about the runs of this user.
pub struct OwnRuns {
    /// `STATE/kgfleet`, if there is a STATE.
    program: Option<PathBuf>,
}

/// Why it is unknown which runs are this user's own.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    #[error("this user has no state folder: neither XDG_STATE_HOME nor HOME is an absolute path")]
    None,
    #[error("{} is not this user's alone: it belongs to somebody else, or others may write in it", .0.display())]
    Shared(PathBuf),
    #[error("{}: {source}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

impl OwnRuns {
    /// The notes of the user of this process.
    pub fn of_user() -> Self {
        let folder = |name, below| {
            let found = std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
            found.map(|path| path.join(below))
        };
        let state = folder("XDG_STATE_HOME", "").or_else(|| folder("HOME", ".local/state"));
        Self { program: state.map(|state| state.join(PROGRAM)) }
    }

    /// Whether a run with these targets is the user's own.
    ///
    /// # Errors
    /// The folder is missing, or others may write to it.
    pub fn hold(&self, name: &RunId, targets: &Targets) -> Result<bool, StateError> {
        let folder = self.notes()?;
        match expect_private(&folder) {
            Err(StateError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(false),
            private => private.map(|()| folder.join(note(name, targets)).is_file()),
        }
    }

    /// Notes that a run with these targets is the user's own.
    ///
    /// # Errors
    /// The folder cannot be written, or others may write to it.
    pub fn note(&self, name: &RunId, targets: &Targets) -> Result<(), StateError> {
        let folder = self.notes()?;
        let io = |source| StateError::Io { path: folder.clone(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(io)?;
        expect_private(&folder)?;
        let path = folder.join(note(name, targets));
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(io(error)),
            Ok(_) => forget_oldest(&folder, NOTES_MAX).map_err(io),
        }
    }

    fn notes(&self) -> Result<PathBuf, StateError> {
        Ok(self.program.as_ref().ok_or(StateError::None)?.join(NOTES))
    }
}

/// The file name of a note.
fn note(name: &RunId, targets: &Targets) -> String {
    hash(&serde_json::json!([name, targets]))
}

/// Refuses a folder of notes that others may write, it or the one around it, because anybody may have made its notes.
fn expect_private(notes: &Path) -> Result<(), StateError> {
    for folder in [notes.parent().unwrap_or(notes), notes] {
        let metadata =
            fs::metadata(folder).map_err(|source| StateError::Io { path: folder.to_owned(), source })?;
        let is_own = metadata.uid() == rustix::process::geteuid().as_raw();
        if !is_own || metadata.mode() & OTHERS_WRITE != 0 {
            return Err(StateError::Shared(folder.to_owned()));
        }
    }
    Ok(())
}

/// Removes the oldest files of a folder; keeps this many.
fn forget_oldest(folder: &Path, kept: usize) -> io::Result<()> {
    let paths: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    if paths.len() <= kept {
        return Ok(());
    }
    let mut aged: Vec<_> = paths
        .into_iter()
        .filter_map(|path| Some((fs::metadata(&path).ok()?.modified().ok()?, path)))
        .collect();
    aged.sort();
    let surplus = aged.len().saturating_sub(kept);
    for (_, path) in aged.into_iter().take(surplus) {
        // Another process may have removed it.
        let _ = fs::remove_file(path);
    }
    Ok(())
}

/// Notes that a run or judged benchmark with these targets is the user's own, if it has any. A problem is printed and
/// is no error.
pub fn note_own(name: &RunId, targets: &Targets) {
    if targets.is_empty() {
        return;
    }
    if let Err(error) = OwnRuns::of_user().note(name, targets) {
        say(&format!(
            "warning: {name} cannot be noted as yours ({}); `kgfleet resume` will ask for --trust-endpoints",
            printable(&error.to_string())
        ));
    }
}

/// Whether a run is known as the user's own.
pub fn is_own(name: &RunId, targets: &Targets) -> bool {
    OwnRuns::of_user().hold(name, targets).unwrap_or(false)
}

/// Checks that a run or judged benchmark is the user's own, or makes it so if `trusts`.
///
/// # Errors
/// It is foreign (exit code 2); the message says what would be contacted and read.
pub fn expect_own(name: &RunId, targets: &Targets, trusts: bool) -> anyhow::Result<()> {
    if targets.is_empty() {
        return Ok(());
    }
    let why = match OwnRuns::of_user().hold(name, targets) {
        Ok(true) => return Ok(()),
        Ok(false) => {
            "this user did not start it on this machine as it is now: it was unpacked, copied or changed"
                .to_owned()
        }
        Err(error) => error.to_string(),
    };
    if trusts {
        say(&printable(&format!("{name} is trusted from now on. This machine will{targets}")));
        note_own(name, targets);
        return Ok(());
    }
    Err(usage!(
        "{name} is not known as yours ({why}). To go on with it, this machine would{targets}\nNothing was contacted or \
         read. If that is what you want, add --trust-endpoints: it is yours from then on. Archives name no keys; \
         `kgfleet run CONFIG --resume {name} --extend --trust-endpoints` takes those that CONFIG names"
    ))
}

/// As [`expect_own`], for a run of a data folder; returns its targets. A run of a stage is the user's own if its judged
/// benchmark is, and it needs nothing else.
///
/// # Errors
/// It is foreign; there is no such run, or its configuration cannot be read.
pub async fn expect_own_run(run: &RunId, data_dir: &Path, trusts: bool) -> anyhow::Result<Targets> {
    let (_, manifest) = folders::open(run, data_dir)?;
    let targets = Targets::of(&folders::configuration(&manifest)?);
    let benchmark = benchmark_of(run);
    if benchmark != *run
        && let Some(configuration) = local::find(&benchmark, data_dir).await?
    {
        let of_benchmark = Targets::of(&configuration);
        if of_benchmark.include(&targets) && is_own(&benchmark, &of_benchmark) {
            return Ok(targets);
        }
    }
    expect_own(run, &targets, trusts)?;
    Ok(targets)
}

/// As [`expect_own`], for the judged benchmark of this name, if there is one.
///
/// # Errors
/// It is foreign (exit code 2).
pub async fn expect_own_judged(name: &RunId, data_dir: &Path, trusts: bool) -> anyhow::Result<()> {
    match local::find(name, data_dir).await? {
        Some(configuration) => expect_own(name, &Targets::of(&configuration), trusts),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;
    use std::time::{Duration, SystemTime};

    use coordinator::configuration::Configuration;

    use super::*;

    fn targets(url: &str) -> Targets {
        let model = format!("{{label: a, connector: openai-compatible, endpoint: '{url}'}}");
        Targets::of(&Configuration::parse(&format!("name: a\nmodels: [{model}]\n"), "a.yaml").unwrap())
    }

    #[test]
    fn a_note_is_about_one_run_and_what_it_contacts() {
        let home = tempfile::tempdir().unwrap();
        let own = OwnRuns { program: Some(home.path().join("state/kgfleet")) };
        let (run, here) = (RunId::new("r"), targets("http://h/v1"));
        assert!(!own.hold(&run, &here).unwrap(), "nothing was noted yet");
        own.note(&run, &here).unwrap();
        own.note(&run, &here).unwrap();
        assert!(own.hold(&run, &here).unwrap());
        assert!(!own.hold(&RunId::new("s"), &here).unwrap());
        assert!(!own.hold(&run, &targets("http://g/v1")).unwrap());
        assert!(!own.hold(&run, &here.clone().and(targets("http://g/v1"))).unwrap());
        // Notes are kept over versions: another name of this one makes every run foreign.
        assert_eq!(
            note(&run, &here),
            hash(&serde_json::json!(["r", [{"address": "http://h/v1", "key": null, "recorded": []}]]))
        );

        fs::set_permissions(own.notes().unwrap(), Permissions::from_mode(0o720)).unwrap();
        assert!(matches!(own.hold(&run, &here), Err(StateError::Shared(_))));
        assert!(matches!(own.note(&run, &here), Err(StateError::Shared(_))));
        let nowhere = OwnRuns { program: None };
        assert!(matches!(nowhere.hold(&run, &here), Err(StateError::None)));
        assert!(matches!(nowhere.note(&run, &here), Err(StateError::None)));
    }

    #[test]
    fn the_oldest_notes_are_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        for age in 0..5 {
            let file = fs::File::create(folder.path().join(age.to_string())).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(3600 * age)).unwrap();
        }
        forget_oldest(folder.path(), 3).unwrap();
        let mut left: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["0", "1", "2"]);
        forget_oldest(folder.path(), 3).unwrap();
    }
}
