use super::*;

/// A breaker on a clock of its own. Records are numbers.
struct Bench {
    breaker: Breaker<u32>,
    now: Instant,
}

fn failure(cause: FailureCause, message: &str, sent: Instant) -> Failure<'_> {
    Failure { cause, message, sent, renewed_at: None, is_first: false }
}

impl Bench {
    fn new() -> Self {
        Self { breaker: Breaker::default(), now: Instant::now() }
    }

    /// A dialogue ends while no other is in flight.
    fn ended(&mut self, record: u32, failure: Option<FailureCause>) -> BreakerDecision<u32> {
        self.ended_beside(Flight::default(), record, failure)
    }

    /// A dialogue ends while these are in flight.
    fn ended_beside(
        &mut self,
        flight: Flight,
        record: u32,
        failure: Option<FailureCause>,
    ) -> BreakerDecision<u32> {
        let failure = failure.map(|cause| self::failure(cause, "words", self.now));
        self.breaker.ended(record, failure, |_, _| flight, self.now)
    }

    /// As many dialogues end by this cause, and are held back.
    fn held(&mut self, records: std::ops::Range<u32>, cause: FailureCause) {
        for record in records {
            assert_eq!(self.ended(record, Some(cause)), BreakerDecision::Hold, "{record}");
        }
    }

    fn is_open(&self) -> bool {
        self.breaker.is_open(self.now)
    }
}

const GONE: Option<FailureCause> = Some(FailureCause::Connection);
const REFUSED: Option<FailureCause> = Some(FailureCause::BadRequest);
const FAULT: Option<FailureCause> = Some(FailureCause::Server);
const KEY: Option<FailureCause> = Some(FailureCause::Unauthorized);

#[test]
fn a_server_that_refuses_its_first_dialogues_alike_is_not_asked_for_more() {
    let mut bench = Bench::new();
    bench.held(1..REFUSALS_MAX, FailureCause::BadRequest);
    let forgotten = (1..=REFUSALS_MAX).collect();
    let opened = BreakerDecision::Open { forgotten, parked_for: PARKED_FIRST };
    assert_eq!(bench.ended(REFUSALS_MAX, REFUSED), opened);
    assert_eq!(bench.ended(99, REFUSED), BreakerDecision::Forget(99));
    bench.now += PARKED_FIRST;
    let again = BreakerDecision::Open { forgotten: vec![1], parked_for: PARKED_FIRST * 2 };
    assert_eq!(bench.ended(1, REFUSED), again, "one more is enough to know");
    bench.now += PARKED_FIRST * 2;
    assert_eq!(bench.ended(1, None), BreakerDecision::Deliver(vec![1]));
    for record in 0..2 * REFUSALS_MAX {
        assert_eq!(bench.ended(record, REFUSED), BreakerDecision::Deliver(vec![record]));
    }
}

#[test]
fn refusals_that_differ_in_what_they_quote_are_alike() {
    let mut bench = Bench::new();
    let mut refuse = |record: u32| {
        let message =
            format!("HTTP 422: [{{'loc': 'seed', 'input': {}}}] of `req-{record}`", 7_u64.pow(record % 20));
        let failure = failure(FailureCause::BadRequest, &message, bench.now);
        bench.breaker.ended(record, Some(failure), |_, _| Flight::default(), bench.now)
    };
    for record in 1..REFUSALS_MAX {
        assert_eq!(refuse(record), BreakerDecision::Hold);
    }
    assert!(matches!(refuse(REFUSALS_MAX), BreakerDecision::Open { .. }));
}

#[test]
fn the_first_answer_of_another_model_is_the_last_that_is_bought() {
    const OTHER: Option<FailureCause> = Some(FailureCause::WrongModel);
    let mut bench = Bench::new();
    let opened = BreakerDecision::Open { forgotten: vec![0], parked_for: PARKED_FIRST };
    assert_eq!(bench.ended(0, OTHER), opened);
    assert_eq!(bench.ended(1, OTHER), BreakerDecision::Forget(1), "it was under way");
    bench.now += PARKED_FIRST;
    assert_eq!(bench.ended(2, None), BreakerDecision::Deliver(vec![2]));
    assert_eq!(bench.ended(3, OTHER), BreakerDecision::Deliver(vec![3]), "one of several servers");
}

#[test]
fn a_model_without_quota_is_parked_until_it_is_renewed() {
    for (seconds, parked) in
        [(7_200, Duration::from_secs(7_200)), (1, PARKED_FIRST), (u64::from(u32::MAX), QUOTA_PARKED_MAX)]
    {
        let mut bench = Bench::new();
        let renewed_at = Some(bench.now + Duration::from_secs(seconds));
        let failure = Failure { renewed_at, ..failure(FailureCause::QuotaExhausted, "per day", bench.now) };
        let decision = bench.breaker.ended(0, Some(failure), |_, _| Flight::default(), bench.now);
        assert_eq!(decision, BreakerDecision::Open { forgotten: vec![0], parked_for: parked });
    }
}

#[test]
fn refusals_that_differ_are_those_of_dialogues() {
    let mut bench = Bench::new();
    assert_eq!(bench.ended(0, REFUSED), BreakerDecision::Hold);
    assert_eq!(
        bench.ended(1, Some(FailureCause::ContextExceeded)),
        BreakerDecision::Deliver(vec![1]),
        "a long prompt says nothing about the others"
    );
    let other = failure(FailureCause::BadRequest, "other words", bench.now);
    let decision = bench.breaker.ended(2, Some(other), |_, _| Flight::default(), bench.now);
    assert_eq!(decision, BreakerDecision::Deliver(vec![0, 2]));
    assert_eq!(bench.ended(3, REFUSED), BreakerDecision::Deliver(vec![3]));
}

#[test]
fn refusals_wait_a_moment_for_more_and_no_longer() {
    let mut bench = Bench::new();
    assert_eq!(bench.ended(0, REFUSED), BreakerDecision::Hold);
    assert!(bench.breaker.waits(bench.now) && !bench.breaker.waits(bench.now + HELD_FOR));
    assert_eq!(bench.breaker.settle(), [0]);
}

#[test]
fn five_failures_in_a_row_park_the_model_and_keep_no_record_of_them() {
    let mut bench = Bench::new();
    bench.held(0..4, FailureCause::Connection);
    let opened = BreakerDecision::Open { forgotten: vec![0, 1, 2, 3, 4], parked_for: PARKED_FIRST };
    assert_eq!(bench.ended(4, GONE), opened);
    assert!(bench.is_open() && !bench.breaker.is_open(bench.now + PARKED_FIRST));
    assert_eq!(bench.breaker.last_failure(), Some((FailureCause::Connection, "words")));
}

#[test]
fn parkings_double_until_something_works() {
    let mut bench = Bench::new();
    bench.held(0..4, FailureCause::Connection);
    let mut parked = Vec::new();
    for record in 4..10 {
        let BreakerDecision::Open { parked_for, .. } = bench.ended(record, GONE) else { panic!() };
        assert_eq!(
            bench.ended(99, GONE),
            BreakerDecision::Forget(99),
            "one that ran on is not a new failure"
        );
        parked.push(parked_for.as_secs());
        bench.now += parked_for;
    }
    assert_eq!(parked, [60, 120, 240, 480, 900, 900]);
    assert_eq!(bench.ended(10, None), BreakerDecision::Deliver(vec![10]));
    assert_eq!(bench.ended(11, GONE), BreakerDecision::Hold, "one failure is the dialogue's own again");
}

#[test]
fn a_success_delivers_what_was_held_back_before_it() {
    let mut bench = Bench::new();
    assert_eq!(bench.ended(0, GONE), BreakerDecision::Hold);
    assert_eq!(
        bench.ended(1, Some(FailureCause::ContextExceeded)),
        BreakerDecision::Deliver(vec![0, 1]),
        "a server that refuses is there"
    );
    assert_eq!(bench.ended(2, GONE), BreakerDecision::Hold);
    assert_eq!(bench.breaker.settle(), [2]);
    assert!(!bench.breaker.holds());
}

#[test]
fn a_server_that_answered_and_then_fails_everybody_is_given_a_quarter_of_an_hour() {
    let mut bench = Bench::new();
    assert_eq!(bench.ended(0, None), BreakerDecision::Deliver(vec![0]));
    bench.held(1..FAULTS_MAX, FailureCause::Server);
    assert!(bench.breaker.waits(bench.now) && !bench.breaker.waits(bench.now + HELD_FOR));
    let mut parked = Duration::ZERO;
    for record in FAULTS_MAX.. {
        match bench.ended(record, FAULT) {
            BreakerDecision::Open { forgotten, parked_for } => {
                assert_eq!(forgotten.last(), Some(&record));
                assert_eq!(bench.ended(99, FAULT), BreakerDecision::Forget(99));
                (parked, bench.now) = (parked + parked_for, bench.now + parked_for);
            }
            decision => {
                assert_eq!(decision, BreakerDecision::Deliver(vec![record]), "it is the dialogues, then");
                break;
            }
        }
    }
    assert_eq!(parked, Duration::from_secs(15 * 60));
    assert_eq!(bench.ended(0, FAULT), BreakerDecision::Deliver(vec![0]));
    assert_eq!(bench.ended(0, None), BreakerDecision::Deliver(vec![0]));
    assert_eq!(bench.ended(1, FAULT), BreakerDecision::Hold, "it works again");
}

#[test]
fn a_fault_between_answers_is_that_of_its_dialogue() {
    let mut bench = Bench::new();
    for record in 0..3 * FAULTS_MAX {
        assert_eq!(bench.ended(record, None), BreakerDecision::Deliver(vec![record]));
        assert_eq!(bench.ended(100, FAULT), BreakerDecision::Hold);
        assert_eq!(bench.ended(101, None), BreakerDecision::Deliver(vec![100, 101]));
    }
}

#[test]
fn an_exhausted_quota_needs_no_second_witness() {
    let mut bench = Bench::new();
    assert_eq!(
        bench.ended_beside(Flight { answered: 30, silent: 2 }, 0, Some(FailureCause::QuotaExhausted)),
        BreakerDecision::Open { forgotten: vec![0], parked_for: QUOTA_PARKED }
    );
}

#[test]
fn a_key_that_is_refused_in_the_middle_parks_after_more_words_than_at_the_start() {
    let mut bench = Bench::new();
    assert_eq!(bench.ended(0, None), BreakerDecision::Deliver(vec![0]));
    bench.held(1..TURNED_AWAY_MAX, FailureCause::Unauthorized);
    // Answers that were begun before the first refusal say nothing: they are not among those since.
    let opened = bench.ended(TURNED_AWAY_MAX, KEY);
    let forgotten = (1..=TURNED_AWAY_MAX).collect();
    assert_eq!(opened, BreakerDecision::Open { forgotten, parked_for: PARKED_FIRST });
}

#[test]
fn failures_beside_an_answer_that_was_begun_with_them_are_those_of_their_dialogues() {
    for cause in [FailureCause::Unauthorized, FailureCause::Connection, FailureCause::BadRequest] {
        let (mut bench, begin) = (Bench::new(), Instant::now());
        let enough = if cause == FailureCause::BadRequest { REFUSALS_MAX } else { STREAK_MAX };
        bench.now = begin;
        bench.held(1..enough, cause);
        let failure = failure(cause, "words", begin + Duration::from_secs(1));
        let mut asked = None;
        let flight = |since, until| {
            asked = Some((since, until));
            Flight { answered: 1, silent: 26 }
        };
        let decision = bench.breaker.ended(enough, Some(failure), flight, begin + Duration::from_secs(2));
        assert_eq!(decision, BreakerDecision::Deliver((1..=enough).collect()), "{cause}");
        let now = begin + Duration::from_secs(2);
        assert_eq!(asked, Some((begin, now)), "what counts was sent since the first of them was");
        assert!(!bench.breaker.is_in_doubt() && !bench.breaker.holds());
    }
}

#[test]
fn a_server_that_says_nothing_to_the_others_is_waited_for_within_bounds() {
    let silent = Flight { answered: 0, silent: 3 };
    let doubting = || {
        let mut bench = Bench::new();
        bench.held(0..4, FailureCause::Unauthorized);
        let begin = bench.now;
        assert_eq!(bench.ended_beside(silent, 4, KEY), BreakerDecision::Hold);
        assert_eq!(bench.ended_beside(silent, 5, KEY), BreakerDecision::Hold);
        assert!(bench.breaker.is_in_doubt() && !bench.is_open());
        bench.now += DOUBT_MAX - Duration::from_secs(1);
        let mut until = None;
        let flight = |_, last| {
            until = Some(last);
            silent
        };
        assert_eq!(bench.breaker.review(flight, bench.now), None);
        assert_eq!(until, Some(begin), "what is repeated meanwhile is not waited for");
        bench
    };
    let all: Vec<u32> = (0..6).collect();
    let opened = || Some(BreakerDecision::Open { forgotten: all.clone(), parked_for: PARKED_FIRST });

    let mut refuses = doubting();
    assert_eq!(
        refuses.breaker.review(|_, _| Flight::default(), refuses.now),
        opened(),
        "the last was refused, too"
    );
    assert_eq!(refuses.breaker.review(|_, _| Flight::default(), refuses.now), None);

    let mut hangs = doubting();
    hangs.now += Duration::from_secs(1);
    assert_eq!(hangs.breaker.review(|_, _| silent, hangs.now), opened());

    let mut answers = doubting();
    let begun = Flight { answered: 1, silent: 2 };
    assert_eq!(
        answers.breaker.review(|_, _| begun, answers.now),
        Some(BreakerDecision::Deliver(all.clone()))
    );

    let mut ends = doubting();
    assert_eq!(ends.ended_beside(silent, 6, None), BreakerDecision::Deliver((0..7).collect()));
    assert!(!ends.breaker.is_in_doubt());
}

/// A server, its calls and a worker with so many slots, on a clock that goes in seconds. Every dialogue is one call.
struct Course {
    bench: Bench,
    /// Calls in flight, with the time of their end and what it is.
    flying: Vec<(Instant, Instant, Option<FailureCause>)>,
    begun: u32,
    /// Ends of dialogues whose records were delivered: scored, failed.
    delivered: (u32, u32),
    forgotten: u32,
    parkings: Vec<Duration>,
}

impl Course {
    fn new() -> Self {
        let bench = Bench::new();
        Self { bench, flying: Vec::new(), begun: 0, delivered: (0, 0), forgotten: 0, parkings: Vec::new() }
    }

    /// Goes on for so long, with 32 calls at once. The server gives the n-th call its end, after a time.
    fn go(&mut self, seconds: u64, server: impl Fn(u32) -> (u64, Option<FailureCause>)) {
        for _ in 0..seconds {
            // A refusal makes room for another call within the second.
            loop {
                self.begin(&server);
                if !self.end_those_that_are_due() {
                    break;
                }
            }
            self.bench.now += Duration::from_secs(1);
            self.end_those_that_are_due();
            if let Some(decision) = self.bench.breaker.review(self.flight(), self.bench.now) {
                self.carry_out(decision);
            }
        }
    }

    /// Sends as many calls as there is room for.
    fn begin(&mut self, server: impl Fn(u32) -> (u64, Option<FailureCause>)) {
        while self.flying.len() < 32 && !self.bench.is_open() && !self.bench.breaker.is_in_doubt() {
            let (after, end) = server(self.begun);
            self.flying.push((self.bench.now, self.bench.now + Duration::from_secs(after), end));
            self.begun += 1;
        }
    }

    fn end_those_that_are_due(&mut self) -> bool {
        let now = self.bench.now;
        let due: Vec<_> = self.flying.extract_if(.., |(_, until, _)| *until <= now).collect();
        for (sent, _, end) in &due {
            let failure = end.map(|cause| failure(cause, "words", *sent));
            let (record, flight) = (u32::from(end.is_some()), self.flight());
            let decision = self.bench.breaker.ended(record, failure, flight, now);
            self.carry_out(decision);
        }
        !due.is_empty()
    }

    fn flight(&self) -> impl FnOnce(Instant, Instant) -> Flight + 'static {
        let sent: Vec<Instant> = self.flying.iter().map(|(sent, ..)| *sent).collect();
        move |since, until| {
            let silent = sent.iter().filter(|sent| (since..=until).contains(*sent)).count();
            Flight { answered: 0, silent }
        }
    }

    fn carry_out(&mut self, decision: BreakerDecision<u32>) {
        match decision {
            BreakerDecision::Hold => {}
            BreakerDecision::Forget(_) => self.forgotten += 1,
            BreakerDecision::Deliver(records) => {
                let failed: u32 = records.iter().sum();
                self.delivered.0 += records.len() as u32 - failed;
                self.delivered.1 += failed;
            }
            BreakerDecision::Open { forgotten, parked_for } => {
                self.forgotten += forgotten.len() as u32;
                self.parkings.push(parked_for);
                self.flying.clear();
            }
        }
    }
}

#[test]
fn eight_of_ten_answers_in_a_minute_and_two_refused_at_once_never_park() {
    for cause in [FailureCause::Unauthorized, FailureCause::ModelNotFound, FailureCause::BadRequest] {
        let mut course = Course::new();
        course.go(3600, |n| if n % 5 == 4 { (0, Some(cause)) } else { (60, None) });
        assert_eq!(course.parkings, [], "{cause}");
        let (scored, failed) = course.delivered;
        assert!(scored >= 59 * 30, "{scored} of an hour with 32 at once");
        assert!(failed >= scored / 5 && failed <= scored / 3, "{failed} beside {scored}");
    }
}

#[test]
fn a_server_that_refuses_all_is_parked_at_once_and_asked_little() {
    let mut course = Course::new();
    course.go(3600, |_| (0, KEY));
    let parked: Vec<u64> = course.parkings.iter().map(Duration::as_secs).collect();
    assert_eq!(parked, [60, 120, 240, 480, 900, 900, 900]);
    assert_eq!((course.begun, course.delivered), (7 * 32, (0, 0)), "those that were sent together");
}

#[test]
fn a_server_that_comes_and_goes_is_asked_whenever_it_is_there() {
    let mut course = Course::new();
    for _ in 0..4 {
        // It is gone for as long as the first parking takes, then there for ten minutes, with a bad neighbour.
        course.go(30, |_| (0, KEY));
        let parkings = course.parkings.len();
        course.go(600, |n| if n % 5 == 4 { (0, KEY) } else { (60, None) });
        assert!(course.parkings.len() <= parkings + 1, "{:?}", course.parkings);
    }
    assert!(course.parkings.len() <= 8 && course.parkings.iter().all(|parked| *parked <= PARKED_FIRST * 2));
    assert!(course.delivered.0 >= 4 * 32 * 6, "{:?}", course.delivered);
}
