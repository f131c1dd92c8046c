use Outlook::{Done, Held, Later, Surplus, Unknown, Work};

use super::*;

const RULES: EndRules =
    EndRules { idle_after: IdleAfter::Auto, server_wait: SERVER_WAIT, leave_surplus: true };

/// A worker at a clock of its own, whose server answers.
struct Played {
    until: UntilDone,
    now: Instant,
}

impl Played {
    fn new(rules: EndRules) -> Self {
        let now = Instant::now();
        let mut until = UntilDone::new(rules, now);
        until.servers(true, Some(Duration::from_secs(20 * 60)), now);
        Self { until, now }
    }

    fn pass(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
    }

    /// An answer to a question of this moment; whether the worker ends then.
    fn told(&mut self, outlook: impl Into<Option<Outlook>>) -> Option<Departure> {
        self.until.told(outlook.into(), self.now, self.now);
        self.ends()
    }

    /// So many answers, five seconds apart.
    fn told_for(&mut self, seconds: u64, outlook: Outlook) -> Option<Departure> {
        for _ in 0..seconds / 5 {
            self.pass(5);
            if let Some(why) = self.told(outlook) {
                return Some(why);
            }
        }
        None
    }

    fn ends(&self) -> Option<Departure> {
        self.until.ending(false, || None, self.now).map(|ending| ending.why)
    }
}

#[test]
fn done_is_believed_when_it_is_said_twice_and_some_time_apart() {
    let mut worker = Played::new(RULES);
    assert_eq!(worker.told(Done), None);
    worker.pass(4);
    assert_eq!(worker.told(Done), None, "a coordinator may not have looked meanwhile");
    worker.pass(1);
    assert_eq!(worker.told(Done), Some(Departure::Done));
    // Time alone is no second answer.
    let mut worker = Played::new(RULES);
    worker.told(Done);
    worker.pass(3600);
    assert_eq!(worker.ends(), None);
}

#[test]
fn whatever_says_otherwise_begins_anew() {
    for other in [Some(Work), Some(Unknown), Some(Later), None] {
        let mut worker = Played::new(RULES);
        worker.told(Done);
        worker.pass(5);
        assert_eq!(worker.told(other), None);
        worker.pass(5);
        assert_eq!(worker.told(Done), None, "{other:?}");
        worker.pass(5);
        assert_eq!(worker.told(Done), Some(Departure::Done));
    }
    let mut worker = Played::new(RULES);
    worker.told(Done);
    worker.pass(5);
    worker.until.unanswered();
    assert_eq!(worker.told(Done), None);
}

#[test]
fn what_was_asked_before_the_last_lease_is_not_believed() {
    let mut worker = Played::new(RULES);
    let asked = worker.now;
    worker.pass(1);
    worker.until.holds(worker.now);
    worker.pass(1);
    worker.until.told(Some(Done), asked, worker.now);
    assert!(!worker.until.is_done());
    worker.pass(10);
    assert_eq!(worker.told(Done), None, "the first answer that counts");
    worker.pass(5);
    assert_eq!(worker.told(Done), Some(Departure::Done));
    worker.until.holds(worker.now);
    assert_eq!(worker.ends(), None, "it was granted something on the way");
}

#[test]
fn surplus_is_left_after_a_minute_by_those_that_may() {
    let mut worker = Played::new(RULES);
    assert_eq!(worker.told_for(60, Surplus), None);
    assert_eq!(worker.told_for(5, Surplus), Some(Departure::Surplus));
    let mut stays = Played::new(EndRules { leave_surplus: false, ..RULES });
    assert_eq!(stays.told_for(24 * 3600, Surplus), None);
}

#[test]
fn a_server_is_kept_as_long_as_loading_it_took() {
    let mut worker = Played::new(RULES);
    worker.until.holds(worker.now);
    assert_eq!(worker.told_for(20 * 60, Later), None);
    assert_eq!(worker.told_for(5, Later), Some(Departure::Later));

    let idle = |loaded: u64| {
        let mut worker = Played::new(RULES);
        worker.until.servers(true, Some(Duration::from_secs(loaded)), worker.now);
        worker.until.idle_after()
    };
    assert_eq!((idle(3), idle(90 * 60)), (IDLE_AUTO_MIN, IDLE_AUTO_MAX));
    let mut exact =
        Played::new(EndRules { idle_after: IdleAfter::Exactly(Duration::from_secs(10)), ..RULES });
    exact.until.holds(exact.now);
    assert_eq!(exact.told_for(10, Held), None);
    assert_eq!(exact.told_for(5, Held), Some(Departure::Held));
}

#[test]
fn one_that_never_held_a_lease_waits_a_minute_also_while_its_server_loads() {
    let mut worker = Played::new(RULES);
    worker.until = UntilDone::new(RULES, worker.now);
    assert_eq!(worker.told_for(60, Held), None);
    assert_eq!(worker.told_for(5, Held), Some(Departure::Held));
}

#[test]
fn held_and_later_are_one_wait() {
    let mut worker = Played::new(RULES);
    assert_eq!(worker.told_for(30, Held), None);
    assert_eq!(worker.told_for(30, Later), None);
    assert_eq!(worker.told_for(5, Held), Some(Departure::Held));
}

#[test]
fn a_server_may_be_silent_for_so_long_at_the_start_and_later() {
    let wait = SERVER_WAIT.as_secs();
    let mut worker = Played::new(RULES);
    worker.until = UntilDone::new(RULES, worker.now);
    worker.pass(wait - 1);
    assert_eq!(worker.told(Work), None);
    worker.pass(1);
    let ending = worker.until.ending(true, || Some("out of memory".to_owned()), worker.now).unwrap();
    assert_eq!(ending.why, Departure::Failed);
    assert!(ending.reason.contains("out of memory") && ending.reason.contains("1800 s"), "{ending:?}");

    let mut worker = Played::new(RULES);
    worker.pass(5000);
    worker.until.holds(worker.now);
    worker.until.servers(false, None, worker.now);
    worker.until.told(Some(Work), worker.now, worker.now);
    worker.pass(wait - 1);
    assert_eq!(worker.told(Work), None);
    worker.until.servers(true, None, worker.now);
    worker.pass(wait);
    assert_eq!(worker.told(Work), None, "it came back");
}

#[test]
fn without_a_coordinator_one_that_keeps_no_record_ends_after_two_hours() {
    let mut worker = Played::new(RULES);
    worker.told(Work);
    worker.pass(COORDINATOR_WAIT_MAX.as_secs() - 1);
    worker.until.unanswered();
    assert_eq!(worker.ends(), None);
    worker.pass(1);
    assert_eq!(worker.ends(), Some(Departure::Failed));
    assert_eq!(worker.until.ending(true, || None, worker.now), None, "records wait for their coordinator");
}
