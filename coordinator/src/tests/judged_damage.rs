//! Judged benchmarks of which one file is damaged: they stop nothing else, are shown with what is wrong, and can be removed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use benchmarks::RunName;
use domain::control::{Control, HistoryEntry, RunPhase};
use domain::{ErrorCode, RunId};

use super::ground::{self, Ground, Started};
use super::pipelines::{Asked, finish, submission};
use super::worker::Worker;

/// A kind of file that belongs to a judged benchmark.
#[derive(Clone, Copy, Debug, PartialEq)]
enum File {
    Manifest,
    LaterManifest,
    /// Its newest revision: the others are not looked into.
    State,
    History,
    StateOfRun,
    ManifestOfRun,
}

impl File {
    const ALL: [Self; 6] = [
        Self::Manifest,
        Self::LaterManifest,
        Self::State,
        Self::History,
        Self::StateOfRun,
        Self::ManifestOfRun,
    ];

    fn path(self, ground: &Ground, name: &RunId) -> PathBuf {
        let data = ground.data.path();
        let document = |document: &str| data.join("pipelines").join(format!("{name}.{document}.json"));
        let of_run = |file: &str| {
            let run = RunName::new(name.as_str(), "ask", &"unserved".into(), 1).run();
            data.join("runs").join(run.as_str()).join(file)
        };
        match self {
            Self::Manifest => document("manifest-1"),
            Self::LaterManifest => document("manifest-2"),
            Self::State => last_of(&data.join("pipelines"), &format!("{name}.state")),
            Self::History => last_of(&data.join("pipelines"), &format!("{name}.history-")),
            Self::StateOfRun => of_run("state.json"),
            Self::ManifestOfRun => of_run("manifest.json"),
        }
    }

    /// Whether the benchmark goes on without it. A coordinator reads the manifest of a run once, and the log knows its state.
    fn is_dispensable(self, restarts: bool) -> bool {
        matches!(self, Self::History | Self::StateOfRun) || (self == Self::ManifestOfRun && !restarts)
    }

    /// Whether the list, which looks at no run of a judged benchmark, shows at once what is wrong.
    fn is_of_list(self) -> bool {
        !matches!(self, Self::History | Self::StateOfRun | Self::ManifestOfRun)
    }
}

/// The last of a folder's files that begin so, by the length of their names first: later revisions have longer ones.
fn last_of(folder: &Path, beginning: &str) -> PathBuf {
    let names =
        std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let found = names.filter(|name| name.starts_with(beginning));
    let last = found.max_by_key(|name| (name.len(), name.clone()));
    folder.join(last.unwrap_or_else(|| panic!("{}: no {beginning}", folder.display())))
}

/// Changes one byte in the middle of a file to one that no JSON has.
fn damage(path: &PathBuf) {
    let mut content = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let middle = content.len() / 2;
    content[middle] = 0xff;
    std::fs::write(path, content).unwrap();
}

/// A judged benchmark one of whose files gets damaged, another one, and a run.
struct Three {
    bad: RunId,
    good: RunId,
    run: RunId,
}

async fn submitted(coordinator: &Started) -> Three {
    let bad = coordinator.submit(submission(&["m"])).await.unwrap().run;
    coordinator.extend(&bad, submission(&["m", "unserved"])).await.unwrap();
    let entry = HistoryEntry { at: domain::machine::now(), who: "w".into(), what: "submitted".into() };
    coordinator.parts().views.note_history(&bad, &entry).await.unwrap();
    let mut other = submission(&["m"]);
    other.configuration["name"] = "another".into();
    let good = coordinator.submit(other).await.unwrap().run;
    let run = coordinator.submit(ground::submission(2)).await.unwrap().run;
    Three { bad, good, run }
}

/// What is left of a benchmark in the folder.
fn left(ground: &Ground, name: &RunId) -> Vec<String> {
    let folders = ["pipelines", "runs"].map(|folder| ground.data.path().join(folder));
    let names = folders.into_iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let mut names: Vec<String> =
        names.map(|file| file.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.retain(|file| file.starts_with(name.as_str()));
    names
}

async fn one_damaged_file_stops_nothing_else(file: File, restarts: bool) {
    let ground = Ground::new();
    let mut coordinator: Arc<Started> = ground.coordinator();
    let Three { bad, good, run } = submitted(&coordinator).await;
    coordinator.tend().await.unwrap();
    damage(&file.path(&ground, &bad));
    if restarts {
        drop(coordinator);
        coordinator = ground.coordinator();
    }
    coordinator.tend().await.unwrap_or_else(|error| panic!("{file:?}: {error}"));
    assert!(coordinator.parts().health.is_tended(), "{file:?}: it gets ready");
    assert_eq!(coordinator.ready(), Ok(()), "{file:?}");

    // People see what is wrong, and everything else.
    let listed = coordinator.list().await.unwrap_or_else(|error| panic!("{file:?}: {error}"));
    for name in [&bad, &good, &run] {
        let shown =
            listed.iter().find(|view| view.run == *name).unwrap_or_else(|| panic!("{file:?}: {name}"));
        let is_told = shown.trouble.as_ref().is_some_and(|why| why.contains(bad.as_str()));
        assert!(is_told || name != &bad || !file.is_of_list(), "{file:?}: {:?}", shown.trouble);
        assert!(name == &bad || shown.trouble.is_none(), "{file:?}: {name}: {:?}", shown.trouble);
    }
    let local = coordinator.pipelines().await.unwrap();
    assert!([&bad, &good].iter().all(|name| local.iter().any(|view| view.run == **name)), "{file:?}");
    let view = coordinator.view(&bad).await.unwrap_or_else(|error| panic!("{file:?}: {error}"));
    assert_eq!(view.trouble.is_none(), file.is_dispensable(restarts), "{file:?}: {:?}", view.trouble);

    // The others go on to their ends.
    let mut asked = Asked::default();
    finish(&coordinator, &good, &mut asked).await;
    Worker::new("w").work_off(&coordinator, &mut Vec::new()).await;
    coordinator.tend().await.unwrap();
    assert_eq!(coordinator.view(&run).await.unwrap().phase, RunPhase::Finished, "{file:?}");

    // Another one can be removed, and the damaged one by force.
    let refused = coordinator.remove(&good, false).await;
    if matches!(file, File::Manifest | File::LaterManifest) {
        let refused = refused.unwrap_err();
        assert!(refused.message.contains(bad.as_str()) && refused.message.contains("--force"), "{refused}");
        coordinator.remove(&good, true).await.unwrap();
    } else {
        refused.unwrap_or_else(|error| panic!("{file:?}: {error}"));
    }
    if !file.is_dispensable(restarts) {
        let refused = coordinator.remove(&bad, false).await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::Conflict, "{file:?}: {refused}");
        assert!(refused.message.contains("--force"), "{file:?}: {refused}");
    }
    coordinator.remove(&bad, true).await.unwrap_or_else(|error| panic!("{file:?}: {error}"));
    coordinator.tend().await.unwrap();
    assert_eq!(left(&ground, &bad), [""; 0], "{file:?}");
    let names: Vec<RunId> = coordinator.list().await.unwrap().into_iter().map(|view| view.run).collect();
    assert_eq!(names, [run], "{file:?}");
}

#[tokio::test]
async fn one_damaged_file_of_a_judged_benchmark_stops_nothing_else() {
    for file in File::ALL {
        for restarts in [false, true] {
            one_damaged_file_stops_nothing_else(file, restarts).await;
        }
    }
}
