//! What arguments offer about benchmarks: their names, models, tasks and dialogues, from the folder or the fleet that the
//! typed line means. Everything is bounded, and nobody is told why there is nothing to offer: see [`completion`].

use std::cmp::Reverse;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use benchmarks::names::benchmark_of;
use clap_complete::engine::ArgValueCompleter;
use coordinator::configuration::{Configuration, ModelSpec};
use coordinator::plan::{Plan, PlannedModel, PlannedTask, outlines};
use domain::RunId;
use domain::control::{BenchmarkView, Control, ModelView, RowKind};
use packs::Pack;
use packs::configurations::BUNDLED;
use proto::client::ApiClient;
use results::{RunDir, RunManifest};
use worker::material;

use crate::kit::completion::{self, OFFERED_MAX};
use crate::kit::exit_code::explained;
use crate::place::line::CompletedLine;
use crate::place::remote::Remote;
use crate::place::{folders, names};

/// Longest time for which a coordinator is waited for.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(1);

/// Maximum number of runs in a folder that are looked at.
const RUNS_LISTED_MAX: usize = 10_000;

/// Maximum number of runs in a folder whose manifests are read to know which one is the newest.
const RUNS_DATED_MAX: usize = 500;

/// Maximum number of runs of a benchmark whose models and tasks are offered.
const RUNS_READ_MAX: usize = 32;

/// Names of benchmarks, for a verb that acts on this machine or in a fleet.
pub fn runs() -> ArgValueCompleter {
    completion::completer(runs_anywhere)
}

/// The same where files may be named as well.
pub fn runs_or_files() -> ArgValueCompleter {
    completion::completer_or_file(runs_anywhere)
}

/// Names of benchmarks of this machine.
pub fn runs_here() -> ArgValueCompleter {
    completion::completer(|typed| {
        let line = CompletedLine::of_process();
        line.map_or_else(Vec::new, |line| meant(&in_folder(line.data_dir()), typed))
    })
}

/// Names of benchmarks, for a verb that acts in a fleet only.
pub fn runs_of_fleet() -> ArgValueCompleter {
    completion::completer(|typed| {
        let fleet = CompletedLine::of_process().and_then(|line| line.fleet().ok());
        fleet.map_or_else(Vec::new, |fleet| meant(&in_fleet(&fleet), typed))
    })
}

/// Labels of models: of the benchmark that the line names, or of the bundled configurations.
pub fn models() -> ArgValueCompleter {
    completion::completer(|_| {
        let named: Vec<String> = of_line(RunOutline::models).into_iter().map(|run| run.model).collect();
        if named.is_empty() { bundled().iter().flat_map(|one| labels(&one.models)).collect() } else { named }
    })
}

/// Labels of tasks: of the benchmark that the line names, or of the packs of the bundled configurations.
pub fn tasks() -> ArgValueCompleter {
    completion::completer(|_| {
        let named = of_line(RunOutline::planned);
        if named.is_empty() {
            return bundled_tasks();
        }
        named.into_iter().flat_map(|run| run.tasks.into_iter().map(|(task, _)| task)).collect()
    })
}

/// Dialogues of the benchmark that the line names, as MODEL/TASK/ITERATION: one part after the other.
pub fn dialogues() -> ArgValueCompleter {
    completion::completer(|typed| next_parts(typed, &of_line(RunOutline::planned)))
}

fn runs_anywhere(typed: &str) -> Vec<String> {
    let Some(line) = CompletedLine::of_process() else { return Vec::new() };
    match line.fleet_if_named() {
        Ok(Some(fleet)) => meant(&in_fleet(&fleet), typed),
        Ok(None) => meant(&in_folder(line.data_dir()), typed),
        Err(_) => Vec::new(),
    }
}

/// The runs of a folder, the newest first where names begin with their time.
fn in_folder(data_dir: &Path) -> Vec<RunId> {
    let mut runs = RunDir::names(data_dir, RUNS_LISTED_MAX).unwrap_or_default();
    runs.sort_by(|a, b| b.cmp(a));
    runs
}

/// The benchmarks of a fleet, the newest first.
fn in_fleet(fleet: &Remote) -> Vec<RunId> {
    let listed = ask(fleet, async |client| client.list().await.map_err(explained));
    let mut listed = listed.unwrap_or_default();
    listed.sort_by_key(|view| Reverse(view.created_at));
    listed.into_iter().map(|view| view.run).collect()
}

/// The names that a word may be the beginning of, as in [`names`]: runs of a judged benchmark only where nothing else
/// begins so.
fn meant(runs: &[RunId], typed: &str) -> Vec<String> {
    let begins_so = |name: &String| name.starts_with(typed);
    let benchmarks = runs.iter().map(|run| benchmark_of(run).to_string());
    let mut fit: Vec<String> = benchmarks.filter(begins_so).collect();
    if !typed.is_empty() {
        fit.extend([names::LATEST.to_owned()].into_iter().filter(begins_so));
    }
    if fit.is_empty() {
        fit.extend(runs.iter().map(RunId::to_string).filter(begins_so));
    }
    fit
}

/// What is asked of a model in a run.
#[derive(Clone, Debug, PartialEq)]
struct RunOutline {
    model: String,
    /// The tasks, each with its iterations.
    tasks: Vec<(String, u64)>,
}

impl RunOutline {
    /// The models of a run, without their tasks.
    fn models(_: &RunDir, manifest: &RunManifest) -> Vec<Self> {
        let Ok(configuration) = folders::configuration(manifest) else { return Vec::new() };
        labels(&configuration.models).map(|model| Self { model, tasks: Vec::new() }).collect()
    }

    /// The models of a run with their tasks, as far as its pack lies beside it or is one of this program: nothing is compiled.
    fn planned(dir: &RunDir, manifest: &RunManifest) -> Vec<Self> {
        let Ok(configuration) = folders::configuration(manifest) else { return Vec::new() };
        let kept = manifest.packs.first().and_then(|used| folders::packs_beside(dir).find(&used.hash));
        let pack = kept.map(|(_, pack)| pack).or_else(|| bundled_pack(&configuration.pack));
        let plan = pack.and_then(|pack| Plan::new(&configuration, &outlines(&pack)).ok());
        plan.map_or_else(Vec::new, |plan| Self::of_plan(&plan))
    }

    fn of_plan(plan: &Plan) -> Vec<Self> {
        let of_model = |model: &PlannedModel| {
            let tasks = plan.tasks.iter().enumerate();
            let asked = |(index, task): (usize, &PlannedTask)| {
                (task.label.to_string(), u64::from(model.iterations_of(index)))
            };
            Self { model: model.label.to_string(), tasks: tasks.map(asked).collect() }
        };
        plan.models.iter().map(of_model).collect()
    }

    /// What a coordinator shows of it: each task is mostly asked as often as the others.
    fn of_view(view: &BenchmarkView) -> Vec<Self> {
        let rows = view.rows.iter().filter(|row| row.kind == RowKind::Task);
        let tasks: Vec<String> = rows.map(|row| row.name.to_string()).collect();
        let of_model = |model: &ModelView| {
            let iterations = model.planned.div_ceil(tasks.len().max(1) as u64);
            let tasks = tasks.iter().map(|task| (task.clone(), iterations));
            Self { model: model.model.to_string(), tasks: tasks.collect() }
        };
        view.models.iter().map(of_model).collect()
    }
}

/// The outlines of the benchmark that a word of the line names, each run's in a folder by `outline`.
fn of_line(outline: fn(&RunDir, &RunManifest) -> Vec<RunOutline>) -> Vec<RunOutline> {
    let Some(line) = CompletedLine::of_process() else { return Vec::new() };
    let words: Vec<&str> = line.words().collect();
    match line.fleet_if_named() {
        Ok(Some(fleet)) => view(&fleet, &words).map_or_else(Vec::new, |view| RunOutline::of_view(&view)),
        Ok(None) => {
            let runs = runs_of(&words, line.data_dir());
            runs.iter().flat_map(|(dir, manifest)| outline(dir, manifest)).collect()
        }
        Err(_) => Vec::new(),
    }
}

/// The runs of the benchmark of a folder that one of these words names.
fn runs_of(words: &[&str], data_dir: &Path) -> Vec<(RunDir, RunManifest)> {
    let runs = in_folder(data_dir);
    let Some(word) = words.iter().find(|word| may_name(word, &runs)) else { return Vec::new() };
    let name = match *word {
        names::LATEST if runs.len() > RUNS_DATED_MAX => None,
        names::LATEST => names::of_folder(names::LATEST, data_dir).ok(),
        word => only_one(&runs, word),
    };
    let Some(name) = name else { return Vec::new() };
    let of_it = runs.into_iter().filter(|run| *run == name || benchmark_of(run) == name).take(RUNS_READ_MAX);
    of_it.filter_map(|run| RunDir::open(data_dir, &run).ok()).collect()
}

/// The one name that a word means.
fn only_one(runs: &[RunId], word: &str) -> Option<RunId> {
    let mut fit = meant(runs, word);
    fit.sort();
    fit.dedup();
    let whole = fit.iter().find(|name| *name == word);
    let only = if let [only] = fit.as_slice() { Some(only) } else { None };
    whole.or(only).map(|name| RunId::new(name.as_str()))
}

/// The benchmark of a fleet that one of these words names.
fn view(fleet: &Remote, words: &[&str]) -> Option<BenchmarkView> {
    ask(fleet, async |client| {
        let listed = client.list().await.map_err(explained)?;
        let known: Vec<RunId> = listed.into_iter().map(|view| view.run).collect();
        // Runs of a judged benchmark are not listed.
        let is_known = |word: &&&str| may_name(word.split('.').next().unwrap_or_default(), &known);
        let word = words.iter().find(is_known).context("no word names a benchmark")?;
        let name = names::of_coordinator(word, client).await?;
        client.view(&name).await.map_err(explained)
    })
}

/// Whether a word may name one of these runs or its benchmark.
fn may_name(word: &str, runs: &[RunId]) -> bool {
    word == names::LATEST || runs.iter().any(|run| run.as_str().starts_with(word))
}

/// Asks a coordinator, which may take [`ANSWER_TIME_MAX`].
fn ask<T>(fleet: &Remote, calls: impl AsyncFnOnce(&ApiClient) -> anyhow::Result<T>) -> Option<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let answer = runtime.block_on(async {
        let client = fleet.client().ok()?;
        tokio::time::timeout(ANSWER_TIME_MAX, calls(&client)).await.ok()?.ok()
    });
    // A name server that does not answer is not waited for either.
    runtime.shutdown_background();
    answer
}

/// The configurations that come with the program.
fn bundled() -> Vec<Configuration> {
    BUNDLED
        .iter()
        .filter_map(|(name, text)| Configuration::parse(text, &format!("{name}.toml")).ok())
        .collect()
}

fn labels(models: &[ModelSpec]) -> impl Iterator<Item = String> {
    models.iter().map(|model| model.label.to_string())
}

fn bundled_tasks() -> Vec<String> {
    let mut packs: Vec<String> = bundled().into_iter().map(|configuration| configuration.pack).collect();
    packs.dedup();
    let tasks = packs.iter().filter_map(|pack| bundled_pack(pack));
    tasks
        .flat_map(|pack| pack.tasks().iter().map(|task| task.label.to_string()).collect::<Vec<_>>())
        .collect()
}

/// A pack that is part of the program; `None` if none has this name.
fn bundled_pack(name: &str) -> Option<Arc<Pack>> {
    let is_part = name == material::CORE || packs::bundled(name).is_some();
    is_part.then(|| material::open_pack(name).ok()).flatten()
}

/// The dialogues that begin so, up to the end of the part that is typed. Labels of models may hold slashes.
fn next_parts(typed: &str, runs: &[RunOutline]) -> Vec<String> {
    let mut offered = Vec::new();
    for RunOutline { model, tasks } in runs {
        let of_model = format!("{model}/");
        if !typed.starts_with(&of_model) {
            offered.push(of_model);
            continue;
        }
        for (task, iterations) in tasks {
            let of_task = format!("{of_model}{task}/");
            if !typed.starts_with(&of_task) {
                offered.push(of_task);
                continue;
            }
            let dialogues = (0..*iterations).map(|iteration| format!("{of_task}{iteration}"));
            offered.extend(dialogues.filter(|dialogue| dialogue.starts_with(typed)).take(OFFERED_MAX));
        }
    }
    offered
}

#[cfg(test)]
mod tests {
    use domain::control::RowView;
    use results::manifest::{MANIFEST_VERSION, PackUse, hash};

    use super::*;

    /// A run of the bundled configuration `quick`.
    fn quick(run: &str) -> RunManifest {
        let configuration = serde_json::to_value(&bundled()[0]).unwrap();
        RunManifest {
            version: MANIFEST_VERSION,
            revision: 1,
            run: RunId::new(run),
            created_at: "2026-01-01T00:00:00Z".parse().unwrap(),
            kgfleet: "0.1.0".to_owned(),
            configuration_hash: hash(&configuration),
            configuration,
            keyless_hash: None,
            plan_hash: String::new(),
            seed: 1,
            packs: vec![PackUse { name: "core".to_owned(), hash: "ab".to_owned() }],
            planned_dialogues: 390,
            protected: false,
            log_key: None,
            about: None,
            other: serde_json::Map::new(),
        }
    }

    /// A folder with these runs.
    fn folder(runs: &[&str]) -> tempfile::TempDir {
        let data = tempfile::tempdir().unwrap();
        for run in runs {
            RunDir::create(data.path(), &quick(run)).unwrap();
        }
        data
    }

    const RUNS: [&str; 4] =
        ["20260101-000000-a", "20260102-000000-b", "quick-0a1b2c.ask.m.1", "quick-0a1b2c.grade.m.1"];

    #[test]
    fn names_are_those_that_a_word_may_mean() {
        let data = folder(&RUNS);
        let known = in_folder(data.path());
        let meant = |typed: &str| meant(&known, typed);
        assert_eq!(meant("2026"), ["20260102-000000-b", "20260101-000000-a"], "the newest first");
        assert!(meant("qui").iter().all(|name| name == "quick-0a1b2c"), "the benchmark is meant");
        assert_eq!(meant("quick-0a1b2c.g"), ["quick-0a1b2c.grade.m.1"]);
        assert_eq!(meant("la"), ["latest"]);
        assert!(meant("").len() >= 3 && !meant("").contains(&"latest".to_owned()));
        assert!(meant("x").is_empty());
        let nowhere = in_folder(&data.path().join("nowhere"));
        assert!(nowhere.is_empty());
    }

    #[test]
    fn a_word_of_the_line_names_the_runs_that_are_read() {
        let data = folder(&RUNS);
        let named = |words: &[&str]| -> Vec<String> {
            runs_of(words, data.path()).iter().map(|(dir, _)| dir.run().to_string()).collect()
        };
        assert_eq!(named(&["Rdf*", "20260101"]), ["20260101-000000-a"]);
        assert_eq!(named(&["quick"]), ["quick-0a1b2c.grade.m.1", "quick-0a1b2c.ask.m.1"]);
        assert!(named(&["2026"]).is_empty(), "it may be either");
        assert!(named(&["x"]).is_empty() && named(&[]).is_empty());
        assert_eq!(named(&["latest"]).len(), 1);
    }

    #[test]
    fn dialogues_are_offered_part_by_part() {
        let data = folder(&RUNS[..1]);
        let (dir, manifest) = &runs_of(&["latest"], data.path())[0];
        let models: Vec<String> =
            RunOutline::models(dir, manifest).into_iter().map(|outline| outline.model).collect();
        assert_eq!(models, ["sim-strong", "sim-middling", "sim-weak"]);
        let planned = RunOutline::planned(dir, manifest);
        let next = |typed: &str| {
            let parts = next_parts(typed, &planned).into_iter();
            parts.filter(|part| part.starts_with(typed)).collect::<Vec<_>>()
        };
        assert_eq!(next("sim-m"), ["sim-middling/"]);
        assert_eq!(next("sim-weak/RdfFriendCount-nt-1"), ["sim-weak/RdfFriendCount-nt-1/"]);
        let iterations = next("sim-weak/RdfFriendCount-nt-1/");
        assert_eq!(iterations.len(), 5, "{iterations:?}");
        assert_eq!(iterations[4], "sim-weak/RdfFriendCount-nt-1/4");
        assert!(next("sim-weak/RdfFriendCount-nt-1/7").is_empty());
    }

    #[test]
    fn labels_with_slashes_are_models_all_the_same() {
        let of = |model: &str| RunOutline { model: model.to_owned(), tasks: vec![("t".to_owned(), 2)] };
        let runs = [of("org/m"), of("org")];
        assert_eq!(next_parts("org/", &runs), ["org/m/", "org/t/"]);
        assert_eq!(next_parts("org/m/t/", &runs), ["org/m/t/0", "org/m/t/1", "org/t/"]);
    }

    #[test]
    fn a_fleet_tells_models_and_tasks_by_its_view() {
        let row = RowView { name: "t".into(), ..RowView::default() };
        let model = ModelView { model: "m".into(), planned: 3, ..ModelView::default() };
        let view = BenchmarkView { models: vec![model], rows: vec![row], ..BenchmarkView::default() };
        let asked = RunOutline { model: "m".to_owned(), tasks: vec![("t".to_owned(), 3)] };
        assert_eq!(RunOutline::of_view(&view), [asked]);
    }

    #[test]
    fn what_comes_with_the_program_is_offered_where_no_run_is_named() {
        let tasks = bundled_tasks();
        assert!(tasks.contains(&"RdfFriendCount-nt-1".to_owned()) && tasks.len() > 26, "{tasks:?}");
        assert!(bundled_pack("/etc/passwd").is_none());
    }
}
