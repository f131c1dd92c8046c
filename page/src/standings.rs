//! Confidence intervals of the mean scores of a run's models. They are computed in the background, use at most a hundredth of the time, and may be older than the means.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use coordinator::access::Access;
use coordinator::dialogues::ModelScores;
use domain::{ModelLabel, RunId};
use report::stats::{Interval, TaskValues, ValueRange, estimate};

/// Shortest time between two computations.
const EVERY: Duration = Duration::from_secs(2);

/// After a computation, pause for this many times its duration.
const REST: u32 = 100;

pub(crate) type IntervalsByModel = Arc<HashMap<ModelLabel, Interval>>;

/// The intervals of a run, as far as they are known.
#[derive(Default)]
pub(crate) struct Intervals(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    known: IntervalsByModel,
    /// Number of dialogues with a record at the last computation.
    done: Option<u64>,
    /// No computation begins before this time.
    rest_until: Option<Instant>,
    under_way: bool,
}

impl Intervals {
    pub(crate) fn latest(&self) -> IntervalsByModel {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner).known)
    }

    /// Whether the latest intervals include all of `done` records.
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
                Ok(scores) => {
                    let compute = move || {
                        let of = |of: ModelScores| {
                            let estimate = estimate(&strata(&of.scores), ValueRange::SCORE)?;
                            Some((of.model, estimate.interval))
                        };
                        scores.into_iter().filter_map(of).collect::<HashMap<_, _>>()
                    };
                    tokio::task::spawn_blocking(compute).await.ok()
                }
            };
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            state.under_way = false;
            state.rest_until = Some(Instant::now() + EVERY.max(begun.elapsed() * REST));
            state.done = Some(done);
            if let Some(computed) = computed {
                state.known = Arc::new(computed);
            }
        });
    }
}

/// The scores task by task, each of which counts the same.
fn strata(scores: &[((u32, u32), f64)]) -> Vec<TaskValues> {
    let mut tasks: BTreeMap<u32, Vec<(u32, f64)>> = BTreeMap::new();
    for ((task, case), score) in scores {
        tasks.entry(*task).or_default().push((*case, *score));
    }
    tasks.into_values().map(|values| TaskValues { weight: 1.0, values }).collect()
}
