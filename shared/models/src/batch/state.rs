//! What is asked in batches, and what is to be done next: a plain state machine of one model of one run.
//!
//! Questions are gathered until none has joined them for a while; then they are a batch. A batch that somebody waits
//! for is looked at now and then, and once it has ended its answers are told. A question that is in a known batch, also
//! one of an earlier process, waits for that batch instead of being asked again. A batch is cancelled, and what it
//! leaves at its provider is deleted, only if its run is over: those who wait for it may go and come back.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use domain::ids::BatchName;
use jiff::Timestamp;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::api::{BatchBounds, BatchedReply, BatchedRequest, NotCreated};
use super::ledger::{BatchNote, BatchScope};
use crate::error::CallError;

/// Steps about a batch of a run that is over, at most: with pauses of five minutes, as many as fit into the time that a
/// batch has.
const CLEAR_TRIES_MAX: u32 = 300;

/// When batches are sent, and how often they are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchRules {
    /// Questions are gathered until none has joined them for so long,
    pub quiet: Duration,
    /// but no longer than this, from the first one on.
    pub gather_max: Duration,
    /// From the creation of a batch to the first look at it. Each later pause is half as long again,
    pub look_first: Duration,
    /// but no longer than this.
    pub look_max: Duration,
    /// Whoever abandons a run waits so long for the end of batches that were cancelled: what they leave cannot be
    /// deleted before.
    pub ending_max: Duration,
}

impl Default for BatchRules {
    fn default() -> Self {
        Self {
            // Before the dialogues of a batch ask on, all its answers are judged.
            quiet: Duration::from_secs(20),
            gather_max: Duration::from_secs(300),
            look_first: Duration::from_secs(30),
            look_max: Duration::from_secs(300),
            ending_max: Duration::from_secs(10),
        }
    }
}

/// What is to be done next.
#[derive(Debug)]
pub(super) enum DeskStep {
    Create(BatchNote, Vec<BatchedRequest>),
    /// An earlier process was cut off while it created the batch.
    Find(BatchName),
    Look {
        name: BatchName,
        id: String,
    },
    Cancel {
        name: BatchName,
        id: String,
    },
    /// What it has left at its provider is to be deleted, if it has ended.
    Discard {
        name: BatchName,
        id: String,
    },
    /// It need not be remembered.
    Forget(BatchName),
    /// It was tried often enough to cancel it, or to delete what it has left.
    GiveUp(BatchName),
    /// Nothing, before this time or ever.
    Wait(Option<Instant>),
}

/// Who waits for the answer to a question. Its body is kept, because it may have to be asked again.
#[derive(Debug)]
struct Asker {
    body: Arc<[u8]>,
    waiting: Vec<oneshot::Sender<BatchedReply>>,
}

impl Asker {
    /// Whether anybody still waits.
    fn waits(&mut self) -> bool {
        self.waiting.retain(|waiting| !waiting.is_closed());
        !self.waiting.is_empty()
    }

    fn tell(self, reply: &BatchedReply) {
        for waiting in self.waiting {
            // Whoever has gone hears nothing.
            let _ = waiting.send(reply.clone());
        }
    }
}

/// By the id of the question.
type Askers = HashMap<String, Asker>;

/// Questions that will be a batch.
#[derive(Debug, Default)]
struct Gathered {
    /// Their ids as they came.
    order: Vec<String>,
    askers: Askers,
    bytes: usize,
    /// When the first and the latest of them came.
    came: Option<(Instant, Instant)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BatchStage {
    Creating,
    /// Its creation was cut off: the provider may know it.
    CutOff,
    Asked,
    /// It has ended, and its answers were read once.
    Ended,
    /// It is being cancelled, or has ended, and nobody will read its answers.
    Ending,
}

#[derive(Debug)]
struct KnownBatch {
    note: BatchNote,
    stage: BatchStage,
    askers: Askers,
    /// Nobody needs it any more.
    over: bool,
    /// Steps since then.
    tries: u32,
    next_look: Instant,
    pause: Duration,
}

impl KnownBatch {
    /// After a step, the next one about this batch comes later.
    fn postpone(&mut self, rules: BatchRules, now: Instant) {
        self.next_look = now + self.pause;
        self.pause = (self.pause * 3 / 2).min(rules.look_max);
    }

    fn look_at(&mut self, rules: BatchRules, at: Instant) {
        (self.next_look, self.pause) = (at, rules.look_first);
    }
}

#[derive(Debug)]
pub(super) struct DeskState {
    scope: BatchScope,
    rules: BatchRules,
    bounds: BatchBounds,
    full: VecDeque<Gathered>,
    open: Gathered,
    batches: BTreeMap<BatchName, KnownBatch>,
    /// In which batch a question is.
    places: HashMap<String, BatchName>,
    /// Whether somebody clears away what is over.
    clearing: bool,
}

impl DeskState {
    pub(super) fn new(scope: BatchScope, rules: BatchRules, bounds: BatchBounds) -> Self {
        Self {
            scope,
            rules,
            bounds,
            full: VecDeque::new(),
            open: Gathered::default(),
            batches: BTreeMap::new(),
            places: HashMap::new(),
            clearing: false,
        }
    }

    /// A batch of an earlier process. Later ones come later.
    pub(super) fn know(&mut self, note: BatchNote, now: Instant) {
        let stage = if note.id.is_some() { BatchStage::Asked } else { BatchStage::CutOff };
        self.insert(note, stage, Askers::new(), now);
    }

    fn insert(&mut self, note: BatchNote, stage: BatchStage, askers: Askers, now: Instant) {
        let places = note.requests.iter().map(|id| (id.clone(), note.name.clone()));
        self.places.extend(places);
        let (name, pause) = (note.name.clone(), self.rules.look_first);
        let batch = KnownBatch { note, stage, askers, over: false, tries: 0, next_look: now, pause };
        self.batches.insert(name, batch);
    }

    /// A question; where its answer will be told.
    pub(super) fn ask(&mut self, request: BatchedRequest, now: Instant) -> oneshot::Receiver<BatchedReply> {
        let (tell, told) = oneshot::channel();
        let BatchedRequest { id, body } = request;
        let asker = || Asker { body, waiting: Vec::new() };
        let known = self.places.get(&id).and_then(|name| self.batches.get_mut(name));
        let gathered =
            self.full.iter_mut().chain([&mut self.open]).find(|some| some.askers.contains_key(&id));
        match (known, gathered) {
            (Some(batch), _) => {
                if batch.askers.is_empty() {
                    // Others of this batch come now, too.
                    batch.look_at(self.rules, now + self.rules.quiet);
                }
                batch.askers.entry(id).or_insert_with(asker).waiting.push(tell);
            }
            (None, Some(gathered)) => gathered.askers.entry(id).or_insert_with(asker).waiting.push(tell),
            (None, None) => {
                let asker = Asker { waiting: vec![tell], ..asker() };
                self.gather(id, asker, now);
            }
        }
        told
    }

    fn gather(&mut self, id: String, asker: Asker, now: Instant) {
        let bytes = id.len() + asker.body.len() + self.bounds.frame_bytes;
        let is_full = self.open.order.len() >= self.bounds.requests_max
            || self.open.bytes + bytes > self.bounds.bytes_max;
        if is_full && !self.open.order.is_empty() {
            self.full.push_back(std::mem::take(&mut self.open));
        }
        let Gathered { order, askers, bytes: gathered, came } = &mut self.open;
        order.push(id.clone());
        askers.insert(id, asker);
        *gathered += bytes;
        *came = Some((came.map_or(now, |(first, _)| first), now));
    }

    /// What is to be done next. Whoever asks does it before he asks again, and says what came of it.
    pub(super) fn next(&mut self, now: Instant, at: Timestamp) -> DeskStep {
        if let Some(step) = self.needless(now) {
            return step;
        }
        while let Some(gathered) = self.take_gathered(now) {
            if let Some(step) = self.begin(gathered, now, at) {
                return step;
            }
        }
        for (name, batch) in &mut self.batches {
            batch.askers.retain(|_, asker| asker.waits());
            if batch.askers.is_empty() || batch.next_look > now {
                continue;
            }
            let step = match (batch.stage, &batch.note.id) {
                (BatchStage::CutOff, _) => DeskStep::Find(name.clone()),
                (BatchStage::Asked | BatchStage::Ended, Some(id)) => {
                    DeskStep::Look { name: name.clone(), id: id.clone() }
                }
                _ => continue,
            };
            batch.postpone(self.rules, now);
            return step;
        }
        DeskStep::Wait(self.due(now))
    }

    /// What is to be done with a batch that nobody needs any more.
    pub(super) fn needless(&mut self, now: Instant) -> Option<DeskStep> {
        let due =
            |batch: &KnownBatch| batch.over && batch.next_look <= now && batch.stage != BatchStage::Creating;
        let (name, batch) = self.batches.iter_mut().find(|(_, batch)| due(batch))?;
        batch.postpone(self.rules, now);
        batch.tries += 1;
        let name = name.clone();
        Some(match (batch.stage, &batch.note.id) {
            _ if batch.tries > CLEAR_TRIES_MAX => DeskStep::GiveUp(name),
            (BatchStage::CutOff, _) => DeskStep::Find(name),
            (BatchStage::Asked, Some(id)) => DeskStep::Cancel { id: id.clone(), name },
            (BatchStage::Ended | BatchStage::Ending, Some(id)) => DeskStep::Discard { id: id.clone(), name },
            _ => DeskStep::Forget(name),
        })
    }

    /// When there will be such a step; `None` if there is no such batch. Then somebody else may begin to clear away.
    pub(super) fn needless_at(&mut self) -> Option<Instant> {
        let left = self.batches.values().filter(|batch| batch.over && batch.stage != BatchStage::Creating);
        let next = left.map(|batch| batch.next_look).min();
        self.clearing = next.is_some();
        next
    }

    fn take_gathered(&mut self, now: Instant) -> Option<Gathered> {
        if let Some(full) = self.full.pop_front() {
            return Some(full);
        }
        let is_due = self.gathered_at().is_some_and(|due| due <= now);
        is_due.then(|| std::mem::take(&mut self.open))
    }

    /// When the questions gathered so far become a batch.
    fn gathered_at(&self) -> Option<Instant> {
        let BatchRules { quiet, gather_max, .. } = self.rules;
        self.open.came.map(|(first, latest)| (latest + quiet).min(first + gather_max))
    }

    /// Makes a batch of those questions that somebody waits for; `None` if nobody does.
    fn begin(&mut self, gathered: Gathered, now: Instant, at: Timestamp) -> Option<DeskStep> {
        let Gathered { order, mut askers, .. } = gathered;
        askers.retain(|_, asker| asker.waits());
        let request = |id: String| {
            let body = Arc::clone(&askers.get(&id)?.body);
            Some(BatchedRequest { id, body })
        };
        let requests: Vec<BatchedRequest> = order.into_iter().filter_map(request).collect();
        if requests.is_empty() {
            return None;
        }
        let ids = requests.iter().map(|request| request.id.clone()).collect();
        let note = BatchNote::new(self.scope.clone(), ids, at);
        self.insert(note.clone(), BatchStage::Creating, askers, now);
        Some(DeskStep::Create(note, requests))
    }

    /// When there will be something to do.
    fn due(&self, now: Instant) -> Option<Instant> {
        let looked_at = |batch: &&KnownBatch| {
            (batch.over || !batch.askers.is_empty()) && batch.stage != BatchStage::Creating
        };
        let looks = self.batches.values().filter(looked_at).map(|batch| batch.next_look);
        let full = (!self.full.is_empty()).then_some(now);
        looks.chain(full).chain(self.gathered_at()).min()
    }

    /// The provider knows a batch by this id; what to remember of it.
    pub(super) fn created(&mut self, name: &BatchName, id: String, now: Instant) -> Option<BatchNote> {
        let batch = self.batches.get_mut(name)?;
        (batch.note.id, batch.stage) = (Some(id), BatchStage::Asked);
        let first = if batch.over { now } else { now + self.rules.look_first };
        batch.look_at(self.rules, first);
        Some(batch.note.clone())
    }

    /// A batch was not created, or not surely. Those who wait are told, and may ask again.
    pub(super) fn not_created(&mut self, name: &BatchName, not_created: &NotCreated, now: Instant) {
        let Some(batch) = self.batches.get_mut(name) else { return };
        batch.stage = BatchStage::CutOff;
        batch.look_at(self.rules, now);
        let reply = Err(not_created.error.clone());
        batch.askers.drain().for_each(|(_, asker)| asker.tell(&reply));
        if !not_created.may_exist {
            self.forget(name);
        }
    }

    /// A batch that was looked for has this id; what to remember of it. Without one it is asked again.
    pub(super) fn found(&mut self, name: &BatchName, id: Option<String>, now: Instant) -> Option<BatchNote> {
        let Some(id) = id else {
            self.unknown(name, now);
            return None;
        };
        let batch = self.batches.get_mut(name)?;
        (batch.note.id, batch.stage) = (Some(id), BatchStage::Asked);
        batch.look_at(self.rules, now);
        Some(batch.note.clone())
    }

    /// The provider does not know a batch: its questions are asked again.
    pub(super) fn unknown(&mut self, name: &BatchName, now: Instant) {
        let askers = self.batches.get_mut(name).map(|batch| std::mem::take(&mut batch.askers));
        self.forget(name);
        for (id, asker) in askers.unwrap_or_default() {
            self.gather(id, asker, now);
        }
    }

    /// The questions of a batch whose answers somebody waits for.
    pub(super) fn wanted(&self, name: &BatchName) -> HashSet<String> {
        self.batches.get(name).map(|batch| batch.askers.keys().cloned().collect()).unwrap_or_default()
    }

    /// What came of questions of a batch. One that failed may be asked again.
    pub(super) fn answered(&mut self, name: &BatchName, replies: HashMap<String, BatchedReply>) {
        let Some(batch) = self.batches.get_mut(name) else { return };
        for (id, reply) in replies {
            if reply.is_err() && self.places.get(&id) == Some(name) {
                self.places.remove(&id);
            }
            if let Some(asker) = batch.askers.remove(&id) {
                asker.tell(&reply);
            }
        }
    }

    /// All answers of a batch were read; of those that were `wanted`, the rest came to nothing for this reason.
    pub(super) fn ended(
        &mut self,
        name: &BatchName,
        wanted: HashSet<String>,
        otherwise: &CallError,
        now: Instant,
    ) {
        let Some(batch) = self.batches.get(name) else { return };
        let left = wanted.into_iter().filter(|id| batch.askers.contains_key(id));
        let failed: HashMap<_, _> = left.map(|id| (id, Err(otherwise.clone()))).collect();
        self.answered(name, failed);
        let Some(batch) = self.batches.get_mut(name) else { return };
        batch.stage = BatchStage::Ended;
        // Others may have come while it was read.
        batch.look_at(self.rules, now + self.rules.quiet);
    }

    /// A batch cannot be looked at for a reason that will stay: those who wait are told, and may ask again.
    pub(super) fn refused(&mut self, name: &BatchName, error: &CallError) {
        let Some(batch) = self.batches.get_mut(name) else { return };
        let reply = Err(error.clone());
        batch.askers.drain().for_each(|(_, asker)| asker.tell(&reply));
    }

    /// A batch that nobody needs is being cancelled, or `has_ended` before it could be.
    pub(super) fn ending(&mut self, name: &BatchName, has_ended: bool, now: Instant) {
        let Some(batch) = self.batches.get_mut(name) else { return };
        batch.stage = BatchStage::Ending;
        let first = if has_ended { now } else { now + self.rules.look_first };
        batch.look_at(self.rules, first);
    }

    pub(super) fn forget(&mut self, name: &BatchName) {
        self.batches.remove(name);
        self.places.retain(|_, place| place != name);
    }

    /// The run is over: nobody needs what was asked. Who asks all the same asks anew. Returns whether nobody clears away
    /// yet: the caller then does, until there is [nothing](Self::needless_at) left.
    pub(super) fn over(&mut self, now: Instant) -> bool {
        self.full.clear();
        self.open = Gathered::default();
        self.places.clear();
        for batch in self.batches.values_mut().filter(|batch| !batch.over) {
            batch.askers.clear();
            batch.over = true;
            batch.look_at(self.rules, now);
        }
        !std::mem::replace(&mut self.clearing, true)
    }
}

#[cfg(test)]
mod tests;
