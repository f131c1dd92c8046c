//! Where the models of a run stand: means, intervals and what is missing, all of one moment. Computing them
//! takes at most a hundredth of the time, so they may be older than the counts beside them.

use std::sync::Arc;
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

/// The standings of a run as they were last computed.
pub(crate) struct RunStandings {
    pub known: Arc<Standings>,
    /// Number of dialogues with a record at that time.
    pub done: u64,
    /// No computation begins before this time.
    rest_until: Instant,
}

impl RunStandings {
    /// The standings of all `done` records, unless they were computed a moment ago.
    pub(crate) async fn kept_up(
        latest: Option<Self>,
        access: &Access,
        run: &RunId,
        done: u64,
    ) -> Option<Self> {
        if latest.as_ref().is_some_and(|known| known.done == done || Instant::now() < known.rest_until) {
            return latest;
        }
        let scores = match access.scores(run).await {
            Ok(scores) => scores,
            Err(error) => {
                tracing::debug!(%run, %error, "no intervals");
                return latest;
            }
        };
        let begun = Instant::now();
        let computed = tokio::task::spawn_blocking(move || Standings::of_scores(scores)).await.ok()?;
        let rest_until = Instant::now() + EVERY.max(begun.elapsed() * REST);
        Some(Self { known: Arc::new(computed), done, rest_until })
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
