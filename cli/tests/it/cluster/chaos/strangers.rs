//! Coordinators that come with another queue than the records are served with, and queues that come back from before: they
//! must be refused.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use super::fleet::Fleet;
use super::plan::{Fault, Planned};
use crate::harness::process::kgfleet;
use crate::harness::wait_until;

/// How long a queue is away before it comes back, at least, and at most: in between, a coordinator must have gone on
/// without it.
const AWAY_FOR: Duration = Duration::from_secs(2);
const AWAY_MAX: Duration = Duration::from_secs(8);

/// How long a stranger may wait for an answer before it is sent away.
const STAYS_FOR: Duration = Duration::from_secs(8);

/// A coordinator that should be refused.
struct Stranger {
    child: Child,
    log: PathBuf,
    until: Instant,
    is_of_older_queue: bool,
}

/// An older queue.
enum Older {
    /// It is put aside since then, and the coordinators go on with an empty one.
    Aside(Instant),
    /// It is in the place of the newer one.
    Back,
}

/// See the module.
#[derive(Default)]
pub struct Strangers {
    here: Vec<Stranger>,
    older: Option<Older>,
    started: u64,
    /// Strangers that came, and those that were told why they are refused.
    pub came: u64,
    pub refused: u64,
    /// Older queues that came back.
    pub back: u64,
    /// What went wrong, in words.
    pub wrong: Vec<String>,
}

impl Strangers {
    /// Lets another or an older queue come; when that is over.
    pub fn hit(&mut self, planned: &Planned, fleet: &mut Fleet, now: Instant) -> Option<Instant> {
        if planned.fault == Fault::OtherQueue {
            let url = fleet.redis().other_url();
            self.start(fleet, &url, now, false);
            return Some(now);
        }
        if self.older.is_some() || !fleet.has_sound_redis(now) {
            return None;
        }
        // A queue that lost everything a moment ago is no older one: whoever meets it may bind it.
        let accepted = accepted(fleet)?;
        if fleet.trouble_redis(now).number() != Some(accepted) {
            return None;
        }
        fleet.trouble_redis(now + AWAY_MAX + STAYS_FOR).put_aside()?;
        self.older = Some(Older::Aside(now));
        Some(now + AWAY_FOR + STAYS_FOR)
    }

    /// Whether every coordinator sees the newest queue. One with another queue that finds a folder from which the records are
    /// just being removed takes it for a new one.
    pub fn is_queue_right(&self) -> bool {
        self.older.is_none() && self.here.is_empty()
    }

    fn start(&mut self, fleet: &Fleet, queue: &str, now: Instant, is_of_older_queue: bool) {
        self.started += 1;
        let log = fleet.at(&format!("stranger-{}.log", self.started));
        let mut command = kgfleet();
        command.args(fleet.arguments_of_stranger(queue));
        command.args(["--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"]);
        command.stdout(Stdio::null()).stderr(File::create(&log).unwrap());
        let child = command.spawn().unwrap();
        self.came += 1;
        self.here.push(Stranger { child, log, until: now + STAYS_FOR, is_of_older_queue });
    }

    /// Hears what strangers were told, and goes on with an older queue.
    pub fn tend(&mut self, fleet: &mut Fleet, now: Instant) {
        let mut here = std::mem::take(&mut self.here);
        here.retain_mut(|stranger| {
            let has_ended = stranger.child.try_wait().unwrap().is_some();
            if !has_ended && now < stranger.until {
                return true;
            }
            self.dismiss(stranger);
            false
        });
        self.here = here;
        match &self.older {
            Some(Older::Aside(since)) if now >= *since + AWAY_FOR => self.come_back(fleet, *since, now),
            Some(Older::Back) if self.here.iter().all(|stranger| !stranger.is_of_older_queue) => {
                self.older = None;
                if fleet.trouble_redis(now).exchange().is_none() {
                    self.older = Some(Older::Back);
                }
            }
            _ => {}
        }
    }

    /// The older queue comes back, once the coordinators have gone on without it.
    fn come_back(&mut self, fleet: &mut Fleet, since: Instant, now: Instant) {
        let accepted = accepted(fleet);
        assert!(accepted.is_some(), "coordinators write down which queue they serve");
        let redis = fleet.trouble_redis(now + STAYS_FOR);
        if accepted.is_none() || redis.number() != accepted {
            if now >= since + AWAY_MAX {
                self.older = None;
            }
            return;
        }
        self.older = redis.exchange().map(|()| Older::Back);
        if self.older.is_some() {
            self.back += 1;
            let url = redis.url();
            self.start(fleet, &url, now, true);
        }
    }

    fn dismiss(&mut self, stranger: &mut Stranger) {
        let _ = stranger.child.kill();
        let code = stranger.child.wait().unwrap().code();
        let said = fs::read_to_string(&stranger.log).unwrap_or_default();
        if said.contains("serving on") {
            self.wrong.push(format!("a coordinator with a wrong queue serves: {said}"));
        }
        if said.contains("panicked") || code.is_some_and(|code| !matches!(code, 0 | 3)) {
            self.wrong.push(format!("a coordinator with a wrong queue ended with {code:?}: {said}"));
        }
        self.refused += u64::from(code == Some(3) && said.contains("--adopt-queue"));
    }

    /// Ends all of it.
    pub fn end(&mut self, fleet: &mut Fleet) {
        for mut stranger in std::mem::take(&mut self.here) {
            self.dismiss(&mut stranger);
        }
        if matches!(self.older.take(), Some(Older::Back)) {
            let redis = fleet.trouble_redis(Instant::now());
            wait_until("the newer queue is back", || redis.exchange().is_some());
        }
    }
}

/// The number of the queue that the records are served with.
fn accepted(fleet: &Fleet) -> Option<u64> {
    let mut found = None;
    for revision in 1_u64.. {
        let name =
            if revision == 1 { "queue.json.json".to_owned() } else { format!("queue.json-{revision}.json") };
        let Ok(text) = fs::read(fleet.data().join(name)) else { break };
        let document: serde_json::Value = serde_json::from_slice(&text).ok()?;
        found = document["generation"].as_u64();
    }
    found
}
