//! Single choices, and a whole run over four servers.

use std::collections::{BTreeSet, VecDeque};

use domain::exchange::UNIT_DIALOGUES_MAX;
use domain::seed::SplitMix64;

use super::*;

fn server(number: usize) -> ServerKey {
    ServerKey::Found { endpoint: format!("http://server-{number}"), model: "m".to_owned() }
}

fn case(case: usize) -> CaseAsked {
    CaseAsked { task: 0, case }
}

/// Servers that may take so many dialogues each, and what they were asked.
struct WarmGround {
    warmth: Warmth,
    servers: Vec<ServerKey>,
    now: Instant,
}

impl WarmGround {
    fn of(servers: usize) -> Self {
        Self { warmth: Warmth::default(), servers: (0..servers).map(server).collect(), now: Instant::now() }
    }

    /// Starts a dialogue of a case.
    fn sent(&mut self, server: usize, of: usize) -> Progress {
        let progress = Progress::default();
        progress.sent();
        self.warmth.sent(&self.servers[server], case(of), &progress, self.now);
        progress
    }

    /// Starts one whose answer begins at once.
    fn read(&mut self, server: usize, of: usize) {
        self.sent(server, of).token();
    }

    /// The case and the server of the next dialogue, where these cases wait with so many dialogues each and the servers
    /// have so much room.
    fn next(&mut self, waiting: &[(usize, usize)], free: &[u32]) -> Option<(usize, usize)> {
        let cases = waiting.iter().map(|&(of, left)| WaitingCase { case: Some(case(of)), left });
        let places: Vec<usize> = (0..free.len()).filter(|place| free[*place] > 0).collect();
        let room = |place: &usize| ServerRoom { server: &self.servers[*place], free: free[*place] };
        let rooms: Vec<ServerRoom<'_>> = places.iter().map(room).collect();
        let NextStart { waiting: next, server } = self.warmth.choose(cases, &rooms, self.now)?;
        Some((waiting[next].0, places[server]))
    }
}

#[test]
fn the_others_of_a_case_follow_when_its_first_answer_begins() {
    let mut ground = WarmGround::of(1);
    assert_eq!(ground.next(&[(0, 10), (1, 10)], &[8]), Some((0, 0)));
    let first = ground.sent(0, 0);
    assert_eq!(ground.next(&[(0, 9), (1, 10)], &[8]), Some((1, 0)), "another case is begun meanwhile");
    first.met(CallStage::Answered);
    assert_eq!(ground.next(&[(0, 9), (1, 10)], &[8]), Some((1, 0)), "these were its headers alone");
    assert_eq!(ground.next(&[(0, 9)], &[8]), Some((0, 0)), "nothing else could start");
    first.token();
    assert_eq!(ground.next(&[(1, 10), (0, 9)], &[8]), Some((0, 0)));
    first.sent();
    assert_eq!(ground.next(&[(1, 10), (0, 9)], &[8]), Some((0, 0)), "that is its follow-up");
    assert_eq!((ground.next(&[], &[8]), ground.next(&[(0, 9)], &[0])), (None, None));
}

#[test]
fn a_first_dialogue_that_fails_or_says_nothing_holds_nothing_up() {
    let mut ground = WarmGround::of(2);
    let first = ground.sent(0, 0);
    assert_eq!(ground.next(&[(0, 9), (1, 10)], &[1, 1]), Some((1, 0)));
    ground.now += READING_MAX;
    assert_eq!(ground.next(&[(1, 10), (0, 9)], &[1, 1]), Some((0, 0)));
    first.met(CallStage::Failed);
    assert_eq!(ground.next(&[(0, 9)], &[1, 2]), Some((0, 0)), "its prompt was read before");
    ground.sent(0, 2).met(CallStage::Failed);
    assert!(!ground.warmth.is_new(case(2)));
    assert_eq!(ground.next(&[(2, 9)], &[1, 2]), Some((2, 1)), "the next one is the first");
    assert!(ground.warmth.is_new(case(2)));
}

#[test]
fn a_case_stays_at_its_server_unless_another_one_would_be_idle() {
    let mut ground = WarmGround::of(3);
    ground.read(0, 0);
    ground.read(1, 1);
    assert_eq!(ground.next(&[(0, 9), (1, 9)], &[1, 8, 8]), Some((0, 0)));
    assert_eq!(ground.next(&[(0, 9), (1, 9)], &[0, 1, 8]), Some((1, 1)));
    assert_eq!(ground.next(&[(0, 9), (1, 9), (2, 10)], &[0, 0, 8]), Some((2, 2)), "a case of its own");
    assert_eq!(ground.next(&[(0, 3), (1, 9)], &[0, 0, 8]), Some((1, 2)), "the one with more to follow");
    ground.read(2, 1);
    assert_eq!(ground.next(&[(0, 3), (1, 8)], &[0, 1, 8]), Some((1, 2)), "both know it; this has more room");
}

#[test]
fn the_oldest_lease_is_first_among_equals_and_far_ones_are_not_looked_at() {
    let mut ground = WarmGround::of(1);
    let new: Vec<(usize, usize)> = (0..WAITING_SEEN_MAX + 1).map(|of| (of, 10)).collect();
    assert_eq!(ground.next(&new, &[1]), Some((0, 0)));
    ground.read(0, WAITING_SEEN_MAX);
    assert_eq!(ground.next(&new, &[1]), Some((0, 0)));
    assert_eq!(ground.next(&new[1..], &[1]), Some((WAITING_SEEN_MAX, 0)));
    let unknown = WaitingCase { case: None, left: 1 };
    let rooms = [ServerRoom { server: &ground.servers[0], free: 1 }];
    let next = ground.warmth.choose([unknown], &rooms, ground.now);
    assert_eq!(next, Some(NextStart { waiting: 0, server: 0 }), "whoever starts it says what is wrong");
}

#[test]
fn the_cases_asked_last_are_remembered_of_the_servers_that_are_there() {
    let mut ground = WarmGround::of(2);
    for of in 0..CASES_KEPT_MAX {
        ground.read(0, of);
    }
    ground.read(0, 0);
    ground.read(0, CASES_KEPT_MAX);
    let forgotten: Vec<usize> = (0..=CASES_KEPT_MAX).filter(|of| ground.warmth.is_new(case(*of))).collect();
    assert_eq!(forgotten, [1]);
    ground.warmth.keep(&[server(1)]);
    assert!(ground.warmth.is_new(case(0)));
}

/// Servers of the played run, and dialogues that each takes at once.
const SERVERS: usize = 4;
const AT_ONCE: u32 = 8;

/// Milliseconds to the first token of a prompt that a server was sent before, and of another one.
const READ_AGAIN_MS: u64 = 20;
const READ_MS: u64 = 400;

/// A unit of the played run.
#[derive(Clone, Copy)]
struct PlayedUnit {
    number: u64,
    case: CaseAsked,
    left: usize,
    /// Whether each dialogue has a prompt of its own.
    drawn: bool,
}

/// The units of a model that is asked the 26 tasks of the built-in pack 50 times each: 14 have five cases, 12 have one,
/// and the prompts of eight are drawn from the question seed.
fn units() -> VecDeque<PlayedUnit> {
    let mut units = VecDeque::new();
    for task in 0..26 {
        let cases = if task < 14 { 5 } else { 1 };
        for case in 0..cases {
            for _ in 0..5 / cases {
                let number = units.len() as u64;
                let (case, left) = (CaseAsked { task, case }, UNIT_DIALOGUES_MAX as usize);
                units.push_back(PlayedUnit { number, case, left, drawn: task >= 18 });
            }
        }
    }
    units
}

/// How the played run is placed.
enum PlayedChoice {
    Warm(Warmth),
    AtRandom(SplitMix64),
}

impl PlayedChoice {
    fn next(&mut self, waiting: &[PlayedUnit], rooms: &[ServerRoom<'_>], now: Instant) -> NextStart {
        match self {
            Self::Warm(warmth) => {
                let cases = waiting.iter().map(|unit| WaitingCase { case: Some(unit.case), left: unit.left });
                warmth.choose(cases, rooms, now).expect("no server is idle while a dialogue waits")
            }
            Self::AtRandom(chance) => {
                NextStart { waiting: 0, server: (chance.next_u64() % rooms.len() as u64) as usize }
            }
        }
    }

    fn sent(&mut self, server: &ServerKey, case: CaseAsked, progress: &Progress, now: Instant) {
        if let Self::Warm(warmth) = self {
            warmth.sent(server, case, progress, now);
        }
    }

    fn lacks_cases(&self, waiting: &[PlayedUnit]) -> bool {
        match self {
            Self::Warm(warmth) => !waiting.iter().any(|unit| warmth.is_new(unit.case)),
            Self::AtRandom(_) => false,
        }
    }
}

enum PlayedEvent {
    FirstToken(Progress),
    Ended(usize),
}

/// A run in a time of its own.
struct PlayedRun {
    choice: PlayedChoice,
    units: VecDeque<PlayedUnit>,
    waiting: Vec<PlayedUnit>,
    in_flight: [u32; SERVERS],
    /// The cases that each server was sent.
    sent: [BTreeSet<CaseAsked>; SERVERS],
    /// By milliseconds and a number that no two of them share.
    events: BTreeMap<(u64, u64), PlayedEvent>,
    numbered: u64,
    now_ms: u64,
    /// Dialogues whose prompt their server was sent before.
    hits: usize,
}

impl PlayedRun {
    /// Plays it to its end.
    fn play(choice: PlayedChoice) -> Self {
        let mut run = Self {
            choice,
            units: units(),
            waiting: Vec::new(),
            in_flight: [0; SERVERS],
            sent: Default::default(),
            events: BTreeMap::new(),
            numbered: 0,
            now_ms: 0,
            hits: 0,
        };
        let (servers, begun): (Vec<ServerKey>, _) = ((0..SERVERS).map(server).collect(), Instant::now());
        loop {
            run.lease();
            while run.start(&servers, begun) {}
            let Some(((now_ms, _), event)) = run.events.pop_first() else { return run };
            run.now_ms = now_ms;
            match event {
                PlayedEvent::FirstToken(progress) => progress.token(),
                PlayedEvent::Ended(server) => run.in_flight[server] -= 1,
            }
        }
    }

    /// Leases units as the work loop does: a unit ahead for each server, as far as its limit goes.
    fn lease(&mut self) {
        let free: u32 = self.in_flight.iter().map(|in_flight| AT_ONCE - in_flight).sum();
        let ahead = AT_ONCE.min(UNIT_DIALOGUES_MAX) as usize * SERVERS;
        let held: usize = self.waiting.iter().map(|unit| unit.left).sum();
        let mut room = (free as usize + ahead).saturating_sub(held);
        if room >= ahead / 2 || held == 0 || self.choice.lacks_cases(&self.waiting) {
            while room > 0
                && let Some(unit) = self.units.pop_front()
            {
                self.waiting.push(unit);
                room = room.saturating_sub(unit.left);
            }
        }
    }

    /// Starts a dialogue; false if none waits or there is no room.
    fn start(&mut self, servers: &[ServerKey], begun: Instant) -> bool {
        let places: Vec<usize> = (0..SERVERS).filter(|place| self.in_flight[*place] < AT_ONCE).collect();
        if places.is_empty() || self.waiting.is_empty() {
            return false;
        }
        let room =
            |place: &usize| ServerRoom { server: &servers[*place], free: AT_ONCE - self.in_flight[*place] };
        let rooms: Vec<ServerRoom<'_>> = places.iter().map(room).collect();
        let now = begun + Duration::from_millis(self.now_ms);
        let next = self.choice.next(&self.waiting, &rooms, now);
        let server = places[next.server];
        let unit = &mut self.waiting[next.waiting];
        let PlayedUnit { number, case, left, drawn } = *unit;
        unit.left -= 1;
        if unit.left == 0 {
            self.waiting.remove(next.waiting);
        }
        let hit = !self.sent[server].insert(case) && !drawn;
        self.hits += usize::from(hit);
        self.in_flight[server] += 1;
        let progress = Progress::default();
        progress.sent();
        self.choice.sent(&servers[server], case, &progress, now);
        // How long an answer takes depends on its dialogue alone.
        let answer_ms = 2_000 + SplitMix64::mix(number * 100 + left as u64) % 8_000;
        let token_ms = self.now_ms + if hit { READ_AGAIN_MS } else { READ_MS };
        self.happens(token_ms, PlayedEvent::FirstToken(progress));
        self.happens(token_ms + answer_ms, PlayedEvent::Ended(server));
        true
    }

    fn happens(&mut self, at_ms: u64, event: PlayedEvent) {
        self.numbered += 1;
        self.events.insert((at_ms, self.numbered), event);
    }
}

#[test]
fn four_servers_find_nearly_every_prompt_that_can_be_found_and_end_no_later() {
    let drawn = |unit: &PlayedUnit| unit.drawn;
    let (dialogues, cases): (usize, BTreeSet<CaseAsked>) = (
        units().iter().filter(|unit| !drawn(unit)).map(|unit| unit.left).sum(),
        units().iter().filter(|unit| !drawn(unit)).map(|unit| unit.case).collect(),
    );
    let reachable = dialogues - cases.len();
    let warm = PlayedRun::play(PlayedChoice::Warm(Warmth::default()));
    let random = PlayedRun::play(PlayedChoice::AtRandom(SplitMix64::new(1)));
    assert!(warm.hits * 100 >= reachable * 95, "{} of {reachable}", warm.hits);
    assert!(random.hits * 100 < reachable * 80, "{} of {reachable} by chance", random.hits);
    assert!(warm.now_ms <= random.now_ms, "{} ms, by chance {} ms", warm.now_ms, random.now_ms);
}
