//! The registered workers, as views and metrics read them.
//!
//! A fleet has a thousand workers that each serve dozens of models, and pages ask of every model who can ask it. So a status
//! is parsed once when it changes, however often it is read, and workers that can ask the same are counted together.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use domain::exchange::{Calls, NotAsked, WorkerPhase, WorkerStatus};
use domain::reach::Reach;
use domain::{InstanceId, ModelLabel, ModelSpec, RunId, WorkerId};
use queue::WorkerEntry;

use crate::fleet::matching::{Fit, Unserved, names, says_it_can, why_nobody};
use crate::fleet::pools::KnownPools;

/// Reasons for the limits of a model that are told; workers know fewer.
const REASONS_MAX: usize = 8;

/// The statuses of the latest reading. Those of workers that are gone go with the next one.
#[derive(Default)]
pub(crate) struct Statuses(Mutex<HashMap<WorkerId, Known>>);

/// A status as the queue holds it, and what it says.
struct Known {
    info: Vec<u8>,
    status: Arc<WorkerStatus>,
}

/// A registered worker.
pub(crate) struct Member {
    pub worker: WorkerId,
    /// Its process.
    pub instance: InstanceId,
    /// Its last report; the default if that cannot be read.
    pub status: Arc<WorkerStatus>,
    /// Time of that report, milliseconds since the Unix epoch by the store's clock.
    pub seen_ms: u64,
    pub draining: bool,
}

/// What decides which models a worker can ask, and why it cannot.
type Kind<'a> = (&'a [String], Option<&'a Reach>, &'a [String], Option<WorkerPhase>);

/// The phase of a worker that expects models which it does not serve.
fn phase_of(status: &WorkerStatus, expects: &[String]) -> Option<WorkerPhase> {
    // Serving and idle come and go; as reasons they are one.
    match status.phase.filter(|_| !expects.is_empty()) {
        Some(WorkerPhase::Serving) => Some(WorkerPhase::Idle),
        phase => phase,
    }
}

/// The registered workers at one moment.
#[derive(Default)]
pub(crate) struct RegisteredWorkers {
    /// In the order of their names.
    pub members: Vec<Member>,
    /// What conductors say of pools, whose workers these are or will be.
    pub pools: KnownPools,
    /// Statuses that differ in what their workers can ask, each with the number of such workers.
    kinds: Vec<(Arc<WorkerStatus>, u64)>,
    /// Statuses that name models which their workers do not ask for a while.
    holding_off: Vec<Arc<WorkerStatus>>,
    /// Limits of all workers by the name of the model, added up when somebody asks.
    limits: OnceLock<HashMap<String, AddedLimit>>,
    /// What all workers have under way, added up when somebody asks.
    calls: OnceLock<HashMap<RunId, HashMap<ModelLabel, Calls>>>,
}

/// What the workers say of the limits of a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AddedLimit {
    /// Dialogues in flight that all of them together allow its servers.
    pub dialogues: u64,
    /// Why they allow no more, in their words.
    pub reasons: BTreeSet<String>,
}

impl RegisteredWorkers {
    fn of(members: Vec<Member>) -> Self {
        let mut places: HashMap<Kind<'_>, usize> = HashMap::new();
        let mut kinds: Vec<(Arc<WorkerStatus>, u64)> = Vec::new();
        for member in &members {
            let status = &member.status;
            // What a worker expects matters only where it does not serve it.
            let expects = if status.expects == status.serves { &[][..] } else { &status.expects };
            let kind = (&status.serves[..], status.reach.as_ref(), expects, phase_of(status, expects));
            let place = *places.entry(kind).or_insert(kinds.len());
            match kinds.get_mut(place) {
                Some((_, workers)) => *workers += 1,
                None => kinds.push((Arc::clone(status), 1)),
            }
        }
        drop(places);
        let holding_off = members.iter().map(|member| &member.status);
        let holding_off = holding_off.filter(|status| !status.not_asked.is_empty()).cloned().collect();
        Self { members, kinds, holding_off, ..Self::default() }
    }

    /// How many workers can ask a model: those that serve it by name, or else those whose servers tell no names.
    pub(crate) fn able(&self, spec: &ModelSpec) -> u64 {
        self.of_able(spec).map(|(_, workers)| workers).sum()
    }

    /// Whether workers serve a model by its name, or will.
    pub(crate) fn name(&self, spec: &ModelSpec) -> bool {
        self.kinds.iter().any(|(status, _)| names(status, spec)) || self.pools.has_one_of(spec)
    }

    fn of_able(&self, spec: &ModelSpec) -> impl Iterator<Item = &(Arc<WorkerStatus>, u64)> {
        let is_named = self.kinds.iter().any(|(status, _)| names(status, spec));
        let able = move |status: &WorkerStatus| !is_named || names(status, spec);
        let kinds = self.kinds.iter();
        kinds.filter(move |(status, _)| says_it_can(status, spec) == Fit::Yes && able(status))
    }

    /// The limit of a model over all of them.
    pub(crate) fn limit(&self, spec: &ModelSpec) -> AddedLimit {
        let limits = self.limits.get_or_init(|| {
            let mut limits = HashMap::<String, AddedLimit>::new();
            for limit in self.members.iter().flat_map(|member| &member.status.limits) {
                let added = limits.entry(limit.model.clone()).or_default();
                added.dialogues += u64::from(limit.limit);
                let room = REASONS_MAX.saturating_sub(added.reasons.len());
                added.reasons.extend(limit.reasons.iter().take(room).cloned());
            }
            limits
        });
        limits.get(spec.requested()).cloned().unwrap_or_default()
    }

    /// What all of them have under way of a model of a run.
    pub(crate) fn calls(&self, run: &RunId, model: &ModelLabel) -> Calls {
        let calls = self.calls.get_or_init(|| {
            let mut calls = HashMap::<RunId, HashMap<ModelLabel, Calls>>::new();
            for told in self.members.iter().flat_map(|member| &member.status.calls) {
                let of_run = calls.entry(told.run.clone()).or_default();
                of_run.entry(told.model.clone()).or_default().add(&told.calls);
            }
            calls
        });
        calls.get(run).and_then(|of_run| of_run.get(model)).cloned().unwrap_or_default()
    }

    /// Records that wait at them for their acknowledgement.
    pub(crate) fn unacknowledged(&self) -> u64 {
        self.members.iter().map(|member| member.status.unacknowledged).sum()
    }

    /// Why all that can ask a model of a run do not ask it further for a while; `None` if one does. One that waits for its server
    /// comes before those that have given up.
    pub(crate) fn why_not_asked(&self, run: &RunId, spec: &ModelSpec) -> Option<&NotAsked> {
        let is_it = |known: &&NotAsked| known.run == *run && known.model == spec.label;
        let reasons = self.holding_off.iter().filter_map(|status| {
            let known = status.not_asked.iter().find(is_it)?;
            (says_it_can(status, spec) == Fit::Yes).then_some(known)
        });
        let reasons: Vec<&NotAsked> = reasons.collect();
        let told = reasons.iter().find(|known| known.waits).or(reasons.first())?;
        (reasons.len() as u64 >= self.able(spec)).then_some(told)
    }

    /// Why none of them can ask the model; `None` if one can.
    pub(crate) fn why_nobody(&self, spec: &ModelSpec) -> Option<Unserved> {
        let why = why_nobody(self.kinds.iter().map(|(status, _)| &**status), spec)?;
        Some(self.pools.refined(spec, why))
    }
}

impl Statuses {
    /// The registered workers, as the queue knows them.
    pub(crate) fn read(&self, entries: Vec<WorkerEntry>) -> RegisteredWorkers {
        RegisteredWorkers::of(self.parsed(entries))
    }

    /// The workers of a reading; statuses are parsed where they differ from those of the reading before.
    fn parsed(&self, entries: Vec<WorkerEntry>) -> Vec<Member> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut now = HashMap::with_capacity(entries.len());
        let mut members = Vec::with_capacity(entries.len());
        for WorkerEntry { worker, instance, info, seen_ms, draining } in entries {
            let status = match known.remove(&worker) {
                Some(before) if before.info == info => before.status,
                _ => Arc::new(serde_json::from_slice(&info).unwrap_or_default()),
            };
            now.insert(worker.clone(), Known { info, status: Arc::clone(&status) });
            members.push(Member { worker, instance, status, seen_ms, draining });
        }
        *known = now;
        members
    }
}

#[cfg(test)]
mod tests {
    use domain::exchange::ModelLimit;

    use super::*;

    fn entry(worker: &str, status: &WorkerStatus) -> WorkerEntry {
        let info = serde_json::to_vec(status).unwrap();
        let instance = InstanceId::default();
        WorkerEntry { worker: worker.into(), instance, info, seen_ms: 7, draining: false }
    }

    fn serving(names: &[&str]) -> WorkerStatus {
        let serves = names.iter().map(|name| (*name).to_owned()).collect();
        WorkerStatus { serves, ..WorkerStatus::default() }
    }

    #[test]
    fn a_status_is_parsed_when_it_changes_and_forgotten_with_its_worker() {
        let (statuses, status) = (Statuses::default(), serving(&["m"]));
        let first = statuses.parsed(vec![entry("a", &status), entry("b", &status)]);
        let busy = WorkerStatus { in_flight: 3, ..status.clone() };
        let second = statuses.parsed(vec![entry("a", &status), entry("b", &busy), entry("c", &status)]);
        assert!(Arc::ptr_eq(&first[0].status, &second[0].status), "nothing new was parsed again");
        assert_eq!((second[1].status.in_flight, second.len()), (3, 3));
        statuses.parsed(vec![entry("c", &status)]);
        assert_eq!(statuses.0.lock().unwrap().len(), 1);
    }

    #[test]
    fn a_status_that_cannot_be_read_is_that_of_a_worker_that_serves_nothing() {
        let broken = WorkerEntry { info: b"{".to_vec(), ..entry("a", &WorkerStatus::default()) };
        let crew = RegisteredWorkers::of(Statuses::default().parsed(vec![broken]));
        assert_eq!(*crew.members[0].status, WorkerStatus::default());
    }

    #[test]
    fn workers_that_can_ask_the_same_are_one_kind_and_each_of_them_counts() {
        let spec = |model: &str| -> ModelSpec {
            let spec = serde_json::json!({"label": model, "connector": "openai-compatible", "model": model});
            serde_json::from_value(spec).unwrap()
        };
        let both = serving(&["m", "n"]);
        let busy = WorkerStatus { in_flight: 3, host: "elsewhere".to_owned(), ..both.clone() };
        let afar = WorkerStatus { reach: Some(Reach::default()), ..both.clone() };
        let statuses = [both, busy, afar, serving(&["n"])];
        let entries = statuses.iter().enumerate().map(|(n, status)| entry(&format!("w-{n}"), status));
        let crew = RegisteredWorkers::of(Statuses::default().parsed(entries.collect()));
        assert_eq!((crew.kinds.len(), crew.members.len()), (3, 4));
        assert_eq!((crew.able(&spec("m")), crew.able(&spec("n")), crew.able(&spec("o"))), (3, 4, 0));
        assert_eq!(crew.why_nobody(&spec("m")), None);
        assert_eq!(crew.why_nobody(&spec("o")).unwrap(), why_nobody(&statuses, &spec("o")).unwrap());
    }
    #[test]
    fn a_model_is_not_asked_when_all_that_could_hold_off() {
        let spec = serde_json::json!({"label": "m", "connector": "openai-compatible", "model": "m"});
        let spec: ModelSpec = serde_json::from_value(spec).unwrap();
        let off = |run: &str, reason: &str| {
            let reason = reason.to_owned();
            let not_asked = vec![NotAsked { run: run.into(), model: "m".into(), reason, waits: false }];
            WorkerStatus { not_asked, ..serving(&["m"]) }
        };
        let why = |statuses: &[WorkerStatus]| {
            let entries = statuses.iter().enumerate().map(|(n, status)| entry(&format!("w-{n}"), status));
            let crew = RegisteredWorkers::of(Statuses::default().parsed(entries.collect()));
            crew.why_not_asked(&"r".into(), &spec).map(|known| known.reason.clone())
        };
        assert_eq!(why(&[off("r", "first"), off("r", "second"), serving(&["n"])]), Some("first".to_owned()));
        assert_eq!(why(&[off("r", "first"), serving(&["m"])]), None, "one asks it");
        assert_eq!(why(&[off("r", "first"), off("other", "second")]), None);
        assert_eq!((why(&[serving(&["m"])]), why(&[])), (None, None));
    }

    #[test]
    fn limits_of_workers_are_added_up_and_their_reasons_told_once() {
        let of_worker = |model: &str, limit, reason: &str| WorkerStatus {
            limits: vec![ModelLimit { model: model.to_owned(), limit, reasons: vec![reason.to_owned()] }],
            ..serving(&[model])
        };
        let statuses = [
            of_worker("m", 40, "server-queue"),
            of_worker("m", 2, "growing"),
            of_worker("m", 30, "server-queue"),
            of_worker("other", 8, "fixed"),
        ];
        let entries = statuses.iter().zip(["a", "b", "c", "d"]).map(|(status, worker)| entry(worker, status));
        let workers = Statuses::default().read(entries.collect());
        let limit = |model: &str| {
            let spec = serde_json::json!({"label": "l", "connector": "openai-compatible", "model": model});
            workers.limit(&serde_json::from_value(spec).unwrap())
        };
        let reasons = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        assert_eq!(limit("m"), AddedLimit { dialogues: 72, reasons: reasons(&["growing", "server-queue"]) });
        assert_eq!(limit("unknown"), AddedLimit::default());
    }
}
