use domain::{FailureCause, RetryAdvice};

use super::*;
use crate::chat::ChatReply;

const RULES: BatchRules = BatchRules {
    quiet: Duration::from_secs(10),
    gather_max: Duration::from_secs(60),
    look_first: Duration::from_secs(20),
    look_max: Duration::from_secs(40),
    ending_max: Duration::ZERO,
};

const BOUNDS: BatchBounds = BatchBounds { requests_max: 3, bytes_max: 100, frame_bytes: 0 };

type Told = oneshot::Receiver<BatchedReply>;

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn scope() -> BatchScope {
    BatchScope { run: "r".into(), connector: "c".to_owned(), endpoint: None, model: "m".to_owned() }
}

/// A desk, and the time.
struct Tried {
    desk: DeskState,
    now: Instant,
}

impl Tried {
    fn new() -> Self {
        Self { desk: DeskState::new(scope(), RULES, BOUNDS), now: Instant::now() }
    }

    fn ask(&mut self, id: &str) -> Told {
        self.ask_at_length(id, 1)
    }

    fn ask_at_length(&mut self, id: &str, bytes: usize) -> Told {
        let request = BatchedRequest { id: id.to_owned(), body: vec![0; bytes].into() };
        self.desk.ask(request, self.now)
    }

    fn next(&mut self) -> DeskStep {
        self.desk.next(self.now, Timestamp::UNIX_EPOCH)
    }

    /// The step when there is one, for which the clock is put forward.
    fn wait(&mut self) -> DeskStep {
        match self.next() {
            DeskStep::Wait(Some(until)) => {
                assert!(until > self.now, "waits for nothing");
                self.now = until;
                self.next()
            }
            step => step,
        }
    }

    fn rests(&mut self) -> bool {
        matches!(self.next(), DeskStep::Wait(None))
    }

    /// The batch that is created next, with these questions.
    fn creates(&mut self, ids: &[&str]) -> BatchNote {
        let DeskStep::Create(note, requests) = self.wait() else { panic!("no batch is created") };
        let created: Vec<&str> = requests.iter().map(|request| request.id.as_str()).collect();
        assert_eq!((created.as_slice(), note.requests.len()), (ids, ids.len()));
        note
    }

    /// The same, and the provider knows it.
    fn created(&mut self, ids: &[&str]) -> BatchNote {
        let note = self.creates(ids);
        self.desk.created(&note.name, "batch_1".to_owned(), self.now).unwrap()
    }

    fn looks_at(&mut self, note: &BatchNote) {
        match self.wait() {
            DeskStep::Look { name, id } => assert_eq!((&name, Some(&id)), (&note.name, note.id.as_ref())),
            step => panic!("{step:?} instead of a look"),
        }
    }

    fn discards(&mut self, note: &BatchNote) {
        match self.wait() {
            DeskStep::Discard { name, id } => {
                assert_eq!((&name, Some(&id)), (&note.name, note.id.as_ref()));
            }
            step => panic!("{step:?} instead of a deletion"),
        }
    }

    /// The batch ends with these answers.
    fn ends(&mut self, note: &BatchNote, answers: &[&str]) {
        let wanted = self.desk.wanted(&note.name);
        let replies = answers.iter().map(|id| ((*id).to_owned(), Ok(ChatReply::text(*id)))).collect();
        self.desk.answered(&note.name, replies);
        self.desk.ended(&note.name, wanted, &failure("left out"), self.now);
    }
}

fn failure(message: &str) -> CallError {
    CallError::new(FailureCause::Server, RetryAdvice::Transient, message)
}

fn told(told: &mut Told) -> Option<Result<String, String>> {
    let reply = told.try_recv().ok()?;
    Some(reply.map(|reply| reply.answer.text).map_err(|error| error.message))
}

fn answer(text: &str) -> Option<Result<String, String>> {
    Some(Ok(text.to_owned()))
}

#[test]
fn questions_are_gathered_until_none_comes_and_their_answers_are_told() {
    let mut tried = Tried::new();
    assert!(tried.rests());
    let began = tried.now;
    let (mut a, mut b) = (tried.ask("a"), tried.ask("b"));
    tried.now += secs(9);
    assert!(matches!(tried.next(), DeskStep::Wait(Some(_))));
    let mut c = tried.ask("c");
    let note = tried.created(&["a", "b", "c"]);
    assert_eq!(tried.now.duration_since(began), secs(19), "ten seconds after the last one");
    tried.looks_at(&note);
    tried.ends(&note, &["b", "a"]);
    assert_eq!([told(&mut a), told(&mut b)], [answer("a"), answer("b")]);
    assert_eq!(told(&mut c), Some(Err("left out".to_owned())));
    assert!(tried.rests());
}

#[test]
fn nobody_is_waited_for_without_end_and_nothing_is_too_large() {
    let mut tried = Tried::new();
    let began = tried.now;
    let _first = tried.ask("a");
    tried.now += secs(55);
    let _later = tried.ask("b");
    tried.created(&["a", "b"]);
    assert_eq!(tried.now.duration_since(began), secs(60));

    let mut tried = Tried::new();
    let _by_number: Vec<Told> = ["a", "b", "c", "d"].iter().map(|id| tried.ask(id)).collect();
    let at = tried.now;
    tried.created(&["a", "b", "c"]);
    assert_eq!(tried.now, at, "a full batch waits for nobody");
    let _by_size = [tried.ask_at_length("e", 90), tried.ask_at_length("f", 200), tried.ask("g")];
    for ids in [["d", "e"].as_slice(), &["f"], &["g"]] {
        tried.created(ids);
    }
}

#[test]
fn whoever_goes_before_a_batch_is_sent_is_not_in_it() {
    let mut tried = Tried::new();
    drop(tried.ask("a"));
    let _stays = tried.ask("b");
    tried.created(&["b"]);
    drop(tried.ask("c"));
    tried.now += secs(10);
    assert!(!matches!(tried.next(), DeskStep::Create(..)));
}

#[test]
fn looks_become_rarer_and_end_when_nobody_waits() {
    let mut tried = Tried::new();
    let asked = tried.ask("a");
    let note = tried.created(&["a"]);
    let mut pauses = Vec::new();
    for _ in 0..5 {
        let before = tried.now;
        tried.looks_at(&note);
        pauses.push(tried.now.duration_since(before).as_secs());
    }
    assert_eq!(pauses, [20, 20, 30, 40, 40]);
    drop(asked);
    tried.now += secs(40);
    assert!(tried.rests(), "it goes on at the provider all the same");
    let mut again = tried.ask("a");
    tried.looks_at(&note);
    tried.ends(&note, &["a"]);
    assert_eq!(told(&mut again), answer("a"));
}

#[test]
fn a_batch_of_an_earlier_process_is_waited_for_and_asked_nothing_twice() {
    let mut tried = Tried::new();
    let mut note = BatchNote::new(scope(), vec!["a".to_owned(), "b".to_owned()], Timestamp::UNIX_EPOCH);
    note.id = Some("batch_1".to_owned());
    tried.desk.know(note.clone(), tried.now);
    assert!(tried.rests(), "nobody waits for it");
    let (mut a, mut c) = (tried.ask("a"), tried.ask("c"));
    tried.creates(&["c"]);
    tried.looks_at(&note);
    tried.ends(&note, &["a", "b"]);
    assert_eq!(told(&mut a), answer("a"));
    let mut b = tried.ask("b");
    tried.looks_at(&note);
    tried.ends(&note, &["a", "b"]);
    assert_eq!((told(&mut b), told(&mut c)), (answer("b"), None));
}

#[test]
fn what_failed_in_a_batch_is_asked_anew_and_what_was_answered_is_not() {
    let mut tried = Tried::new();
    let (mut a, mut b) = (tried.ask("a"), tried.ask("b"));
    let note = tried.created(&["a", "b"]);
    tried.looks_at(&note);
    tried.ends(&note, &["a"]);
    assert_eq!((told(&mut a), told(&mut b)), (answer("a"), Some(Err("left out".to_owned()))));
    let (_a, _b) = (tried.ask("a"), tried.ask("b"));
    tried.creates(&["b"]);
    tried.looks_at(&note);
}

#[test]
fn who_comes_while_answers_are_read_is_told_by_the_next_look() {
    let mut tried = Tried::new();
    let mut a = tried.ask("a");
    let note = tried.created(&["a"]);
    tried.looks_at(&note);
    let wanted = tried.desk.wanted(&note.name);
    let mut late = tried.ask("a");
    tried.desk.ended(&note.name, wanted, &failure("left out"), tried.now);
    assert_eq!((told(&mut a), told(&mut late)), (Some(Err("left out".into())), Some(Err("left out".into()))));

    let mut tried = Tried::new();
    let mut note = BatchNote::new(scope(), vec!["a".to_owned(), "b".to_owned()], Timestamp::UNIX_EPOCH);
    note.id = Some("batch_1".to_owned());
    tried.desk.know(note.clone(), tried.now);
    let _a = tried.ask("a");
    tried.looks_at(&note);
    let wanted = tried.desk.wanted(&note.name);
    let mut late = tried.ask("b");
    tried.desk.ended(&note.name, wanted, &failure("left out"), tried.now);
    assert_eq!(told(&mut late), None);
    tried.looks_at(&note);
}

#[test]
fn a_creation_that_was_cut_off_is_looked_for() {
    for found in [true, false] {
        let mut tried = Tried::new();
        let note = BatchNote::new(scope(), vec!["a".to_owned()], Timestamp::UNIX_EPOCH);
        tried.desk.know(note.clone(), tried.now);
        let _a = tried.ask("a");
        let DeskStep::Find(name) = tried.wait() else { panic!("it is not looked for") };
        assert_eq!(name, note.name);
        let known = tried.desk.found(&name, found.then(|| "batch_7".to_owned()), tried.now);
        assert_eq!(known.is_some(), found);
        match known {
            Some(note) => tried.looks_at(&note),
            None => drop(tried.created(&["a"])),
        }
    }
}

#[test]
fn a_batch_that_was_not_created_fails_its_questions() {
    for may_exist in [true, false] {
        let mut tried = Tried::new();
        let mut a = tried.ask("a");
        let note = tried.creates(&["a"]);
        let not_created = NotCreated { error: failure("busy"), may_exist };
        tried.desk.not_created(&note.name, &not_created, tried.now);
        assert_eq!(told(&mut a), Some(Err("busy".to_owned())));
        let _again = tried.ask("a");
        match tried.wait() {
            DeskStep::Find(name) => assert!(may_exist && name == note.name),
            DeskStep::Create(..) => assert!(!may_exist),
            step => panic!("{step:?}"),
        }
    }
}

#[test]
fn a_batch_that_its_provider_forgot_is_asked_again_and_a_refusal_is_told() {
    let mut tried = Tried::new();
    let mut a = tried.ask("a");
    let note = tried.created(&["a"]);
    tried.looks_at(&note);
    tried.desk.unknown(&note.name, tried.now);
    let note = tried.created(&["a"]);
    tried.looks_at(&note);
    tried.desk.refused(&note.name, &failure("who are you?"));
    assert_eq!(told(&mut a), Some(Err("who are you?".to_owned())));
    let _again = tried.ask("a");
    tried.looks_at(&note);
}

#[test]
fn only_batches_of_a_run_that_is_over_are_cancelled() {
    let mut tried = Tried::new();
    let asked = tried.ask("a");
    let under_way = tried.created(&["a"]);
    let gathered = tried.ask("b");
    drop((asked, gathered));
    tried.now += secs(100);
    assert!(tried.rests(), "those who waited may come back");
    let _c = tried.ask("c");
    let creating = tried.creates(&["c"]);
    let _d = tried.ask("d");
    tried.desk.over(tried.now);
    let DeskStep::Cancel { name, id } = tried.next() else { panic!("it is not cancelled") };
    assert_eq!((&name, Some(&id)), (&under_way.name, under_way.id.as_ref()));
    tried.desk.forget(&name);
    assert!(tried.rests(), "what was gathered is asked no more");
    tried.desk.created(&creating.name, "batch_2".to_owned(), tried.now);
    let DeskStep::Cancel { name, .. } = tried.next() else { panic!("it is not cancelled") };
    assert_eq!(name, creating.name);
    // It could not be cancelled, so it is tried again.
    let DeskStep::Cancel { name, .. } = tried.wait() else { panic!("it is not cancelled") };
    tried.desk.forget(&name);
    let _again = tried.ask("a");
    tried.creates(&["a"]);
}

#[test]
fn what_a_batch_leaves_is_deleted_once_its_run_is_over_and_it_has_ended() {
    let mut tried = Tried::new();
    let mut a = tried.ask("a");
    let ended = tried.created(&["a"]);
    tried.looks_at(&ended);
    tried.ends(&ended, &["a"]);
    assert_eq!(told(&mut a), answer("a"));
    tried.now += secs(100);
    assert!(tried.rests(), "whoever asks again finds the answer");
    assert!(tried.desk.over(tried.now), "nobody clears away yet");
    assert!(!tried.desk.over(tried.now), "somebody does");
    tried.discards(&ended);
    assert!(tried.desk.needless_at().is_some());
    tried.desk.forget(&ended.name);
    assert_eq!(tried.desk.needless_at(), None);
    assert!(tried.rests());
    assert!(tried.desk.over(tried.now), "it was through");

    let mut tried = Tried::new();
    let _b = tried.ask("b");
    let under_way = tried.created(&["b"]);
    tried.desk.over(tried.now);
    let DeskStep::Cancel { name, .. } = tried.next() else { panic!("it is not cancelled") };
    let cancelled_at = tried.now;
    tried.desk.ending(&name, false, tried.now);
    tried.discards(&under_way);
    assert_eq!(tried.now.duration_since(cancelled_at), RULES.look_first);
    // It had not ended.
    tried.discards(&under_way);
    // As if it had ended before it could be cancelled.
    let seen_at = tried.now;
    tried.desk.ending(&name, true, tried.now);
    tried.discards(&under_way);
    assert_eq!(tried.now, seen_at);
}

#[test]
fn nothing_is_cleared_away_without_end() {
    let mut tried = Tried::new();
    let _a = tried.ask("a");
    let note = tried.created(&["a"]);
    tried.desk.over(tried.now);
    let mut tries = 0;
    loop {
        match tried.wait() {
            DeskStep::Cancel { .. } => tries += 1,
            DeskStep::GiveUp(name) => break tried.desk.forget(&name),
            step => panic!("{step:?} for {note:?}"),
        }
    }
    assert_eq!(tries, CLEAR_TRIES_MAX);
    assert!(tried.rests());
}
