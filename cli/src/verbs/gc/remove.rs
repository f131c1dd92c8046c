//! Removes what is to go, if it is still what it was when that was decided.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, bail};
use domain::RunId;
use results::{RunDir, sink};

use super::found::{self, measure};
use super::plan::{AGE_MIN, NeededPacks, Removal, RemovalKind, is_aged};
use crate::kit::output::explain;
use crate::place::{folders, local};

/// The file by whose lock one process at a time removes.
const GC_LOCK: &str = "gc.lock";

/// What became of what was to go.
#[derive(Debug, Default)]
pub(super) struct GcResult {
    pub gone: Vec<Removal>,
    /// What could not be removed, with the reason.
    pub left: Vec<String>,
    /// What stays for now, because it may be needed after all.
    pub later: Vec<String>,
}

/// Removes all of it, one after the other; packs last, because what referred to them is gone by then.
///
/// # Errors
/// Another process is at it. What fails for one of them is in the result.
pub(super) fn all(data: &Path, work: &Path, removals: Vec<Removal>) -> anyhow::Result<GcResult> {
    let mut result = GcResult::default();
    let _alone = if data.is_dir() && !removals.is_empty() { Some(alone(data)?) } else { None };
    let (packs, others): (Vec<Removal>, Vec<Removal>) =
        removals.into_iter().partition(|removal| matches!(removal.kind, RemovalKind::Pack(_)));
    for removal in others {
        match one(data, work, &removal) {
            Ok(()) => result.gone.push(removal),
            Err(error) => result.left.push(stays(&removal, &explain(&error))),
        }
    }
    remove_packs(data, packs, &mut result);
    Ok(result)
}

/// Another one would take packs that are set aside here for files of a killed process.
fn alone(data: &Path) -> anyhow::Result<File> {
    let path = data.join(GC_LOCK);
    let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    if file.try_lock().is_err() {
        bail!("another `kgfleet gc` is at work in {}, or the folder has no locks", data.display());
    }
    Ok(file)
}

fn stays(removal: &Removal, why: &str) -> String {
    format!("{} stays: {why}", removal.path.display())
}

fn one(data: &Path, work: &Path, removal: &Removal) -> anyhow::Result<()> {
    match &removal.kind {
        RemovalKind::Judged(name) => remove_judged(data, name, removal.changed),
        RemovalKind::Run(name) => remove_run(data, name, removal.changed),
        RemovalKind::Temporary(run) => remove_temporary(data, removal, run.as_ref()),
        RemovalKind::Spool => remove_spool(&work.join(&removal.path)),
        RemovalKind::Pack(_) => bail!("packs go together"),
    }
}

/// Sees that nothing was written since it was decided that something goes.
fn expect_unchanged(now: Option<SystemTime>, then: SystemTime) -> anyhow::Result<()> {
    if now.is_none_or(|now| now > then) {
        bail!("it was written or removed meanwhile");
    }
    Ok(())
}

/// Removes a run as `kgfleet rm` does.
fn remove_run(data: &Path, name: &RunId, written: SystemTime) -> anyhow::Result<()> {
    let (dir, _) = folders::open_altered(name, data)?;
    // No coordinator takes it up from here on.
    let lock = dir.lock()?;
    local::expect_removable(name, data)?;
    expect_unchanged(found::run_written(&dir), written)?;
    Ok(dir.remove(&lock)?)
}

/// Removes a judged benchmark as `kgfleet rm` does, which refuses it as long as another one takes its answers.
fn remove_judged(data: &Path, name: &RunId, written: SystemTime) -> anyhow::Result<()> {
    expect_unchanged(found::judged_written(data, name, &RunDir::list(data)?), written)?;
    match local::remove(name, data, false)? {
        Some(_) => Ok(()),
        None => bail!("it is not there any more"),
    }
}

fn remove_temporary(data: &Path, removal: &Removal, run: Option<&RunId>) -> anyhow::Result<()> {
    let _lock = match run {
        Some(run) => Some(sink::folder(data).run_dir(run)?.lock()?),
        None => None,
    };
    let path = data.join(&removal.path);
    expect_unchanged(Some(measure(&path)?.changed), removal.changed)?;
    match path.is_dir() {
        true => fs::remove_dir_all(&path)?,
        false => fs::remove_file(&path)?,
    }
    Ok(())
}

/// Removes a spool under the lock that its worker would take. A worker that starts under its name in this moment finds the folder
/// gone, ends, and makes it anew when it is started again; it has no record yet.
fn remove_spool(dir: &Path) -> anyhow::Result<()> {
    let lock = File::options().append(true).open(dir.join("lock"))?;
    if lock.try_lock().is_err() {
        bail!("a worker uses it");
    }
    if !found::is_empty_spool(dir)? {
        bail!("it holds records by now");
    }
    Ok(fs::remove_dir_all(dir)?)
}

/// Removes packs, so that none is lost to a process that begins a run with it at the same moment. There is no lock of packs. So
/// each is first renamed; then everything is read that may refer to it; then it is removed, or renamed back if somebody refers to
/// it or it is new. That is enough, because
///
/// - who submits a pack, or derives one, writes it anew and creates the run, or the judged benchmark, afterwards: either the pack
///   was written after it was renamed here, and lies in its place; or before, and is new;
/// - who begins a run with the built-in pack creates the run, and then looks for the pack, and writes it where there is none:
///   either it looked after the pack was renamed, or its manifest is read here;
/// - who copies a run from elsewhere looks for the pack, writes records for long, and the manifest last: a folder of a run
///   without a manifest that was written within the hour keeps all packs. Only a copy that has looked for its pack and has not
///   written anything yet is overlooked; the same copy again brings the pack again.
///
/// Who needs the pack in the moment in which it is away is told that it is not there, and can ask again. A coordinator also
/// writes a pack anew when it loads a run, and so does the removal of a judged benchmark: its derived packs go an hour later.
fn remove_packs(data: &Path, packs: Vec<Removal>, result: &mut GcResult) {
    let mut aside: Vec<(Removal, PathBuf, PathBuf)> = Vec::new();
    for pack in packs {
        let place = data.join(&pack.path);
        let away = beside(&place);
        match fs::rename(&place, &away) {
            Ok(()) => aside.push((pack, place, away)),
            Err(error) => result.left.push(stays(&pack, &error.to_string())),
        }
    }
    if aside.is_empty() {
        return;
    }
    let (needed, now) = (found::needed(data), SystemTime::now());
    let mut put_back: BTreeMap<String, usize> = BTreeMap::new();
    for (pack, place, away) in aside {
        let done = match why_needed(&needed, &pack, &away, now) {
            None => fs::remove_file(&away).map(|()| result.gone.push(pack)),
            Some(why) => fs::rename(&away, &place).map(|()| *put_back.entry(why).or_default() += 1),
        };
        if let Err(error) = done {
            result.left.push(format!("{}: {error}", away.display()));
        }
    }
    let told = put_back.into_iter().map(|(why, packs)| format!("packs that stay for now: {packs}, {why}"));
    result.later.extend(told);
}

/// The name of a file beside this one that is not complete, under which the next `kgfleet gc` finds it if this one is killed.
fn beside(place: &Path) -> PathBuf {
    let mut away = place.as_os_str().to_owned();
    away.push(format!(".{:.16}.part", sink::random_name()));
    PathBuf::from(away)
}

/// Why a pack that was set aside is put back.
fn why_needed(
    needed: &anyhow::Result<NeededPacks>,
    pack: &Removal,
    away: &Path,
    now: SystemTime,
) -> Option<String> {
    let needed = match needed {
        Ok(needed) => needed,
        Err(error) => return Some(explain(error)),
    };
    let RemovalKind::Pack(hash) = &pack.kind else { return Some("no packs".to_owned()) };
    if let Some(doubt) = needed.doubt(now) {
        return Some(doubt);
    }
    if needed.is_needed(hash, &BTreeSet::new()) {
        return Some("a run or a pipeline refers to them by now".to_owned());
    }
    let is_old = measure(away).is_ok_and(|extent| is_aged(extent.changed, now, AGE_MIN));
    (!is_old).then(|| "written within the hour".to_owned())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_pack_that_was_written_anew_stays_and_one_that_nobody_needs_goes() {
        let data = tempfile::tempdir().unwrap();
        fs::create_dir(data.path().join("packs")).unwrap();
        let pack = |name: &str, age: u64| {
            let hash = name.repeat(64);
            let path = PathBuf::from(format!("packs/{hash}.kgpack"));
            let changed = SystemTime::now() - Duration::from_secs(age);
            File::create(data.path().join(&path)).unwrap().set_modified(changed).unwrap();
            Removal { kind: RemovalKind::Pack(hash), path, bytes: 0, changed, why: String::new() }
        };
        let packs = vec![pack("a", 2 * 60 * 60), pack("b", 0)];
        let result = all(data.path(), data.path(), packs).unwrap();
        assert_eq!(result.gone.len(), 1);
        assert_eq!(result.later, ["packs that stay for now: 1, written within the hour"]);
        assert!(result.left.is_empty(), "{:?}", result.left);
        let names = fs::read_dir(data.path().join("packs")).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(names.collect::<Vec<_>>(), [format!("{}.kgpack", "b".repeat(64)).as_str()]);
    }

    #[test]
    fn one_process_at_a_time_removes() {
        let data = tempfile::tempdir().unwrap();
        let _first = alone(data.path()).unwrap();
        assert!(alone(data.path()).is_err());
    }
}
