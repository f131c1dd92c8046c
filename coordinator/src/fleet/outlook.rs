//! What models have left, over all runs and judged benchmarks: for workers that end when there is nothing, and for whoever
//! starts servers.
//!
//! [`outlook`] decides, by what this coordinator knows; what it does not know it calls unknown. It says nothing about records
//! that a worker has not delivered yet, because the worker knows them itself and tries to deliver them before it ends.

use std::collections::BTreeSet;

use domain::control::{ModelNeed, RunPhase};
use domain::exchange::{Outlook, Report, Serves};
use domain::model_name::is_listed_as;
use domain::{Connector, ModelSpec};

use crate::errors::Result;
use crate::fleet::Fleet;
use crate::fleet::exchange::expected;
use crate::fleet::matching::{can_ask, is_served};
use crate::fleet::snapshot::Snapshot;
use crate::records::run::Run;

/// What one run that is not over has left for the models in question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunLeft {
    /// By hand, or by its cap.
    pub is_paused: bool,
    /// Whether the queue holds every unit, and every retry was read.
    pub is_whole: bool,
    /// Pending units, suspects and parked ones included.
    pub pending: u64,
    /// Suspects, pending or leased.
    pub suspects: u64,
    pub leased: u64,
    /// Dialogues without a record, and those to be asked again.
    pub dialogues: u64,
}

/// What this coordinator knows of the models in question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KnownWork {
    /// Whether everything that may name them could be looked at.
    pub is_all: bool,
    /// The runs that are not over and name one of them.
    pub runs: Vec<RunLeft>,
    /// For each judged benchmark that is not over and may ask one of them later, whether it is paused.
    pub benchmarks: Vec<bool>,
    /// Whether any run or judged benchmark names one of them, also one that is over.
    pub is_named: bool,
}

/// What runs and judged benchmarks have left for servers of one name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NeedByState {
    /// Dialogues of active runs.
    pub now: u64,
    /// Dialogues of runs that are paused, or whose cap is reached.
    pub held: u64,
    /// Whether a judged benchmark may ask it in a later stage.
    pub later: bool,
}

impl NeedByState {
    fn of(known: &KnownWork) -> Self {
        let dialogues = |is_paused| {
            let runs = known.runs.iter().filter(|run| run.is_paused == is_paused);
            runs.map(|run| run.dialogues).sum()
        };
        Self { now: dialogues(false), held: dialogues(true), later: known.benchmarks.contains(&false) }
    }
}

/// What the models have left for a worker that holds nothing.
pub(crate) fn outlook(known: &KnownWork) -> Outlook {
    if !known.is_all {
        return Outlook::Unknown;
    }
    let active = || known.runs.iter().filter(|run| !run.is_paused);
    let has_work = |run: &&RunLeft| !run.is_whole || run.pending + run.leased + run.dialogues > 0;
    if active().any(|run| has_work(&run)) {
        // Others hold all units that are left. This is never said to a worker that holds one, so the last of them remains, for
        // units that come back because another one died.
        let is_held = |run: &RunLeft| run.is_whole && run.pending == 0 && run.suspects == 0 && run.leased > 0;
        let held = active().filter(has_work).all(is_held);
        return if held { Outlook::Surplus } else { Outlook::Work };
    }
    if known.runs.iter().any(|run| run.is_paused && has_work(&run)) || known.benchmarks.contains(&true) {
        return Outlook::Held;
    }
    match known.benchmarks.is_empty() && known.is_named {
        true => Outlook::Done,
        false => Outlook::Later,
    }
}

impl Fleet {
    /// What the models of a worker have left that holds nothing.
    pub(crate) async fn outlook_for(&self, report: &Report) -> Outlook {
        let expected = expected(report);
        let serves: Vec<&Serves> = report.offers.iter().chain(&expected).map(|offer| &offer.serves).collect();
        let reach = report.status.reach.as_ref();
        let is_one = |spec: &ModelSpec| serves.iter().any(|serves| can_ask(serves, spec, reach));
        match self.backlog().await {
            Ok(snapshot) => outlook(&self.known_work(&snapshot, &is_one)),
            Err(_) => Outlook::Unknown,
        }
    }

    /// What these models have left, by name; with none given, every model that an unfinished run or benchmark names.
    ///
    /// # Errors
    /// The queue cannot be reached.
    pub(crate) async fn needs(&self, models: &[String]) -> Result<Vec<ModelNeed>> {
        let workers = self.workers().await?;
        let snapshot = self.backlog().await?;
        let now = self.clock.now();
        let names = if models.is_empty() { self.asked_names() } else { models.iter().cloned().collect() };
        let mut needs = Vec::with_capacity(names.len());
        for name in names {
            let serves = Serves::Model(name.clone());
            let is_one = |spec: &ModelSpec| is_served(&serves, spec);
            let known = self.known_work(&snapshot, &is_one);
            let mut rate = 0.0;
            for of_run in &snapshot.runs {
                let of_model = of_run.run.models.iter().zip(&of_run.models).enumerate();
                for (place, (_, counts)) in of_model.filter(|(_, (spec, _))| is_one(spec)) {
                    let in_hand = counts.counts.as_ref().is_some_and(|counts| counts.leased > 0);
                    rate += of_run.run.speed(place, in_hand, now).records;
                }
            }
            let serving = workers
                .members
                .iter()
                .filter(|member| member.status.serves.iter().any(|served| is_listed_as(served, &name)))
                .count();
            let active = known.runs.iter().filter(|run| !run.is_paused);
            needs.push(ModelNeed {
                outlook: outlook(&known),
                dialogues: active.map(|run| run.dialogues).sum(),
                rate,
                workers: serving as u64,
                model: name,
            });
        }
        Ok(needs)
    }

    /// What is left for servers of each name that unfinished runs and benchmarks ask for. Names of which not everything is
    /// known are left out.
    pub(crate) fn need(&self, snapshot: &Snapshot) -> Vec<(String, NeedByState)> {
        let of_name = |name: String| {
            let serves = Serves::Model(name.clone());
            let known = self.known_work(snapshot, &|spec: &ModelSpec| is_served(&serves, spec));
            known.is_all.then(|| (name, NeedByState::of(&known)))
        };
        self.asked_names().into_iter().filter_map(of_name).collect()
    }

    /// The names of all models that unfinished runs and benchmarks ask at servers of their own.
    fn asked_names(&self) -> BTreeSet<String> {
        let is_named = |spec: &ModelSpec| {
            let named = matches!(spec.connector, Connector::OpenaiCompatible | Connector::Simulated);
            named && spec.endpoint.is_none()
        };
        let mut names = BTreeSet::new();
        let mut add = |specs: &[ModelSpec]| {
            names.extend(specs.iter().filter(|spec| is_named(spec)).map(|spec| spec.requested().to_owned()));
        };
        self.loaded.live().iter().for_each(|run| add(&run.models));
        for asks in self.benchmarks.attended.asks().into_iter().flatten() {
            add(&asks.judges);
            add(&asks.unanswered);
        }
        names
    }

    /// What is known of the models for which `is_one` holds.
    fn known_work(&self, snapshot: &Snapshot, is_one: &dyn Fn(&ModelSpec) -> bool) -> KnownWork {
        let named = &self.benchmarks.named;
        let mut known = KnownWork {
            is_all: self.health.is_tended()
                && self.health.trouble().is_none()
                && !named.may_leave_out(is_one),
            is_named: named.names(is_one),
            ..KnownWork::default()
        };
        for run in self.loaded.live() {
            if !run.models.iter().any(is_one) {
                continue;
            }
            known.is_named = true;
            match left_of(&run, snapshot, is_one) {
                Some(left) => {
                    let is_paused = left.is_paused || self.benchmarks.caps.reached(&run).is_some();
                    known.runs.push(RunLeft { is_paused, ..left });
                }
                None => known.is_all = false,
            }
        }
        for asks in self.benchmarks.attended.asks() {
            match asks {
                None => known.is_all = false,
                Some(asks) if asks.judges.iter().chain(&asks.unanswered).any(is_one) => {
                    known.is_named = true;
                    known.benchmarks.push(asks.is_held);
                }
                Some(_) => {}
            }
        }
        known
    }
}

/// What a run has left for these models; `None` if its counts are missing.
fn left_of(run: &Run, snapshot: &Snapshot, is_one: &dyn Fn(&ModelSpec) -> bool) -> Option<RunLeft> {
    let of_run = snapshot.runs.iter().find(|of_run| of_run.run.id() == run.id())?;
    // An extended run is loaded anew; its counts must be those of the same plan.
    if of_run.run.models.len() != run.models.len() {
        return None;
    }
    let dialogues = run.left();
    let mut left = RunLeft {
        is_paused: run.phase() == RunPhase::Paused,
        is_whole: run.is_filled(),
        ..RunLeft::default()
    };
    for (place, (_, backlog)) in
        run.models.iter().zip(&of_run.models).enumerate().filter(|(_, (spec, _))| is_one(spec))
    {
        if let Some(counts) = &backlog.counts {
            left.pending += counts.pending;
            left.suspects += counts.suspects_pending + counts.suspects_leased;
            left.leased += counts.leased;
        }
        if let Some(of_model) = dialogues.get(place) {
            left.dialogues += of_model.unrecorded + of_model.again;
        }
    }
    Some(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(runs: &[RunLeft]) -> KnownWork {
        KnownWork { is_all: true, runs: runs.to_vec(), benchmarks: Vec::new(), is_named: true }
    }

    const EMPTY: RunLeft =
        RunLeft { is_paused: false, is_whole: true, pending: 0, suspects: 0, leased: 0, dialogues: 0 };

    #[test]
    fn the_first_rule_that_holds_decides() {
        let work = RunLeft { pending: 1, dialogues: 10, ..EMPTY };
        let held = RunLeft { leased: 2, dialogues: 10, ..EMPTY };
        let paused = RunLeft { is_paused: true, ..work };
        let cases: &[(&[RunLeft], Outlook)] = &[
            (&[], Outlook::Done),
            (&[EMPTY], Outlook::Done),
            (&[work], Outlook::Work),
            (&[RunLeft { is_whole: false, ..EMPTY }], Outlook::Work),
            // A gap, or a record that another coordinator has taken.
            (&[RunLeft { dialogues: 1, ..EMPTY }], Outlook::Work),
            // A unit whose records are all there, of a queue that was rebuilt.
            (&[RunLeft { pending: 1, ..EMPTY }], Outlook::Work),
            (&[held], Outlook::Surplus),
            (&[EMPTY, held, EMPTY], Outlook::Surplus),
            (&[held, work], Outlook::Work),
            (&[RunLeft { suspects: 1, ..held }], Outlook::Work),
            (&[held, RunLeft { dialogues: 1, ..EMPTY }], Outlook::Work),
            (&[paused], Outlook::Held),
            (&[paused, held], Outlook::Surplus),
            (&[RunLeft { is_paused: true, ..EMPTY }], Outlook::Done),
        ];
        for (runs, expected) in cases {
            assert_eq!(outlook(&known(runs)), *expected, "{runs:?}");
            assert_eq!(outlook(&KnownWork { is_all: false, ..known(runs) }), Outlook::Unknown);
            // A judge that is asked later waits, and goes while its benchmark is paused.
            let judge = |is_paused| KnownWork { benchmarks: vec![is_paused], ..known(runs) };
            let (active, paused) = match expected {
                Outlook::Done => (Outlook::Later, Outlook::Held),
                before => (*before, *before),
            };
            assert_eq!((outlook(&judge(false)), outlook(&judge(true))), (active, paused), "{runs:?}");
        }
        let both = KnownWork { benchmarks: vec![true, false], ..known(&[work, paused, held]) };
        assert_eq!(NeedByState::of(&both), NeedByState { now: 20, held: 10, later: true });
        let nobody = KnownWork { is_named: false, ..known(&[]) };
        assert_eq!(outlook(&nobody), Outlook::Later, "its run may be submitted later");
    }
}
