//! What the process that works at a benchmark of this machine tells others on it: `live.json` in the folder of its run (of a
//! judged benchmark, of its first run), which it replaces every second. Whether the process lives, the lock of the run says:
//! what a dead one has left there is not read.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use benchmarks::names::benchmark_of;
use domain::control::BenchmarkView;
use domain::{RunId, machine};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;

use crate::kit::whole_file::{self, FOR_ALL};

/// The name of the file.
const FILE: &str = "live.json";

/// Time between two files.
const TOLD_EVERY: Duration = Duration::from_secs(1);

/// Age of a file in seconds from which its process stands still.
const SILENT_FROM_S: i64 = 10;

/// What a process says of its benchmark, of which others take what no record says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LiveView {
    /// When this was written.
    pub at: Timestamp,
    pub view: BenchmarkView,
}

impl LiveView {
    fn of(view: &BenchmarkView) -> Self {
        // What is counted, records say.
        Self {
            at: machine::now(),
            view: BenchmarkView { cells: Vec::new(), rows: Vec::new(), ..view.clone() },
        }
    }

    /// What the process that works at a benchmark has written last; `None` if that is nothing, or cannot be read.
    pub fn read(view: &BenchmarkView, data_dir: &Path) -> Option<Self> {
        let text = std::fs::read(path(view, data_dir)?).ok()?;
        let live: Self = serde_json::from_slice(&text).ok()?;
        (live.view.run == view.run).then_some(live)
    }

    /// Adds it to what is known from the records, and whether the process stands still.
    pub fn add_to(&self, view: &mut BenchmarkView, now: Timestamp) {
        let BenchmarkView { rate, tokens_per_second, eta_s, models, .. } = &self.view;
        (view.rate, view.tokens_per_second, view.eta_s) = (*rate, *tokens_per_second, *eta_s);
        for model in &mut view.models {
            let Some(live) = models.iter().find(|live| live.model == model.model) else { continue };
            (model.pace, model.calls) = (live.pace, live.calls.clone());
            (model.limit, model.limit_reasons) = (live.limit, live.limit_reasons.clone());
        }
        if now.as_second() - self.at.as_second() >= SILENT_FROM_S {
            let silence = format!("its process says nothing since {} UTC", self.at.strftime("%H:%M:%S"));
            view.trouble = view.trouble.take().or(Some(silence));
        }
    }
}

/// Where a benchmark has the file; `None` before a judged one has a run.
fn path(view: &BenchmarkView, data_dir: &Path) -> Option<PathBuf> {
    let is_own = |run: &&RunId| benchmark_of(run) == view.run;
    let run = match view.runs.is_empty() {
        true => &view.run,
        false => view.runs.iter().map(|run| &run.name).find(is_own)?,
    };
    Some(data_dir.join("runs").join(run.as_str()).join(FILE))
}

/// Writes the file while this process works.
pub struct LiveTeller {
    data_dir: PathBuf,
    told: Option<Instant>,
    path: Option<PathBuf>,
    writing: Option<JoinHandle<()>>,
}

impl LiveTeller {
    pub fn new(data_dir: &Path) -> Self {
        Self { data_dir: data_dir.to_owned(), told: None, path: None, writing: None }
    }

    /// Writes a view, if the last one is old enough. A file that cannot be written is no reason to stop.
    pub fn tell(&mut self, view: &BenchmarkView) {
        let is_fresh = self.told.is_some_and(|told| told.elapsed() < TOLD_EVERY);
        if is_fresh || self.writing.as_ref().is_some_and(|writing| !writing.is_finished()) {
            return;
        }
        self.told = Some(Instant::now());
        let Some(path) = path(view, &self.data_dir) else { return };
        let Ok(text) = serde_json::to_vec(&LiveView::of(view)) else { return };
        self.path = Some(path.clone());
        self.writing = Some(tokio::task::spawn_blocking(move || {
            if let Err(error) = whole_file::replace(&path, &text, FOR_ALL) {
                tracing::debug!(path = %path.display(), %error, "nobody can see what is under way");
            }
        }));
    }

    /// Removes the file.
    pub async fn end(self) {
        if let Some(writing) = self.writing {
            let _ = writing.await;
        }
        if let Some(path) = self.path {
            let _ = tokio::fs::remove_file(path).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::control::{ModelView, Pace, RunLine};
    use domain::exchange::{Calls, Retries};

    use super::*;

    fn view() -> BenchmarkView {
        let retries =
            Retries { why: "connection refused".to_owned(), calls: 4, attempt: 5, ..Retries::default() };
        let calls = Calls { in_flight: 2, waiting: 1, retries: vec![retries] };
        let pace = Pace { rate: 1.5, tokens_per_second: 30.0, eta_s: Some(9.0) };
        let model = ModelView {
            model: "m".into(),
            planned: 8,
            scored: 1,
            pace,
            calls,
            limit: 4,
            ..ModelView::default()
        };
        BenchmarkView {
            run: "r".into(),
            rate: 1.5,
            eta_s: Some(9.0),
            models: vec![model],
            ..BenchmarkView::default()
        }
    }

    #[tokio::test]
    async fn what_one_process_tells_another_one_shows_until_the_end() {
        let data = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(data.path().join("runs/r")).unwrap();
        let (told, mut teller) = (view(), LiveTeller::new(data.path()));
        teller.tell(&told);
        teller.writing.take().unwrap().await.unwrap();
        let mut shown = view();
        (shown.rate, shown.eta_s) = (0.0, None);
        shown.models[0] = ModelView { model: "m".into(), planned: 8, scored: 3, ..ModelView::default() };
        let live = LiveView::read(&shown, data.path()).unwrap();
        live.add_to(&mut shown, live.at);
        assert_eq!(
            (shown.rate, shown.eta_s, shown.models[0].scored),
            (1.5, Some(9.0), 3),
            "records count by themselves"
        );
        assert_eq!(shown.models[0].calls, told.models[0].calls);
        assert_eq!(shown.trouble, None);
        live.add_to(&mut shown, live.at + Duration::from_secs(10));
        assert!(shown.trouble.take().unwrap().contains("says nothing since"));
        let other = BenchmarkView { run: "other".into(), ..view() };
        assert_eq!(LiveView::read(&other, data.path()), None);
        teller.end().await;
        assert_eq!(LiveView::read(&shown, data.path()), None);
    }

    #[test]
    fn a_judged_benchmark_has_it_in_the_first_run_of_its_own() {
        let run = |name: &str| RunLine { name: name.into(), ..RunLine::default() };
        let judged = |runs| BenchmarkView { run: "b-1".into(), runs, ..BenchmarkView::default() };
        let of = |view: &BenchmarkView| path(view, Path::new("/d"));
        let runs = vec![run("a-1.ask.m.1"), run("b-1.grade.m.1")];
        assert_eq!(of(&judged(runs)), Some("/d/runs/b-1.grade.m.1/live.json".into()));
        assert_eq!(of(&judged(vec![run("a-1.ask.m.1")])), None);
    }
}
