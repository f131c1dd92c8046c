//! Correct histories, made by random operations on the memory model, give no findings; with one change they do.

use std::sync::Arc;
use std::time::Duration;

use domain::RunId;
use proptest::prelude::*;
use proptest::sample::Index;
use queue::{
    Commit, Committed, LeaseRequest, ManualClock, MemoryStore, NewUnit, QueueStore, Reap, RunRef, RunSpec,
};

use super::*;
use crate::file::{EventLog, Events};
use crate::observed::Observed;

const UNITS: u32 = 6;
const DIALOGUES: u32 = 2;
const LEASE_MS: u64 = 1_000;

/// One thing that is done.
#[derive(Clone, Debug)]
enum Deed {
    /// A worker asks for work and says that it is alive.
    Work(u8),
    /// A worker delivers a record of a dialogue of some unit that it held once.
    Deliver(usize, bool),
    /// Some lease that was given ends, by the word of who held it.
    End(usize, bool),
    /// Time passes.
    Wait(u16),
    /// Expired leases are taken over, or those of a worker.
    Reap(Option<u8>),
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        4 => (0..3_u8).prop_map(Deed::Work),
        6 => (any::<usize>(), any::<bool>()).prop_map(|(which, scored)| Deed::Deliver(which, scored)),
        3 => (any::<usize>(), any::<bool>()).prop_map(|(which, finish)| Deed::End(which, finish)),
        2 => (0..1_500_u16).prop_map(Deed::Wait),
        2 => proptest::option::of(0..3_u8).prop_map(Deed::Reap),
    ]
}

fn worker(number: u8) -> WorkerId {
    WorkerId::new(format!("w{number}"))
}

/// A history in the making.
struct Story {
    queue: Observed,
    clock: Arc<ManualClock>,
    events: EventLog,
    at: RunRef,
    held: Vec<Fence>,
    log: Vec<Kept>,
}

impl Story {
    async fn begin(events: EventLog) -> Self {
        let clock = Arc::new(ManualClock::at(1_780_000_000_000));
        let store = MemoryStore::checked(clock.clone());
        let queue = Observed::new(Arc::new(store), events.clone());
        let spec = RunSpec {
            run: "r".into(),
            plan_hash: "p".to_owned(),
            lease_for: Duration::from_millis(LEASE_MS),
            max_strikes: 3,
            generation: 1,
            ticket_floor: 0,
        };
        let at = queue.create_run(&spec).await.unwrap().at;
        let unit = NewUnit { model: "m".into(), dialogues: DIALOGUES, payload: vec![1] };
        queue.add_units(&at, UnitId(0), &vec![unit; UNITS as usize]).await.unwrap();
        Self { queue, clock, events, at, held: Vec::new(), log: Vec::new() }
    }

    async fn do_(&mut self, deed: &Deed) {
        match deed {
            Deed::Work(number) => {
                let models = vec!["m".into()];
                self.queue.renew(&self.at, &worker(*number), &models, &[]).await.unwrap();
                let ask = LeaseRequest { worker: worker(*number), models, max_units: 2, alone: true };
                let leases = self.queue.lease(&self.at, &ask).await.unwrap();
                self.held.extend(leases.into_iter().map(|lease| lease.fence));
            }
            Deed::Deliver(_, _) | Deed::End(_, _) if self.held.is_empty() => {}
            Deed::Deliver(which, scored) => {
                let unit = self.held[which % self.held.len()].unit.0 as u32;
                let iteration = unit * DIALOGUES + (self.log.len() as u32) % DIALOGUES;
                let key = DialogueKey { model: "m".into(), task: "t".into(), iteration };
                let ticket = self.queue.tickets(&self.at, 1).await.unwrap().start;
                let record = RecordId::new(format!("record-{}", self.log.len()));
                let kept = Kept { record, key: key.clone(), ticket, scored: *scored, late: false };
                self.log.push(kept.clone());
                let commit = Commit { key, record: Committed { scored: *scored, ticket } };
                self.queue.commit(&self.at, &[commit]).await.unwrap();
                self.events
                    .write(&self.at.run, Event::Acknowledged { record: kept.record, generation: 1 })
                    .await;
            }
            Deed::End(which, finish) => {
                let fences = [self.held[which % self.held.len()].clone()];
                match finish {
                    true => self.queue.finish(&self.at, &fences).await.unwrap(),
                    false => self.queue.release(&self.at, &fences).await.unwrap(),
                };
            }
            Deed::Wait(ms) => self.clock.advance_ms(u64::from(*ms)),
            Deed::Reap(whose) => {
                let whose = whose.map_or(Reap::Expired, |number| Reap::Worker(worker(number)));
                self.queue.reap(&self.at, &whose).await.unwrap();
            }
        }
    }
}

/// The events and the log of a history.
fn story(deeds: &[Deed]) -> (Vec<Noted>, Vec<Kept>) {
    let folder = tempfile::tempdir().unwrap();
    let events = EventLog::create(folder.path()).unwrap();
    let run = RunId::new("r");
    let log = tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
        let mut story = Story::begin(events.clone()).await;
        for deed in deeds {
            story.do_(deed).await;
        }
        let finished = Event::Finished { winners: winners_of(&story.log), generation: 1, seal: 1 };
        events.write(&run, finished).await;
        // Waits until all is written.
        events
            .write(&"other".into(), Event::Ending { ending: LeaseEnding::Release, fences: Vec::new() })
            .await;
        story.log
    });
    (Events::read(folder.path(), &run).unwrap().noted, log)
}

fn winners_of(log: &[Kept]) -> Winners {
    let mut standings: BTreeMap<DialogueKey, Standing> = BTreeMap::new();
    for kept in log {
        let standing = Standing::new(kept.scored, kept.ticket);
        standings
            .entry(kept.key.clone())
            .and_modify(|winner| *winner = standing.min(*winner))
            .or_insert(standing);
    }
    let mut winners = Winners::default();
    for (key, standing) in standings {
        winners.add(&key, standing.is_scored(), standing.ticket());
    }
    winners
}

/// A deed that makes a history with something to spoil in it.
fn prologue() -> Vec<Deed> {
    vec![Deed::Work(0), Deed::Deliver(0, true), Deed::End(0, false)]
}

/// Something wrong that is put into a right history; `None` where it holds nothing of the kind.
fn spoil(kind: FindingKind, which: Index, events: &mut Vec<Noted>, log: &mut Vec<Kept>) -> Option<()> {
    let pick = |wanted: fn(&Event) -> bool| -> Option<usize> {
        let found: Vec<usize> =
            events.iter().enumerate().filter(|(_, noted)| wanted(&noted.event)).map(|(at, _)| at).collect();
        (!found.is_empty()).then(|| *which.get(&found))
    };
    match kind {
        FindingKind::Lost => {
            let at = pick(|event| matches!(event, Event::Acknowledged { .. }))?;
            let Event::Acknowledged { record, .. } = &events[at].event else { return None };
            log.retain(|kept| kept.record != *record);
        }
        FindingKind::Doubled => {
            let at = pick(|event| matches!(event, Event::Committed { effect: Effect::First, .. }))?;
            let again = events[at].clone();
            events.push(again);
        }
        FindingKind::StaleFence => {
            let at = pick(|event| matches!(event, Event::Ended { fences, .. } if !fences.is_empty()))?;
            let again = events[at].clone();
            events.push(again);
        }
        FindingKind::GrantedTwice => {
            let at = pick(|event| matches!(event, Event::Granted { .. }))?;
            let mut again = events[at].clone();
            let Event::Granted { worker, .. } = &mut again.event else { return None };
            *worker = WorkerId::new("another");
            events.push(again);
        }
        FindingKind::WinnerChanged => {
            if log.is_empty() {
                return None;
            }
            // A record that beats the one that counted when the run finished.
            let kept = which.get(log).clone();
            log.push(Kept { ticket: 1, scored: true, record: RecordId::new("new"), ..kept });
        }
    }
    Some(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_right_history_is_found_right(deeds in proptest::collection::vec(deed(), 0..60)) {
        let (events, log) = story(&deeds);
        let report = check(&events, &log);
        prop_assert!(report.is_right(), "{:?}", report.findings);
    }

    #[test]
    fn one_thing_that_is_wrong_is_found(
        deeds in proptest::collection::vec(deed(), 10..60),
        which in any::<Index>(),
        kind in proptest::sample::select(FindingKind::ALL.to_vec()),
    ) {
        let (mut events, mut log) = story(&[prologue(), deeds].concat());
        prop_assert!(spoil(kind, which, &mut events, &mut log).is_some(), "the prologue has one of each");
        let report = check(&events, &log);
        prop_assert!(report.count(kind) > 0, "{kind} was not found: {report:?}");
    }
}

fn fence(attempt: u32) -> Fence {
    Fence { generation: 1, model: "m".into(), unit: UnitId(0), attempt }
}

fn noted(at_ms: u64, event: Event) -> Noted {
    Noted { at_ms, run: "r".into(), event }
}

fn granted(at_ms: u64, attempt: u32, by: u8) -> Noted {
    let until_ms = at_ms + LEASE_MS;
    noted(at_ms, Event::Granted { fence: fence(attempt), worker: worker(by), until_ms })
}

fn opened() -> Noted {
    noted(0, Event::Opened { generation: 1, lease_ms: LEASE_MS })
}

#[test]
fn a_lease_that_is_taken_from_a_living_worker_is_found() {
    // Renewed until 6 000, taken over at 2 000: nobody said why.
    let renewed = Event::Renewed { worker: worker(0), held: vec![fence(1)], until_ms: 6_000 };
    let right = [opened(), granted(100, 1, 0), noted(5_000, renewed), granted(7_000, 2, 1)];
    assert!(check(&right, &[]).is_right());
    let mut wrong = right.clone();
    wrong[3] = granted(2_000, 2, 1);
    assert_eq!(check(&wrong, &[]).count(FindingKind::GrantedTwice), 1);
    for reason in [
        Event::Ending { ending: LeaseEnding::Release, fences: vec![fence(1)] },
        Event::Reaping { generation: 1, worker: Some(worker(0)) },
        Event::Reaped { generation: 1, units: vec![UnitId(0)] },
    ] {
        let explained = [&wrong[..], &[noted(1_500, reason)]].concat();
        assert!(check(&explained, &[]).is_right());
    }
}

#[test]
fn each_taking_over_explains_one_lease_whatever_a_clock_says() {
    let renewed = |attempt, until_ms| {
        noted(
            until_ms - 1_000,
            Event::Renewed { worker: worker(attempt as u8), held: vec![fence(attempt)], until_ms },
        )
    };
    // By a coordinator whose clock is an hour behind.
    let reaped = noted(0, Event::Reaped { generation: 1, units: vec![UnitId(0)] });
    let events =
        [opened(), granted(3_600_100, 1, 1), renewed(1, 3_606_000), granted(3_602_000, 2, 2), reaped.clone()];
    assert!(check(&events, &[]).is_right());
    let again = [&events[..], &[renewed(2, 3_609_000), granted(3_603_000, 3, 3)]].concat();
    assert_eq!(check(&again, &[]).count(FindingKind::GrantedTwice), 1);
    assert!(check(&[&again[..], &[reaped]].concat(), &[]).is_right());
}

#[test]
fn what_a_test_made_the_queue_forget_is_no_fault_of_a_coordinator() {
    let finished = Event::Ended { ending: LeaseEnding::Finish, fences: vec![fence(1)] };
    let wrong = vec![opened(), granted(100, 1, 0), noted(200, finished), granted(9_000, 2, 1)];
    assert_eq!(check(&wrong, &[]).count(FindingKind::StaleFence), 1);
    let excused = [&wrong[..], &[noted(1_500, Event::WritesLost { since_ms: 1_100 })]].concat();
    let report = check(&excused, &[]);
    assert!(report.is_right() && report.excused == 1, "{report:?}");
    assert_eq!(report.excuses[0].kind, FindingKind::StaleFence);
    // Neither of the two was lost: it does not matter that something between them was.
    let between = [&wrong[..], &[noted(5_000, Event::WritesLost { since_ms: 4_500 })]].concat();
    assert!(!check(&between, &[]).is_right());
}

#[test]
fn a_loss_excuses_what_was_done_again_once() {
    let lost = noted(1_500, Event::WritesLost { since_ms: 1_100 });
    let events = vec![opened(), granted(1_200, 1, 0), granted(2_000, 1, 1), lost];
    let report = check(&events, &[]);
    assert!(report.is_right() && report.excused == 1, "{report:?}");
    // The queue forgot the first grant once: a third one is the fault of somebody else.
    let again = [&events[..], &[granted(2_200, 1, 2)]].concat();
    let report = check(&again, &[]);
    assert_eq!((report.excused, report.count(FindingKind::GrantedTwice)), (1, 1), "{report:?}");
    let twice = [&again[..], &[noted(2_150, Event::WritesLost { since_ms: 1_900 })]].concat();
    assert_eq!(check(&twice, &[]).excused, 2);
}

fn kept(name: &str, iteration: u32, ticket: u64) -> Kept {
    let key = DialogueKey { model: "m".into(), task: "t".into(), iteration };
    Kept { record: RecordId::new(name), key, ticket, scored: true, late: false }
}

fn taken(records: &[&Kept]) -> Event {
    let lost = |kept: &&Kept| {
        let Kept { record, key, ticket, scored, late } = (*kept).clone();
        LostRecord { record, key, ticket, scored, late }
    };
    Event::RecordsLost { records: records.iter().map(lost).collect() }
}

#[test]
fn what_was_taken_from_a_log_is_excused_by_its_name_alone() {
    let (one, two) = (kept("one", 0, 1), kept("two", 1, 2));
    let told = |kept: &Kept| {
        let Kept { key, ticket, scored, .. } = kept.clone();
        Event::Committed { generation: 1, key, scored, ticket, effect: Effect::First }
    };
    let mut events = vec![opened()];
    for kept in [&one, &two] {
        events.push(noted(10, told(kept)));
        events.push(noted(20, Event::Acknowledged { record: kept.record.clone(), generation: 1 }));
    }
    assert_eq!(check(&events, &[]).count(FindingKind::Lost), 4);
    events.push(noted(30, taken(&[&one])));
    let report = check(&events, &[]);
    assert_eq!((report.excused, report.count(FindingKind::Lost)), (2, 2), "{report:?}");
    // What was named and is there all the same needs no excuse.
    let report = check(&events, &[one, two]);
    assert!(report.is_right() && report.excused == 0, "{report:?}");
}

#[test]
fn a_run_that_finished_before_its_log_lost_records_had_these_winners() {
    let (one, two, three) = (kept("one", 0, 1), kept("two", 1, 2), kept("three", 1, 3));
    let all = [one.clone(), two.clone(), three.clone()];
    let finished = noted(50, Event::Finished { winners: winners_of(&all), generation: 1, seal: 1 });
    let left = [one.clone(), three.clone()];
    assert_eq!(check(std::slice::from_ref(&finished), &left).count(FindingKind::WinnerChanged), 1);
    let of_two = [finished.clone(), noted(60, taken(&[&two]))];
    let report = check(&of_two, &left);
    assert!(report.is_right() && report.excused == 1, "{report:?}");
    // The loss of another record does not explain it.
    let of_three = [finished.clone(), noted(60, taken(&[&three]))];
    assert!(!check(&of_three, &left).is_right());
    // It finished again, and lost another one: each time it had what it lost later.
    let again = noted(70, Event::Finished { winners: winners_of(&left), generation: 1, seal: 1 });
    let twice = [finished, noted(60, taken(&[&two])), again, noted(80, taken(&[&three]))];
    let report = check(&twice, &[one]);
    assert!(report.is_right() && report.excused == 2, "{report:?}");
}

#[test]
fn a_run_that_finished_while_records_were_away_had_the_ones_in_their_place() {
    // Two was lost and asked again; then an older copy of the log took its successor and brought two back.
    let (one, two, successor) = (kept("one", 0, 1), kept("two", 1, 2), kept("successor", 1, 3));
    let finished =
        |log: &[Kept]| noted(60, Event::Finished { winners: winners_of(log), generation: 1, seal: 3 });
    let between = finished(&[one.clone(), successor.clone()]);
    let lost = [noted(50, taken(&[&two])), between.clone(), noted(70, taken(&[&successor]))];
    let log = [one.clone(), two.clone()];
    let report = check(&lost, &log);
    assert!(report.is_right() && report.excused > 0, "{report:?}");
    // Without the loss before it, two was there when it finished.
    assert!(!check(&lost[1..], &log).is_right());
}

#[test]
fn a_run_whose_seal_was_lost_with_records_went_on() {
    let (one, two) = (kept("one", 0, 1), kept("two", 1, 2));
    let finished = |log: &[Kept], generation| {
        noted(60, Event::Finished { winners: winners_of(log), generation, seal: 1 })
    };
    // It finished with one dialogue; an older copy took the record and the seal; it was extended and finished anew.
    let log = [kept("again", 0, 4), two];
    let [first, last] = [finished(std::slice::from_ref(&one), 1), finished(&log, 2)];
    let events = [first.clone(), noted(70, taken(&[&one])), last.clone()];
    let report = check(&events, &log);
    assert!(report.is_right() && report.excused == 1, "{report:?}");
    // Nothing was lost: two ends under one seal contradict each other. So does an end of no earlier generation.
    assert!(!check(&[first, last.clone()], &log).is_right());
    let [first, taken] = [finished(std::slice::from_ref(&one), 2), noted(70, taken(&[&one]))];
    assert!(!check(&[first, taken, last], &log).is_right());
}

#[test]
fn a_run_that_went_on_is_known_by_its_seals_whatever_the_clocks_say() {
    let (one, two) = (kept("one", 0, 1), kept("two", 1, 2));
    let finished = |at_ms, log: &[Kept], seal| {
        noted(at_ms, Event::Finished { winners: winners_of(log), generation: 1, seal })
    };
    let log = [one.clone(), two.clone()];
    // It finished with one dialogue, was extended, and finished with both. The clock went back meanwhile.
    let first = finished(9_000, std::slice::from_ref(&one), 1);
    let reopened = noted(50, Event::Reopened { seal: 2 });
    let last = finished(60, &log, 3);
    for events in [
        vec![first.clone(), reopened.clone(), last.clone()],
        vec![first.clone(), reopened],
        // Who opened it again was killed before it was noted.
        vec![first.clone(), last],
    ] {
        assert!(check(&events, &log).is_right(), "{events:?}");
    }
    assert_eq!(check(std::slice::from_ref(&first), &log).count(FindingKind::WinnerChanged), 1);
    // Twice under one seal is not twice in a row.
    let twice = [first, finished(60, &log, 1)];
    assert_eq!(check(&twice, &log).count(FindingKind::WinnerChanged), 1);
    // From a version that noted no seals, times are all there is.
    let old =
        |at_ms| [finished(at_ms, std::slice::from_ref(&one), 0), noted(50, Event::Reopened { seal: 0 })];
    assert!(check(&old(40), &log).is_right());
    assert!(!check(&old(60), &log).is_right());
}

#[test]
fn a_run_whose_seal_an_older_copy_lacks_may_be_sealed_by_that_number_again() {
    let (one, two) = (kept("one", 0, 1), kept("two", 1, 2));
    let finished = |log: &[Kept], generation| {
        noted(10, Event::Finished { winners: winners_of(log), generation, seal: 1 })
    };
    let log = [one.clone(), two];
    // It finished, the copy with all of its records and without its seal came back, and it was extended.
    let first = finished(std::slice::from_ref(&one), 1);
    let events = [first, noted(20, Event::RecordsLost { records: Vec::new() }), finished(&log, 2)];
    assert!(check(&events, &log).is_right());
    let [first, _, last] = events;
    assert_eq!(check(&[first, last], &log).count(FindingKind::WinnerChanged), 1);
}

#[test]
fn a_run_that_an_older_copy_lacks_may_begin_in_a_lower_generation() {
    let (one, two) = (kept("one", 0, 1), kept("two", 1, 2));
    let finished = |log: &[Kept], generation| {
        noted(10, Event::Finished { winners: winners_of(log), generation, seal: 1 })
    };
    // It was lost as a whole, and begun anew by a coordinator whose clock is behind.
    let log = [two.clone()];
    let events = [finished(&[one.clone(), two], 9), noted(20, taken(&[&one])), finished(&log, 3)];
    assert!(check(&events, &log).is_right());
    let [first, _, last] = events;
    assert!(!check(&[first, last], &log).is_right());
}

#[test]
fn nothing_is_asked_of_the_leases_of_a_run_that_was_removed() {
    let twice = |removed: Option<u64>| {
        let ended = || noted(30, Event::Ended { ending: LeaseEnding::Finish, fences: vec![fence(1)] });
        let mut events = vec![opened(), granted(10, 1, 1), ended(), ended()];
        events.extend(removed.map(|generation| noted(20, Event::Removed { generation })));
        check(&events, &[]).count(FindingKind::StaleFence)
    };
    assert_eq!((twice(None), twice(Some(0)), twice(Some(1))), (1, 1, 0));
}

#[test]
fn what_was_removed_with_its_run_is_not_lost() {
    let (one, two) = (kept("one", 0, 1), kept("two", 1, 2));
    let told = |of: &Kept, generation| {
        let Kept { record, key, ticket, scored, .. } = of.clone();
        let committed = Event::Committed { generation, key, scored, ticket, effect: Effect::First };
        [noted(10, committed), noted(20, Event::Acknowledged { record, generation })]
    };
    let finished = |log: &[Kept], generation| {
        noted(30, Event::Finished { winners: winners_of(log), generation, seal: 1 })
    };
    let removed = noted(40, Event::Removed { generation: 7 });
    let both = [one.clone(), two.clone()];
    let [first, second] = [[told(&one, 6), told(&two, 7)].concat(), told(&two, 8).to_vec()];
    // The life before, which ended with two records, and that after it, which has one of them. Clocks say nothing.
    let lives =
        [second, vec![finished(std::slice::from_ref(&two), 8), removed], first, vec![finished(&both, 7)]]
            .concat();
    let report = check(&lives, std::slice::from_ref(&two));
    assert!(report.is_right(), "{report:?}");
    // What it was told of since the removal must be there.
    let report = check(&lives, &[]);
    assert_eq!(report.count(FindingKind::Lost), 2, "{report:?}");
    assert_eq!(report.count(FindingKind::Doubled), 1, "its dialogue counted when it finished");
}
