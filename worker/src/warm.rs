//! Which dialogue starts next, and at which server, so that servers find first prompts in their prefix caches.
//!
//! The dialogues of a case begin with the same prompt, unless the question seed has a part in it, and a server that
//! has read a prompt before reads it again at a fraction of the cost. So one dialogue of a case goes first, the others
//! follow when its answer begins, and all of them go to its server.
//!
//! A plain state machine, one per model of a run. It only puts in order what could start now: as long as a dialogue
//! waits and a server has room, one starts. So no server is idle for the sake of its cache, and a run ends no later:
//! whatever is left at its end goes wherever there is room.
//!
//! Servers do not say what their caches hold; that is guessed from what was sent.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use models::{CallStage, Progress};
use tokio::time::Instant;

use crate::servers::ServerKey;

/// Cases remembered per server, those that were asked last. The 200 000 tokens that an 8B model has room for on an L40S
/// are so many prompts of 3 000 tokens.
pub const CASES_KEPT_MAX: usize = 64;

/// A first prompt counts as read after this time, even if its answer has not begun: a server that takes longer is busy,
/// and comes to this prompt before those that are sent now.
pub const READING_MAX: Duration = Duration::from_secs(2);

/// Waiting leases that are looked at for one start, oldest first. More are held where hundreds of dialogues start at
/// once; looking at all of them for each would cost more than it finds.
pub const WAITING_SEEN_MAX: usize = 16;

/// The case of a dialogue: which task of the run, and which of its cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CaseAsked {
    pub task: usize,
    pub case: usize,
}

/// Dialogues of one lease that wait, as far as the choice depends on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingCase {
    /// The case of the next one; `None` if it is not known.
    pub case: Option<CaseAsked>,
    /// How many they are.
    pub left: usize,
}

/// A server that can take a dialogue now.
#[derive(Clone, Copy, Debug)]
pub struct ServerRoom<'s> {
    pub server: &'s ServerKey,
    /// How many it can take.
    pub free: u32,
}

/// What starts next: places among the leases that wait and among the servers with room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextStart {
    pub waiting: usize,
    pub server: usize,
}

/// What a server knows of the first prompt of a dialogue, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PromptHeat {
    /// It has read it.
    Read,
    /// Nothing, and no other server does: this would be the first dialogue of its case.
    New,
    /// It is reading it.
    BeingRead,
    /// Nothing, but another server does.
    Elsewhere,
}

/// How well the start of a waiting dialogue at a server fits; the least is the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct StartRank {
    heat: PromptHeat,
    /// Dialogues that will find the prompt, where it is read once more than need be.
    followers: Reverse<usize>,
    waiting: usize,
    free: Reverse<u32>,
    server: usize,
}

/// A case at a server.
#[derive(Debug)]
struct CaseSent {
    /// The first dialogue and when it started, until its answer begins.
    first: Option<(Instant, Progress)>,
    /// Number of its latest dialogue among all that the server got.
    latest: u64,
}

impl CaseSent {
    /// Notes whether the first prompt was read; false if its dialogue failed before.
    fn look(&mut self, now: Instant) -> bool {
        let Some((started, progress)) = &self.first else { return true };
        match progress.latest() {
            Some((_, CallStage::Failed)) => return false,
            // The headers of a stream come before its first token.
            Some((_, CallStage::Answered)) if progress.silent_since().is_none() => {}
            _ if now.duration_since(*started) >= READING_MAX => {}
            _ => return true,
        }
        self.first = None;
        true
    }
}

/// The cases that a server was asked.
#[derive(Debug, Default)]
struct CasesSent {
    cases: BTreeMap<CaseAsked, CaseSent>,
    dialogues: u64,
}

/// What the servers of a model were asked in one run.
#[derive(Debug, Default)]
pub struct Warmth {
    servers: BTreeMap<ServerKey, CasesSent>,
}

impl Warmth {
    /// Chooses what starts next. `None` only if nothing waits or no server has room.
    ///
    /// Dialogues come last whose prompt is known to servers without room alone, and of these those with the most others
    /// to follow: the prompt is read once more in any case, and then serves as many as possible.
    pub fn choose(
        &mut self,
        waiting: impl IntoIterator<Item = WaitingCase>,
        rooms: &[ServerRoom<'_>],
        now: Instant,
    ) -> Option<NextStart> {
        let mut best: Option<StartRank> = None;
        for (place, WaitingCase { case, left }) in waiting.into_iter().take(WAITING_SEEN_MAX).enumerate() {
            let is_new = case.is_none_or(|case| self.look(case, now));
            for (server, room) in rooms.iter().enumerate() {
                let heat = case.map_or(PromptHeat::New, |case| self.heat(room.server, case, is_new));
                let followers = if heat == PromptHeat::Elsewhere { left } else { 0 };
                let rank = StartRank {
                    heat,
                    followers: Reverse(followers),
                    waiting: place,
                    free: Reverse(room.free),
                    server,
                };
                best = Some(best.map_or(rank, |best| best.min(rank)));
            }
            if best.is_some_and(|best| best.heat == PromptHeat::Read) {
                break; // Those that have waited less are no better.
            }
        }
        best.map(|StartRank { waiting, server, .. }| NextStart { waiting, server })
    }

    /// Looks what has become of the first dialogues of a case; returns whether no server was asked it. Where the first
    /// one failed, the next is the first.
    fn look(&mut self, case: CaseAsked, now: Instant) -> bool {
        for server in self.servers.values_mut() {
            let has_failed = server.cases.get_mut(&case).is_some_and(|sent| !sent.look(now));
            if has_failed {
                server.cases.remove(&case);
            }
        }
        self.is_new(case)
    }

    fn heat(&self, server: &ServerKey, case: CaseAsked, is_new: bool) -> PromptHeat {
        match self.servers.get(server).and_then(|server| server.cases.get(&case)) {
            Some(CaseSent { first: None, .. }) => PromptHeat::Read,
            Some(CaseSent { first: Some(_), .. }) => PromptHeat::BeingRead,
            None if is_new => PromptHeat::New,
            None => PromptHeat::Elsewhere,
        }
    }

    /// Whether no server was asked a case.
    pub fn is_new(&self, case: CaseAsked) -> bool {
        self.servers.values().all(|server| !server.cases.contains_key(&case))
    }

    /// A dialogue of a case was started at a server.
    pub fn sent(&mut self, server: &ServerKey, case: CaseAsked, progress: &Progress, now: Instant) {
        let server = self.servers.entry(server.clone()).or_default();
        server.dialogues += 1;
        let latest = server.dialogues;
        let first = || CaseSent { first: Some((now, progress.clone())), latest };
        server.cases.entry(case).or_insert_with(first).latest = latest;
        if server.cases.len() > CASES_KEPT_MAX {
            let oldest = server.cases.iter().min_by_key(|(_, sent)| sent.latest).map(|(case, _)| *case);
            if let Some(oldest) = oldest {
                server.cases.remove(&oldest);
            }
        }
    }

    /// Forgets all servers but these: one that comes back has read nothing.
    pub fn keep(&mut self, servers: &[ServerKey]) {
        self.servers.retain(|server, _| servers.contains(server));
    }
}

#[cfg(test)]
mod tests;
