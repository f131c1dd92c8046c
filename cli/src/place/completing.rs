//! What arguments offer about benchmarks: their names, models, tasks and dialogues, from the folder or the fleet that the
//! typed line means. Everything is bounded, and nobody is told why there is nothing to offer: see [`completion`].

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use benchmarks::names::benchmark_of;
use clap::{CommandFactory, Parser};
use clap_complete::engine::ArgValueCompleter;
use coordinator::configuration::Configuration;
use domain::RunId;
use domain::control::{BenchmarkView, RowKind};
use packs::Pack;
use packs::configurations::BUNDLED;
use results::RunDir;
use worker::material;

use crate::kit::completion::{self, OFFERED_MAX};
use crate::kit::exit_code::explained;
use crate::place::{Place, PlaceOptions, names};

/// Longest time for which a coordinator is waited for.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(1);

/// Maximum number of runs in a folder that are looked at.
const RUNS_LISTED_MAX: usize = 10_000;

/// Maximum number of runs in a folder whose manifests are read to know which one a word means.
const RUNS_READ_MAX: usize = 500;

/// The options that say where runs are, as a command line of their own.
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
struct PlaceLine {
    #[command(flatten)]
    place: PlaceOptions,
}

/// A command line that is still typed, as far as it says where runs are.
#[derive(Debug)]
struct TypedLine {
    place: PlaceOptions,
    /// Its words without those options: the verb first.
    words: Vec<String>,
}

impl TypedLine {
    /// The one about which this process is asked; `None` if its options cannot be used.
    fn of_process() -> Option<Self> {
        Self::read(completion::words())
    }

    /// Reads the words after the program's name.
    fn read(line: Vec<String>) -> Option<Self> {
        let known = PlaceLine::command();
        let takes_value = |name: &str| {
            let option = known.get_arguments().find(|option| option.get_long() == Some(name))?;
            Some(option.get_action().takes_values())
        };
        let (mut options, mut words, mut line) = (Vec::new(), Vec::new(), line.into_iter());
        while let Some(word) = line.next() {
            let Some(option) = word.strip_prefix("--") else {
                words.push(word);
                continue;
            };
            let (name, has_value) = option.split_once('=').map_or((option, false), |(name, _)| (name, true));
            match takes_value(name) {
                Some(true) if !has_value => {
                    // Without a value it is the one that is typed.
                    options.extend(line.next().map(|value| [word, value]).into_iter().flatten());
                }
                Some(_) => options.push(word),
                None => {}
            }
        }
        Some(Self { place: PlaceLine::try_parse_from(options).ok()?.place, words })
    }

    /// What may be the name of a benchmark: the words after the verb that are no options.
    fn names(&self) -> impl Iterator<Item = &str> {
        let words = self.words.iter().skip(1).map(String::as_str);
        words.filter(|word| !word.is_empty() && !word.starts_with('-'))
    }
}

/// Names of benchmarks, for a verb that acts on this machine or in a fleet.
pub fn runs() -> ArgValueCompleter {
    completion::completer(|typed| names_at(typed, |options| options.place().ok()))
}

/// The same where files may be named as well.
pub fn runs_or_files() -> ArgValueCompleter {
    completion::completer_or_file(|typed| names_at(typed, |options| options.place().ok()))
}

/// Names of benchmarks of this machine.
pub fn runs_here() -> ArgValueCompleter {
    completion::completer(|typed| names_at(typed, |options| Some(Place::Here(options.data.data_dir))))
}

/// Names of benchmarks, for a verb that acts in a fleet only.
pub fn runs_of_fleet() -> ArgValueCompleter {
    completion::completer(|typed| names_at(typed, |options| Some(Place::Fleet(options.remote.fleet()))))
}

fn names_at(typed: &str, place: impl FnOnce(PlaceOptions) -> Option<Place>) -> Vec<String> {
    let place = TypedLine::of_process().and_then(|line| place(line.place));
    place.map_or_else(Vec::new, |place| meant(&runs_at(&place), typed))
}

/// Labels of models: of the benchmark that the line names, or of the bundled configurations.
pub fn models() -> ArgValueCompleter {
    completion::completer(|_| match benchmark() {
        Some(view) => view.models.into_iter().map(|model| model.model.to_string()).collect(),
        None => {
            let models = bundled().into_iter().flat_map(|configuration| configuration.models);
            models.map(|model| model.label.to_string()).collect()
        }
    })
}

/// Labels of tasks: of the benchmark that the line names, or of the packs of the bundled configurations.
pub fn tasks() -> ArgValueCompleter {
    completion::completer(|_| benchmark().map_or_else(bundled_tasks, |view| tasks_of(&view)))
}

/// Dialogues of the benchmark that the line names, as MODEL/TASK/ITERATION: one part after the other.
pub fn dialogues() -> ArgValueCompleter {
    completion::completer(|typed| benchmark().map_or_else(Vec::new, |view| next_parts(typed, &view)))
}

/// The benchmarks of a fleet, or the runs of a folder: the newest first, in a folder where names begin with their time.
fn runs_at(place: &Place) -> Vec<RunId> {
    if let Some(folder) = place.folder() {
        return in_folder(folder);
    }
    let listed = ask(async || place.control()?.list().await.map_err(explained)).unwrap_or_default();
    listed.into_iter().rev().map(|view| view.run).collect()
}

/// The benchmark that a word of the line names.
fn benchmark() -> Option<BenchmarkView> {
    let line = TypedLine::of_process()?;
    let place = line.place.place().ok()?;
    let runs = runs_at(&place);
    // Runs of a judged benchmark are not listed.
    let begins = |word: &str| word.split('.').next().unwrap_or_default().to_owned();
    let is_known = |word: &&str| {
        *word == names::LATEST || runs.iter().any(|run| run.as_str().starts_with(&begins(word)))
    };
    let word = line.names().find(is_known)?;
    let is_whole = runs.iter().any(|run| run.as_str() == word);
    if place.folder().is_some() && !is_whole && runs.len() > RUNS_READ_MAX {
        return None;
    }
    ask(async || {
        let control = place.control()?;
        let name = if is_whole { RunId::new(word) } else { names::resolve(word, &*control).await? };
        control.view(&name).await.map_err(explained)
    })
}

/// The runs of a folder.
fn in_folder(data_dir: &Path) -> Vec<RunId> {
    let mut runs = RunDir::names(data_dir, RUNS_LISTED_MAX).unwrap_or_default();
    runs.sort_by(|a, b| b.cmp(a));
    runs
}

/// Those of the runs that a word may be the beginning of, as in [`names`]: runs of a judged benchmark only where nothing else
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

/// Waits for an answer for [`ANSWER_TIME_MAX`] at most.
fn ask<T>(calls: impl AsyncFnOnce() -> anyhow::Result<T>) -> Option<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let answer = runtime.block_on(async { tokio::time::timeout(ANSWER_TIME_MAX, calls()).await.ok()?.ok() });
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

fn tasks_of(view: &BenchmarkView) -> Vec<String> {
    let rows = view.rows.iter().filter(|row| row.kind == RowKind::Task);
    rows.map(|row| row.name.to_string()).collect()
}

/// The dialogues that begin so, up to the end of the part that is typed. Labels of models may hold slashes. Each task is
/// mostly asked as often as the others.
fn next_parts(typed: &str, view: &BenchmarkView) -> Vec<String> {
    let (mut offered, tasks) = (Vec::new(), tasks_of(view));
    for model in &view.models {
        let of_model = format!("{}/", model.model);
        if !typed.starts_with(&of_model) {
            offered.push(of_model);
            continue;
        }
        let iterations = model.planned.div_ceil(tasks.len().max(1) as u64);
        for task in &tasks {
            let of_task = format!("{of_model}{task}/");
            if !typed.starts_with(&of_task) {
                offered.push(of_task);
                continue;
            }
            let dialogues = (0..iterations).map(|iteration| format!("{of_task}{iteration}"));
            offered.extend(dialogues.filter(|dialogue| dialogue.starts_with(typed)).take(OFFERED_MAX));
        }
    }
    offered
}

#[cfg(test)]
mod tests {
    use domain::control::{ModelView, RowView};

    use super::*;

    #[test]
    fn names_are_those_that_a_word_may_mean() {
        let runs =
            ["20260102-000000-b", "20260101-000000-a", "quick-0a1b2c.ask.m.1", "quick-0a1b2c.grade.m.1"];
        let runs = runs.map(RunId::new);
        let meant = |typed: &str| meant(&runs, typed);
        assert_eq!(meant("2026"), ["20260102-000000-b", "20260101-000000-a"]);
        assert!(meant("qui").iter().all(|name| name == "quick-0a1b2c"), "the benchmark is meant");
        assert_eq!(meant("quick-0a1b2c.g"), ["quick-0a1b2c.grade.m.1"]);
        assert_eq!(meant("la"), ["latest"]);
        assert!(meant("").len() >= 3 && !meant("").contains(&"latest".to_owned()));
        assert!(meant("x").is_empty());
        assert!(in_folder(Path::new("nowhere")).is_empty());
    }

    #[test]
    fn dialogues_are_offered_part_by_part_whatever_labels_hold() {
        let model = |model: &str| ModelView { model: model.into(), planned: 2, ..ModelView::default() };
        let row = RowView { name: "t".into(), ..RowView::default() };
        let models = vec![model("org/m"), model("org")];
        let view = BenchmarkView { models, rows: vec![row], ..BenchmarkView::default() };
        assert_eq!(next_parts("", &view), ["org/m/", "org/"]);
        assert_eq!(next_parts("org/", &view), ["org/m/", "org/t/"]);
        assert_eq!(next_parts("org/m/t/", &view), ["org/m/t/0", "org/m/t/1", "org/t/"]);
    }

    #[test]
    fn what_comes_with_the_program_is_offered_where_no_run_is_named() {
        let tasks = bundled_tasks();
        assert!(tasks.contains(&"RdfFriendCount-nt-1".to_owned()) && tasks.len() > 26, "{tasks:?}");
        assert!(bundled_pack("/etc/passwd").is_none());
    }

    fn read(line: &str) -> Option<TypedLine> {
        TypedLine::read(line.split(' ').map(str::to_owned).collect())
    }

    #[test]
    fn a_line_says_where_runs_are_wherever_it_says_so() {
        let line = read("show --fleet here latest --data-dir /data --plaintext m/").unwrap();
        assert_eq!(line.place.data.data_dir, Path::new("/data"));
        assert!(line.place.place().unwrap().folder().is_some());
        assert_eq!(line.names().collect::<Vec<_>>(), ["latest", "m/"]);
        let line = read("table --data-dir=/data -v --task Rdf* --fleet http://a,http://b quick").unwrap();
        assert_eq!(line.place.data.data_dir, Path::new("/data"));
        let Place::Fleet(fleet) = line.place.place().unwrap() else { panic!("a fleet is named") };
        assert_eq!(fleet.address(), "http://a or http://b");
        assert_eq!(line.names().collect::<Vec<_>>(), ["Rdf*", "quick"]);
    }

    #[test]
    fn what_is_not_whole_yet_stops_nothing() {
        let line = read("show latest --data-dir").unwrap();
        assert_eq!(line.names().collect::<Vec<_>>(), ["latest"]);
        assert!(read("show --data-dir /a --data-dir /b latest").is_none(), "which is meant?");
        assert!(read("").unwrap().names().next().is_none());
    }

    #[test]
    fn a_verb_of_fleets_has_one_by_default() {
        let fleet = read("pause --fleet http://a x").unwrap().place.remote.fleet();
        assert_eq!(fleet.address(), "http://a");
    }
}
