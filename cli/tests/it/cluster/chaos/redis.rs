//! The Redis of a cluster under faults: a primary, a replica, and a real Sentinel that leads everybody to the primary.

use std::time::{Duration, Instant};

use crate::harness::{Proxy, RedisServer, SentinelServer, wait_until};

const ARGUMENTS: [&str; 10] = [
    "--appendonly",
    "yes",
    "--appendfsync",
    "always",
    "--save",
    "",
    "--repl-diskless-sync-delay",
    "0",
    "--databases",
    "4096",
];

/// How long the primary must be silent before Sentinel replaces it, in milliseconds: longer than any other fault, and
/// short once it is killed for that purpose.
const SILENT_MS: u64 = 20_000;
const KILLED_MS: u64 = 300;

/// For how long the primary of a failover acknowledges what its replica never sees.
const UNSEEN_FOR: Duration = Duration::from_millis(400);

/// How long a failover may take. Sentinel takes no replica whose line to the primary seems to have been down for much longer than
/// the primary is: after a clock that was an hour back, for an hour.
const FAILOVER_MAX: Duration = Duration::from_secs(15);

/// Between two looks at a failover under way: each is a connection.
const LOOK: Duration = Duration::from_millis(200);

/// A server, and the line on which everybody reaches it.
struct Node {
    server: RedisServer,
    line: Proxy,
}

impl Node {
    fn start(environment: &[(String, String)]) -> Option<Self> {
        let server = RedisServer::start_in(&ARGUMENTS, environment)?;
        let line = Proxy::to(server.port());
        Some(Self { server, line })
    }

    /// Follows a primary, and tells Sentinel of its own line.
    fn follow(&self, primary: &Self) {
        self.server.say::<()>("CONFIG SET replica-announce-ip 127.0.0.1");
        self.server.say::<()>(&format!("CONFIG SET replica-announce-port {}", self.line.port()));
        self.server.say::<()>(&format!("REPLICAOF 127.0.0.1 {}", primary.line.port()));
    }
}

/// A failover under way.
struct Failover {
    begun: Instant,
    /// When to look at it again.
    look: Instant,
}

/// See the module.
pub struct Redis {
    primary: Node,
    replica: Node,
    sentinel: SentinelServer,
    environment: Vec<(String, String)>,
    failover: Option<Failover>,
    /// The database in which the latest queue that was put aside is.
    aside: u32,
}

impl Redis {
    /// Starts all three; `None`, said aloud, without redis-server.
    pub fn start(environment: Vec<(String, String)>) -> Option<Self> {
        let (primary, replica) = (Node::start(&environment)?, Node::start(&environment)?);
        replica.follow(&primary);
        wait_until("the replica has the data", || replica.server.replicates("master_link_status:up"));
        let sentinel = SentinelServer::start(primary.line.port());
        sentinel.set_down_after(SILENT_MS);
        wait_until("the sentinel knows the replica", || sentinel.knows_a_replica());
        Some(Self { primary, replica, sentinel, environment, failover: None, aside: 0 })
    }

    /// The address for coordinators.
    pub fn url(&self) -> String {
        self.sentinel.url()
    }

    /// The server that is the primary.
    pub fn primary(&mut self) -> &mut RedisServer {
        &mut self.primary.server
    }

    /// The line to the primary.
    pub fn line(&self) -> &Proxy {
        &self.primary.line
    }

    /// Puts the queue aside: its database is an empty one from now on. `None` where Redis does not answer.
    pub fn put_aside(&mut self) -> Option<()> {
        self.aside += 1;
        self.exchange()
    }

    /// Exchanges the queue for the one that was put aside.
    pub fn exchange(&mut self) -> Option<()> {
        let words = format!("SWAPDB 0 {}", self.aside);
        self.primary().ask::<String>(&words).map(drop)
    }

    /// Which queue of its record store it is, if it was bound to one.
    pub fn number(&mut self) -> Option<u64> {
        let bond = self.primary().ask::<Option<String>>("GET kgf:store").flatten()?;
        bond.split(' ').nth(1)?.parse().ok()
    }

    /// The address of one of its other databases, as if it were another server's.
    pub fn other_url(&self) -> String {
        format!("redis://127.0.0.1:{}/4095", self.primary.line.port())
    }

    /// Whether a failover is under way.
    pub fn is_failing_over(&self) -> bool {
        self.failover.is_some()
    }

    /// Kills the primary after a moment in which its replica heard nothing of what it acknowledged. `None` where the
    /// replica is not ready to take its place.
    pub fn fail_over(&mut self) -> Option<()> {
        let is_ready =
            self.replica.server.replicates("master_link_status:up") && self.sentinel.knows_a_replica();
        is_ready.then_some(())?;
        self.replica.server.cut_off();
        std::thread::sleep(UNSEEN_FOR);
        self.lose_primary();
        Some(())
    }

    /// Kills the primary, whose replica has heard nothing for a while.
    fn lose_primary(&mut self) {
        self.sentinel.set_down_after(KILLED_MS);
        self.primary.server.kill();
        let now = Instant::now();
        self.failover = Some(Failover { begun: now, look: now });
    }

    /// Starts again what has ended, and goes on with a failover. Whether the replica has taken the primary's place.
    pub fn tend(&mut self, now: Instant) -> bool {
        if self.replica.server.has_ended() {
            self.replica.server.begin_again();
        }
        let Some(failover) = &mut self.failover else {
            if self.primary.server.has_ended() {
                self.primary.server.begin_again();
            }
            return false;
        };
        if now < failover.look {
            return false;
        }
        failover.look = now + LOOK;
        let is_too_long = now - failover.begun > FAILOVER_MAX;
        if self.sentinel.watched() != Some(self.replica.line.port()) {
            if is_too_long {
                self.bring_back();
            }
            return false;
        }
        let replica = Node::start(&self.environment).expect("it was there before");
        self.primary = std::mem::replace(&mut self.replica, replica);
        self.replica.follow(&self.primary);
        self.sentinel.set_down_after(SILENT_MS);
        self.sentinel.look_again();
        self.failover = None;
        true
    }

    /// Ends a failover for which no replica is fit: the primary comes back with all that it acknowledged, and gets a new replica.
    fn bring_back(&mut self) {
        self.sentinel.set_down_after(SILENT_MS);
        // It takes the primary for alive again from now on.
        self.sentinel.look_again();
        self.primary.server.begin_again();
        self.replica = Node::start(&self.environment).expect("it was there before");
        self.replica.follow(&self.primary);
        self.failover = None;
    }

    /// Waits until a failover is over. Whether the replica has taken the primary's place.
    pub fn settle(&mut self) -> bool {
        let mut is_replaced = false;
        wait_until("a failover is over", || {
            is_replaced |= self.tend(Instant::now());
            !self.is_failing_over()
        });
        is_replaced
    }
}

#[cfg(test)]
mod tests {
    use super::super::clocks;
    use super::*;

    #[test]
    fn a_failover_that_no_replica_is_fit_for_ends_with_the_primary_of_before() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let has_clocks = clocks::make(&at("clock.so"));
        std::fs::write(at("clock"), 0_i64.to_ne_bytes()).unwrap();
        let environment = clocks::environment(has_clocks, &at("clock.so"), &at("clock"));
        let Some(mut redis) = Redis::start(environment) else { return };
        redis.primary().say::<()>("SET kgf:store kept");
        // For the replica, the line was cut an hour ago once the clock is right again.
        clocks::set(&at("clock"), 2);
        redis.replica.server.cut_off();
        wait_until("the line is cut", || redis.replica.server.replicates("master_link_status:down"));
        clocks::set(&at("clock"), 0);
        let seems_long = || redis.sentinel.replica_was_cut_off_for().is_some_and(|ms| ms > 1_000_000);
        wait_until("the sentinel has heard of it", || !has_clocks || seems_long());
        redis.lose_primary();
        let is_replaced = redis.settle();
        assert_eq!(!is_replaced, has_clocks, "without clocks that can be set, it is an ordinary failover");
        wait_until("the primary answers", || redis.primary().ask::<String>("GET kgf:store").is_some());
        wait_until("it has a replica", || redis.replica.server.replicates("master_link_status:up"));
        assert_eq!(redis.primary().ask::<String>("GET kgf:store").as_deref(), Some("kept"));
    }
}
