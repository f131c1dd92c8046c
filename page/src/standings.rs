//! Where the models of a run stand: means, intervals and what is missing, all of one moment. They are computed in the
//! background, use at most a hundredth of the time, and may be older than the counts beside them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use coordinator::access::Access;
use coordinator::dialogues::ModelScores;
use domain::control::{BenchmarkView, Better, CellView, ModelView, RowKind, RowView};
use domain::ranking::{Contender, RankedPlace, ranked};
use domain::{Mean, ModelLabel, RunId};
use report::analysis::cells::MeanOfTasks;
use report::stats::Interval;

/// Shortest time between two computations.
const EVERY: Duration = Duration::from_secs(2);

/// After a computation, pause for this many times its duration.
const REST: u32 = 100;

/// Where a model stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ModelStanding {
    pub model: ModelLabel,
    pub contender: Contender,
    /// Of its value, from the same scores.
    pub interval: Option<Interval>,
}

/// Where the models of a benchmark stand at one moment, in the order of its plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Standings {
    pub models: Vec<ModelStanding>,
    /// Which of two values is the better one.
    pub better: Better,
}

impl Standings {
    /// From the means of a view, without intervals: what is known before any scores were read, and of benchmarks whose number
    /// is no mean of scores.
    pub(crate) fn of_view(view: &BenchmarkView) -> Self {
        let is_mean = view.headline.intervals;
        let tasks = |model: &ModelView| {
            let of_model = view.cells.iter().filter(|cell| cell.model == model.model);
            of_model.map(CellView::covered_mean).collect::<Vec<Mean>>()
        };
        let standing = |model: &ModelView| ModelStanding {
            model: model.model.clone(),
            contender: if is_mean { Contender::of_tasks(tasks(model)) } else { of_result(model.mean) },
            interval: None,
        };
        let first_result = view.rows.iter().find(|row| row.kind == RowKind::Result).filter(|_| !is_mean);
        let better = |row: &RowView| row.better;
        Self {
            models: view.models.iter().map(standing).collect(),
            better: first_result.map_or(Better::Higher, better),
        }
    }

    fn of_scores(scores: Vec<ModelScores>) -> Self {
        let standing = |ModelScores { model, tasks }: ModelScores| {
            let MeanOfTasks { contender, estimate } = MeanOfTasks::of(tasks);
            ModelStanding { model, contender, interval: estimate.map(|estimate| estimate.interval) }
        };
        Self { models: scores.into_iter().map(standing).collect(), better: Better::Higher }
    }

    /// The models in their order, each with its place.
    pub(crate) fn placed(&self) -> Vec<(&ModelStanding, RankedPlace)> {
        let contenders: Vec<Contender> = self.models.iter().map(|model| model.contender).collect();
        let places = ranked(&contenders, self.better);
        places.into_iter().map(|place| (&self.models[place.contender], place)).collect()
    }

    /// How many values are in them.
    pub(crate) fn scores(&self) -> u64 {
        self.models.iter().map(|model| model.contender.covered).sum()
    }
}

/// A result: what it could still become is not known, because it is no mean of scores between 0 and 1.
fn of_result(mean: Mean) -> Contender {
    let Mean { value, covered, planned } = mean;
    Contender { value, covered, planned, bounds: None }
}

/// The standings of a run, as far as they are known.
#[derive(Default)]
pub(crate) struct RunStandings(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    known: Option<Arc<Standings>>,
    /// Number of dialogues with a record at the last computation.
    done: Option<u64>,
    /// No computation begins before this time.
    rest_until: Option<Instant>,
    under_way: bool,
}

impl RunStandings {
    pub(crate) fn latest(&self) -> Option<Arc<Standings>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).known.clone()
    }

    /// Whether the latest standings include all of `done` records.
    pub(crate) fn are_settled(&self, done: u64) -> bool {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        !state.under_way && state.done == Some(done)
    }

    /// Starts a computation if there are new records, none is under way, and the pause is over.
    pub(crate) fn keep_up(&self, access: &Arc<Access>, run: &RunId, done: u64) {
        {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let rests = state.rest_until.is_some_and(|until| Instant::now() < until);
            if state.under_way || rests || state.done == Some(done) {
                return;
            }
            state.under_way = true;
        }
        let (state, access, run) = (Arc::clone(&self.0), Arc::clone(access), run.clone());
        tokio::spawn(async move {
            let scores = access.scores(&run).await;
            let begun = Instant::now();
            let computed = match scores {
                Err(error) => {
                    tracing::debug!(%run, %error, "no intervals");
                    None
                }
                Ok(scores) => tokio::task::spawn_blocking(move || Standings::of_scores(scores)).await.ok(),
            };
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            state.under_way = false;
            state.rest_until = Some(Instant::now() + EVERY.max(begun.elapsed() * REST));
            state.done = Some(done);
            if let Some(computed) = computed {
                state.known = Some(Arc::new(computed));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_results_the_lower_one_may_be_the_better_one() {
        let row = RowView { name: "= Halu_BOK".into(), kind: RowKind::Result, better: Better::Lower };
        let model = |name: &str, value| ModelView {
            model: name.into(),
            mean: Mean { value: Some(value), covered: 5, planned: 5 },
            ..ModelView::default()
        };
        let mut view = BenchmarkView { rows: vec![row], ..BenchmarkView::default() };
        view.headline.intervals = false;
        view.models = vec![model("a", 0.9), model("b", 0.2)];
        let standings = Standings::of_view(&view);
        let names: Vec<&str> = standings.placed().iter().map(|(model, _)| model.model.as_str()).collect();
        assert_eq!(names, ["b", "a"]);
        assert_eq!(standings.models[0].contender.bounds, None);
    }
}
