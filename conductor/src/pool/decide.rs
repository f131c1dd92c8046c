//! Which servers to start, and which to give up. The rules, in the order in which they are asked:
//!
//! 1. Nothing is started before coordinators have said what there is to do, or on what they said long ago.
//! 2. A pool with work, without a server and not waiting after a failure gets one: the longest first.
//! 3. The first that does not fit has the GPUs from when they are expected to be free; others start before that only if they
//!    end before that, or on GPUs that it will not need (backfilling as in Lifka, *The ANL/IBM SP scheduling system*, 1995).
//! 4. A server of several nodes is started only when no other one waits for nodes, so that no two hold half of what they need;
//!    for [`TURN`] nobody else is put on nodes meanwhile. One that waits for too long is given up. Where something admits servers
//!    whole, neither is needed.
//! 5. A further server of a pool is started only when no pool waits for its first, and only where it makes the end come sooner
//!    by more than it takes to be worth it.
//! 6. Nothing is started that would, as far as is known, take more GPU-hours than the budget.
//! 7. A server that works is never ended: it ends by itself when nothing is left.

use std::time::Duration;

use crate::pool::failures::NextTry;
use crate::pool::view::{PoolNeed, PoolServer, PoolServerPhase, PoolView, PoolsView};

/// For how long it counts what coordinators said.
pub const NEEDS_AGE_MAX: Duration = Duration::from_secs(60);

/// For how long others wait until a server of several nodes has its nodes and the next one its turn. Where these do not come
/// (other tenants, nodes that are still being made), the rest goes on.
pub const TURN: Duration = Duration::from_secs(60);

/// What a further server has to bring at least: so much, and so large a part of the time that is left.
pub const GAIN_MIN: Duration = Duration::from_secs(5 * 60);
const GAIN_SHARE_MIN: f64 = 0.1;

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Start a server of this pool.
    Start { pool: usize },
    /// Delete this server, which waits for nodes and holds others.
    GiveUp { pool: usize, number: u32 },
}

/// Why a pool with work has no server, or no further one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Wait {
    /// For GPUs, which are expected to be free then; `None` where there are never as many.
    Gpus { until: Option<Duration> },
    /// Another server of several nodes has to get its nodes first.
    Gang,
    /// It would take more GPU-hours than the budget has left.
    Budget,
    /// Its last server failed.
    Retry { until: Duration },
    /// Its servers failed too often, or cannot be used as they are configured.
    GivenUp,
}

/// What to do, and who waits for what, by pool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    pub acts: Vec<Act>,
    pub waits: Vec<(usize, Wait)>,
}

/// Decides. See the text of the module.
pub fn decide(view: &PoolsView<'_>) -> Decision {
    let mut decision = Decision { acts: given_up(view).collect(), waits: Vec::new() };
    let Some(needs) = view.needs.filter(|needs| view.now.saturating_sub(needs.read_at) <= NEEDS_AGE_MAX)
    else {
        return decision;
    };
    let mut planning = Planning::of(view, &needs.of);
    let mut first: Vec<usize> = Vec::new();
    for pool in 0..view.pools.len() {
        if planning.dialogues(pool) == 0 || planning.servers[pool] > 0 {
            continue;
        }
        match view.pools[pool].failures.next_try(view.now) {
            NextTry::Ready => first.push(pool),
            NextTry::Waits { until } => decision.waits.push((pool, Wait::Retry { until })),
            NextTry::GivenUp => decision.waits.push((pool, Wait::GivenUp)),
        }
    }
    planning.sort_longest_first(&mut first);
    let mut everybody_started = true;
    for pool in first {
        match planning.first_server(pool) {
            Ok(()) => decision.acts.push(Act::Start { pool }),
            Err(wait) => {
                everybody_started = false;
                decision.waits.push((pool, wait));
            }
        }
    }
    if everybody_started {
        let mut more: Vec<usize> =
            (0..view.pools.len()).filter(|pool| planning.may_have_more(*pool)).collect();
        planning.sort_longest_first(&mut more);
        decision.acts.extend(
            more.into_iter().filter(|pool| planning.further_server(*pool)).map(|pool| Act::Start { pool }),
        );
    }
    decision
}

/// Servers of several nodes that waited for too long (rule 4).
fn given_up<'a>(view: &'a PoolsView<'_>) -> impl Iterator<Item = Act> + 'a {
    let waits_too_long = |server: &&PoolServer| {
        is_waiting_gang(view, server)
            && view.now.saturating_sub(server.created_at) >= view.limits.gang_timeout
    };
    let give_up = |server: &PoolServer| Act::GiveUp { pool: server.pool, number: server.number };
    view.servers.iter().filter(waits_too_long).map(give_up)
}

/// Whether a server holds some of its nodes, perhaps, and waits for the others.
fn is_waiting_gang(view: &PoolsView<'_>, server: &PoolServer) -> bool {
    !view.limits.admits_whole
        && server.phase == PoolServerPhase::Unscheduled
        && view.pools.get(server.pool).is_some_and(|known| known.pool.is_gang())
}

/// A decision in the making.
struct Planning<'v> {
    view: &'v PoolsView<'v>,
    needs: &'v [Option<PoolNeed>],
    /// Servers that have not ended, by pool.
    servers: Vec<u32>,
    gpus_free: u32,
    /// When servers are expected to end, with their GPUs.
    ends: Vec<(Duration, u32)>,
    /// What the first that did not fit will have.
    reserved: Option<Reservation>,
    /// Since when a server has waited for its nodes, the latest of several.
    gang_waits_since: Option<Duration>,
    /// Whether everybody waits for a server of several nodes to have its turn.
    is_turn_awaited: bool,
    /// GPU-hours that were used, and those that the servers there are will use.
    gpu_hours: f64,
}

impl<'v> Planning<'v> {
    fn of(view: &'v PoolsView<'v>, needs: &'v [Option<PoolNeed>]) -> Self {
        let mut servers = vec![0; view.pools.len()];
        let mut gpus = 0;
        for server in view.servers {
            if let (Some(known), Some(count)) = (view.pools.get(server.pool), servers.get_mut(server.pool)) {
                *count += 1;
                gpus += known.pool.server_gpus();
            }
        }
        let mut planning = Self {
            view,
            needs,
            servers,
            gpus_free: view.limits.gpus.saturating_sub(gpus),
            ends: Vec::new(),
            reserved: None,
            gang_waits_since: (view.servers.iter())
                .filter(|server| is_waiting_gang(view, server))
                .map(|server| server.created_at)
                .max(),
            is_turn_awaited: false,
            gpu_hours: view.gpu_hours_used,
        };
        for server in view.servers {
            planning.count(server);
        }
        planning.gpu_hours += (0..view.pools.len())
            .filter(|pool| planning.servers[*pool] > 0)
            .map(|pool| planning.gpu_hours_of(pool, planning.work(pool)))
            .sum::<f64>();
        planning
    }

    /// Takes it into account when a server that there is will end, and what it still has to load.
    fn count(&mut self, server: &PoolServer) {
        let Some(known) = self.view.pools.get(server.pool) else { return };
        let load = match server.phase {
            PoolServerPhase::Unscheduled => known.pool.load,
            PoolServerPhase::Loading { since } => {
                known.pool.load.saturating_sub(self.view.now.saturating_sub(since))
            }
            PoolServerPhase::Serving => Duration::ZERO,
        };
        let shared = self.work(server.pool) / self.servers[server.pool].max(1);
        self.ends.push((self.view.now + load + shared, known.pool.server_gpus()));
        self.gpu_hours += self.gpu_hours_of(server.pool, load);
    }

    fn pool(&self, pool: usize) -> &'v PoolView {
        &self.view.pools[pool]
    }

    fn need(&self, pool: usize) -> PoolNeed {
        self.needs.get(pool).copied().flatten().unwrap_or_default()
    }

    /// Dialogues that a pool can ask now; none where that is not known.
    fn dialogues(&self, pool: usize) -> u64 {
        self.need(pool).now
    }

    /// How long one server of a pool would work, without loading.
    fn work(&self, pool: usize) -> Duration {
        let PoolNeed { now, rate } = self.need(pool);
        let rate = rate.filter(|rate| *rate > 0.0).unwrap_or(self.pool(pool).pool.rate);
        Duration::try_from_secs_f64(now as f64 / rate).unwrap_or(WORK_MAX).min(WORK_MAX)
    }

    /// GPU-hours of one server of a pool for so long.
    fn gpu_hours_of(&self, pool: usize, time: Duration) -> f64 {
        time.as_secs_f64() / 3600.0 * f64::from(self.pool(pool).pool.server_gpus())
    }

    /// How long the next server of a pool takes, if it does all that its pool has left.
    fn takes(&self, pool: usize) -> Duration {
        self.pool(pool).pool.load + self.work(pool)
    }

    fn sort_longest_first(&self, pools: &mut [usize]) {
        let key = |pool: &usize| (self.takes(*pool), self.pool(*pool).pool.server_gpus());
        pools.sort_by(|a, b| {
            key(b).cmp(&key(a)).then_with(|| self.pool(*a).pool.name.cmp(&self.pool(*b).pool.name))
        });
    }

    /// Starts the first server of a pool, or says why not.
    fn first_server(&mut self, pool: usize) -> Result<(), Wait> {
        let known = &self.pool(pool).pool;
        let (gpus, is_gang) = (known.server_gpus(), known.is_gang() && !self.view.limits.admits_whole);
        let takes = self.takes(pool);
        if !self.is_within_budget(self.gpu_hours_of(pool, takes)) {
            return Err(Wait::Budget);
        }
        if gpus > self.gpus_free {
            let reserved = *self.reserved.get_or_insert(Reservation::of(&self.ends, self.gpus_free, gpus));
            return Err(Wait::Gpus { until: reserved.from });
        }
        if let Some(reserved) = &mut self.reserved
            && reserved.from.is_some_and(|from| self.view.now + takes > from)
        {
            if gpus > reserved.spare {
                return Err(Wait::Gpus { until: reserved.from });
            }
            reserved.spare -= gpus;
        }
        if self.gang_waits_since.is_some() && is_gang {
            // Its turn comes within seconds, as a rule. Until then nobody else takes its GPUs, and for a while nobody is put on
            // nodes that it needs whole.
            self.gpus_free -= gpus;
            self.is_turn_awaited = self.gang_waits_since.is_some_and(|since| self.view.now < since + TURN);
            return Err(Wait::Gang);
        }
        if self.is_turn_awaited {
            return Err(Wait::Gang);
        }
        self.note_gang(is_gang);
        self.ends.push((self.view.now + takes, gpus));
        self.start(pool, takes);
        Ok(())
    }

    /// Whether a pool may have one server more than it has.
    fn may_have_more(&self, pool: usize) -> bool {
        let servers = self.servers[pool];
        let is_new = !self.view.servers.iter().any(|server| server.pool == pool);
        let known = self.pool(pool);
        servers > 0
            && !is_new
            && servers < known.pool.servers_max
            && known.failures.next_try(self.view.now) == NextTry::Ready
            && self.dialogues(pool) > 0
    }

    /// Starts a further server of a pool, if it is worth it and fits.
    fn further_server(&mut self, pool: usize) -> bool {
        let known = &self.pool(pool).pool;
        let is_gang = known.is_gang() && !self.view.limits.admits_whole;
        let fits = known.server_gpus() <= self.gpus_free && !(is_gang && self.gang_waits_since.is_some());
        if !fits || !self.is_worth_it(pool) || !self.is_within_budget(self.gpu_hours_of(pool, known.load)) {
            return false;
        }
        self.note_gang(is_gang);
        self.start(pool, known.load);
        true
    }

    /// Takes it into account that a server is started which waits for its nodes from now on.
    fn note_gang(&mut self, is_gang: bool) {
        if is_gang {
            self.gang_waits_since = Some(self.view.now);
        }
    }

    /// With `k` servers and `R` server-hours left, a further one, which loads first, makes the end come by
    /// `(R - k * load) / (k * (k + 1))` sooner.
    fn is_worth_it(&self, pool: usize) -> bool {
        let servers = f64::from(self.servers[pool]);
        let (left, load) = (self.work(pool).as_secs_f64(), self.pool(pool).pool.load.as_secs_f64());
        let gain = (left - servers * load) / (servers * (servers + 1.0));
        gain >= GAIN_MIN.as_secs_f64() && gain >= GAIN_SHARE_MIN * left / servers
    }

    fn is_within_budget(&self, more: f64) -> bool {
        self.view.limits.gpu_hours.is_none_or(|budget| self.gpu_hours + more <= budget)
    }

    /// Counts a server in that is started now and takes GPUs for so long more than was known.
    fn start(&mut self, pool: usize, more: Duration) {
        self.gpus_free -= self.pool(pool).pool.server_gpus();
        self.gpu_hours += self.gpu_hours_of(pool, more);
        self.servers[pool] += 1;
    }
}

/// GPUs that the first pool that did not fit will have.
#[derive(Clone, Copy, Debug)]
struct Reservation {
    /// From when on it is expected to have them; `None` if there are never as many.
    from: Option<Duration>,
    /// GPUs that are expected to be free beside them by then.
    spare: u32,
}

impl Reservation {
    /// Of `gpus`, where so many are free now and these come free.
    fn of(ends: &[(Duration, u32)], free: u32, gpus: u32) -> Self {
        let (mut ends, mut free) = (ends.to_vec(), free);
        ends.sort_unstable();
        for (at, released) in ends {
            free += released;
            if free >= gpus {
                return Self { from: Some(at), spare: free - gpus };
            }
        }
        Self { from: None, spare: 0 }
    }
}

/// The longest work that is told apart: beyond a year, estimates say nothing.
const WORK_MAX: Duration = Duration::from_secs(366 * 24 * 3600);

#[cfg(test)]
mod tests;
