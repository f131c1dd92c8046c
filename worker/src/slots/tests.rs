//! Single steps, and random sequences of them.

use proptest::prelude::*;

use super::*;

fn lease(model: &str, unit: u64) -> LeaseId {
    LeaseId { run: "run".into(), generation: 1, model: model.into(), unit, attempt: 1 }
}

fn grant(model: &str, unit: u64, iterations: impl IntoIterator<Item = Iteration>) -> Grant {
    Grant {
        lease: lease(model, unit),
        task: "task".into(),
        iterations: iterations.into_iter().collect(),
        lease_for: Duration::from_secs(30),
        retry: None,
    }
}

fn lane(model: &str) -> LaneKey {
    LaneKey { run: "run".into(), model: model.into() }
}

fn finished(slots: &Slots) -> Vec<LeaseId> {
    ended(slots, LeaseEnd::Finished)
}

fn released(slots: &Slots) -> Vec<LeaseId> {
    ended(slots, LeaseEnd::Released)
}

fn ended(slots: &Slots, how: LeaseEnd) -> Vec<LeaseId> {
    slots.ended_leases().filter(|(_, end)| *end == how).map(|(lease, _)| lease.clone()).collect()
}

#[test]
fn a_lease_that_was_called_lost_and_is_granted_again_is_given_back() {
    let mut slots = Slots::default();
    assert_eq!(slots.grant(grant("m", 0, [3, 1])), Granted::New);
    assert_eq!(slots.lost(&lease("m", 0)), []);
    assert!(slots.is_told());
    assert_eq!(slots.grant(grant("m", 0, [3, 1])), Granted::Known);
    assert_eq!(released(&slots), [lease("m", 0)]);
    slots.noted(&[lease("m", 0)]);
    assert!(slots.is_empty() && slots.is_told());
}

#[test]
fn a_unit_is_finished_when_every_record_has_its_receipt() {
    let mut slots = Slots::default();
    assert_eq!(slots.grant(grant("m", 0, [3, 1])), Granted::New);
    assert_eq!(slots.grant(grant("m", 0, [3, 1])), Granted::Known);
    let first = slots.begin(&lane("m"), 0).unwrap().tag;
    let second = slots.begin(&lane("m"), 0).unwrap().tag;
    assert_eq!((first.iteration, second.iteration), (3, 1));
    assert_eq!(slots.begin(&lane("m"), 0), None);
    assert!(slots.ended(&first) && slots.ended(&second));
    slots.acknowledged(&second);
    assert_eq!(finished(&slots), []);
    slots.acknowledged(&first);
    assert_eq!(finished(&slots), [lease("m", 0)]);
    assert!(slots.is_empty() && !slots.is_told());
    // It is told until it was noted, and its grant does not begin it again.
    assert_eq!(slots.grant(grant("m", 0, [3, 1])), Granted::Known);
    slots.noted(&[lease("m", 0)]);
    assert!(slots.is_told());
    assert_eq!(slots.grant(grant("m", 0, [3, 1])), Granted::Known);
    assert_eq!(slots.tally(), SlotCounts { granted: 2, delivered: 2, ..SlotCounts::default() });
}

#[test]
fn a_lost_lease_names_what_is_to_be_stopped_and_begins_nothing() {
    let mut slots = Slots::default();
    slots.grant(grant("m", 0, 0..4));
    let running = slots.begin(&lane("m"), 0).unwrap().tag;
    let ended = slots.begin(&lane("m"), 0).unwrap().tag;
    slots.ended(&ended);
    assert_eq!(slots.lost(&lease("m", 0)), std::slice::from_ref(&running));
    assert_eq!(slots.begin(&lane("m"), 0), None);
    assert!(!slots.ended(&running));
    slots.acknowledged(&ended);
    assert!(slots.is_told(), "a lost lease is neither finished nor released");
    assert_eq!(slots.lost(&lease("m", 0)), []);
    slots.check().unwrap();
}

#[test]
fn what_is_given_back_waits_for_what_runs_and_for_receipts() {
    let mut slots = Slots::default();
    slots.grant(grant("m", 0, 0..3));
    slots.grant(grant("m", 1, 0..3));
    let running = slots.begin(&lane("m"), 0).unwrap().tag;
    slots.give_back_all();
    assert_eq!(released(&slots), [lease("m", 1)], "nothing of it ran");
    slots.ended(&running);
    assert_eq!(released(&slots), [lease("m", 1)], "another worker would hold the dialogue again");
    slots.acknowledged(&running);
    assert_eq!(released(&slots), [lease("m", 0), lease("m", 1)]);
    assert_eq!(slots.tally(), SlotCounts { granted: 6, delivered: 1, released: 5, lost: 0 });
}

#[test]
fn a_dropped_record_gives_its_unit_back() {
    let mut slots = Slots::default();
    slots.grant(grant("m", 0, 0..2));
    let (a, b) = (slots.begin(&lane("m"), 0).unwrap().tag, slots.begin(&lane("m"), 0).unwrap().tag);
    slots.ended(&a);
    slots.dropped(&a);
    slots.ended(&b);
    slots.acknowledged(&b);
    assert_eq!((finished(&slots), released(&slots)), (vec![], vec![lease("m", 0)]));
}

#[test]
fn any_lease_that_waits_can_be_next() {
    let mut slots = Slots::default();
    slots.grant(grant("m", 0, 0..2));
    slots.grant(grant("m", 1, 5..6));
    slots.grant(grant("n", 2, 9..10));
    let waiting = |slots: &Slots| -> Vec<(Iteration, usize)> {
        slots.waiting(&lane("m")).map(|waiting| (waiting.next, waiting.left)).collect()
    };
    assert_eq!(waiting(&slots), [(0, 2), (5, 1)]);
    let tag = slots.begin(&lane("m"), 1).unwrap().tag;
    assert_eq!((tag.lease.unit, tag.iteration), (1, 5));
    assert_eq!(waiting(&slots), [(0, 2)], "all of the other one has started");
    assert_eq!(slots.begin(&lane("m"), 1), None);
    slots.check().unwrap();
}

#[derive(Clone, Debug)]
enum Step {
    Grant { model: usize, unit: u64, dialogues: u32 },
    Begin { model: usize, place: usize },
    End { at: usize },
    Acknowledge { at: usize },
    Drop { at: usize },
    Lose { model: usize, unit: u64 },
    GiveBackLane { model: usize },
    GiveBackAll,
    Note,
}

const MODELS: [&str; 2] = ["m", "n"];

fn step() -> impl Strategy<Value = Step> {
    let (model, unit, at) = (0..2_usize, 0..6_u64, 0..16_usize);
    prop_oneof![
        4 => (model.clone(), unit.clone(), 0..5_u32)
            .prop_map(|(model, unit, dialogues)| Step::Grant { model, unit, dialogues }),
        8 => (model.clone(), 0..3_usize).prop_map(|(model, place)| Step::Begin { model, place }),
        8 => at.clone().prop_map(|at| Step::End { at }),
        8 => at.clone().prop_map(|at| Step::Acknowledge { at }),
        1 => at.prop_map(|at| Step::Drop { at }),
        1 => (model.clone(), unit).prop_map(|(model, unit)| Step::Lose { model, unit }),
        1 => model.prop_map(|model| Step::GiveBackLane { model }),
        1 => Just(Step::GiveBackAll),
        2 => Just(Step::Note),
    ]
}

proptest! {
    #[test]
    fn every_dialogue_ends_exactly_once(steps in prop::collection::vec(step(), 0..200)) {
        let mut slots = Slots::default();
        let (mut running, mut ended): (Vec<Tag>, Vec<Tag>) = (Vec::new(), Vec::new());
        let mut lost: BTreeSet<LeaseId> = BTreeSet::new();
        let mut begun: BTreeSet<Tag> = BTreeSet::new();
        for step in steps {
            match step {
                Step::Grant { model, unit, dialogues } => {
                    slots.grant(grant(MODELS[model], unit, 0..dialogues));
                }
                Step::Begin { model, place } => {
                    if let Some(next) = slots.begin(&lane(MODELS[model]), place) {
                        prop_assert!(!lost.contains(&next.tag.lease), "begun after its lease was lost");
                        prop_assert!(begun.insert(next.tag.clone()), "{:?} begun twice", next.tag);
                        running.push(next.tag);
                    }
                }
                Step::End { at } if at < running.len() => {
                    let tag = running.swap_remove(at);
                    slots.ended(&tag);
                    ended.push(tag);
                }
                Step::Acknowledge { at } if at < ended.len() => slots.acknowledged(&ended.swap_remove(at)),
                Step::Drop { at } if at < running.len() => _ = slots.dropped(&running.swap_remove(at)),
                Step::Lose { model, unit } => {
                    let id = lease(MODELS[model], unit);
                    let stopped = slots.lost(&id);
                    running.retain(|tag| !stopped.contains(tag));
                    prop_assert!(running.iter().all(|tag| *tag.lease != id), "all that runs is named");
                    if !stopped.is_empty() {
                        lost.insert(id);
                    }
                }
                Step::GiveBackLane { model } => slots.give_back_lane(&lane(MODELS[model])),
                Step::GiveBackAll => slots.give_back_all(),
                Step::Note => {
                    let told: Vec<LeaseId> = slots.ended_leases().map(|(lease, _)| lease.clone()).collect();
                    slots.noted(&told);
                    prop_assert!(slots.is_told());
                }
                _ => {}
            }
            for done in finished(&slots) {
                prop_assert!(ended.iter().all(|tag| *tag.lease != done), "finished without a receipt");
            }
            slots.check().map_err(TestCaseError::fail)?;
        }
        slots.release_all();
        slots.check().map_err(TestCaseError::fail)?;
        let tally = slots.tally();
        prop_assert_eq!(tally.granted, tally.delivered + tally.released + tally.lost);
    }
}

impl Slots {
    /// Checks the invariants.
    ///
    /// # Errors
    /// The violated one.
    fn check(&self) -> Result<(), String> {
        let mut open = 0;
        for (id, lease) in &self.leases {
            open += lease.open() + lease.given_back;
            if lease.open() == 0 {
                return Err(format!("{id:?} is done and still held"));
            }
            if self.closed.contains(id) {
                return Err(format!("{id:?} is held and closed"));
            }
            let queued = self.queues.get(&LaneKey::of(id)).is_some_and(|queue| queue.contains(id));
            if queued == lease.pending.is_empty() {
                return Err(format!("{id:?} has {} to begin, queued: {queued}", lease.pending.len()));
            }
        }
        let SlotCounts { granted, delivered, released, lost } = self.tally;
        if granted != delivered + released + lost + open {
            return Err(format!("{:?} with {open} open: every dialogue ends exactly once", self.tally));
        }
        Ok(())
    }
}
