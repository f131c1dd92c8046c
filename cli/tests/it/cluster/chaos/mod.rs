//! Faults of every kind, many at once, on real processes at the default settings: every benchmark ends by itself with
//! every dialogue scored, or says why it does not; nothing acknowledged is lost, nothing counts twice.
//!
//! `KGFLEET_CHAOS_SECONDS` and `KGFLEET_CHAOS_SEED` say how long, and which plan of faults; `make chaos` sets them. Where
//! something is wrong, everything is copied into the folder `KGFLEET_CHAOS_KEEP`, if that is given.
//! [`plan`] draws the faults. Those of processes, disks and Redis are in [`fleet`] and [`redis`], those of the record store in
//! [`losses`], those of queues in [`strangers`], and commands that race in [`clients`]. [`work`] submits benchmarks, and
//! [`reckoning`] says what became of them.

mod clients;
mod clocks;
mod fleet;
mod losses;
mod parts;
mod plan;
mod reckoning;
mod redis;
mod servers;
mod strangers;
mod tally;
mod work;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use clients::Clients;
use fleet::Fleet;
use losses::Losses;
use plan::{Area, Fault, Planned, plan};
use reckoning::Reckoning;
use strangers::Strangers;
use tally::Tally;
use work::Work;

/// Length of a run that is part of every test run, in seconds.
const SECONDS: u64 = 15;

/// A run at least this long spares a coordinator and a worker in its second half, because the memory of processes that
/// end every few seconds says nothing about growth.
const LONG: Duration = Duration::from_secs(1_200);

/// Between two looks at everything.
const STEP: Duration = Duration::from_millis(20);

/// Between two looks at memory and at how far the latest benchmark is.
const NOW_AND_THEN: Duration = Duration::from_secs(2);

/// A number from the environment.
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// A cluster, what it works at, and what happens to it.
struct Chaos {
    fleet: Fleet,
    work: Work,
    clients: Clients,
    strangers: Strangers,
    losses: Losses,
    tally: Tally,
}

impl Chaos {
    /// Nothing has happened yet; `None`, said aloud, without redis-server.
    fn start() -> Option<Self> {
        Some(Self {
            fleet: Fleet::start()?,
            work: Work::default(),
            clients: Clients::default(),
            strangers: Strangers::default(),
            losses: Losses::default(),
            tally: Tally::default(),
        })
    }

    /// Classes of faults that cannot be tried here, and why.
    fn not_tried(&self, fault: Fault) -> Option<&'static str> {
        match fault {
            Fault::OlderCopy if !losses::can_copy() => Some("there is no rsync to copy records with"),
            fault => self.fleet.not_tried(fault),
        }
    }

    /// Lets a fault happen; when it is over. `None` where what it would hit is spared, or in other trouble.
    fn hit(&mut self, planned: &Planned, now: Instant) -> Option<Instant> {
        let Self { fleet, work, clients, strangers, losses, .. } = self;
        match planned.fault.area() {
            Area::Processes | Area::Redis | Area::Disks => fleet.hit(planned, now),
            Area::Commands => clients.race(planned, work, fleet, losses.restored, now),
            Area::Queues => strangers.hit(planned, fleet, now),
            Area::Records => losses.hit(planned, fleet, now),
        }
    }

    /// Goes on with what is under way.
    fn tend(&mut self, now: Instant) {
        let Self { fleet, work, clients, strangers, losses, .. } = self;
        fleet.tend(now);
        strangers.tend(fleet, now);
        let restored = losses.restored;
        let gone = losses.tend(fleet, now, strangers.is_queue_right());
        if losses.restored > restored {
            work.restored(&gone);
        }
        clients.tend(work, fleet, losses.restored, now);
    }

    /// Lets the faults of a plan happen for a time.
    fn faults(&mut self, seed: u64, length: Duration) {
        let (begin, mut next) = (Instant::now(), Instant::now());
        let (mut looked, mut stored) = (begin, 0);
        let mut planned = plan(seed);
        while begin.elapsed() < length {
            let now = Instant::now();
            if length >= LONG && begin.elapsed() >= length / 2 {
                self.fleet.spare_the_last();
            }
            self.tend(now);
            let bytes = self.work.log_bytes();
            if bytes != stored {
                stored = bytes;
                self.tally.stored(now);
            }
            if now - looked > NOW_AND_THEN {
                looked = now;
                self.work.go_on(&self.fleet, now);
                for (role, pid, age, megabytes) in self.fleet.memory() {
                    self.tally.memory(role, pid, age, megabytes);
                }
            }
            if now >= next {
                let fault = planned.next().expect("a plan has no end");
                if self.not_tried(fault.fault).is_none()
                    && let Some(ends) = self.hit(&fault, now)
                {
                    self.tally.fault(fault.fault, ends);
                }
                next = now + fault.gap;
            }
            std::thread::sleep(STEP);
        }
    }

    /// What went wrong, in words.
    fn wrong(&self, reckoning: &Reckoning) -> Vec<String> {
        [&self.clients.wrong[..], &self.strangers.wrong, &reckoning.wrong].concat()
    }

    /// Keeps what there is for whoever looks for the cause, before it is removed.
    fn keep(&self, folder: &std::path::Path) {
        let kept = std::process::Command::new("cp").arg("-a").arg(self.fleet.at(".")).arg(folder).status();
        println!("kept in {}: {kept:?}\n{}", folder.display(), self.losses.ledger());
    }

    /// Ends all faults.
    fn heal(&mut self) {
        self.losses.end();
        self.strangers.end(&mut self.fleet);
        self.fleet.heal_all();
        self.work.settle();
    }
}

#[test]
fn everything_ends_or_says_why_and_nothing_is_lost_whatever_fails() {
    let Some(mut chaos) = Chaos::start() else { return };
    let (seconds, seed) = (setting("KGFLEET_CHAOS_SECONDS", SECONDS), setting("KGFLEET_CHAOS_SEED", 1));
    chaos.faults(seed, Duration::from_secs(seconds));
    chaos.heal();
    let mut reckoning = Reckoning::default();
    reckoning.wait(&mut chaos);
    reckoning.check(&chaos);
    tell(&chaos, &reckoning, seed, seconds);
    if let Some(folder) =
        std::env::var_os("KGFLEET_CHAOS_KEEP").filter(|_| !chaos.wrong(&reckoning).is_empty())
    {
        chaos.keep(std::path::Path::new(&folder));
    }
    assert!(reckoning.benchmarks > 0 && chaos.tally.total() > 0, "something was tried");
    let wrong = chaos.wrong(&reckoning);
    // What is wrong stands last, because the end of an output is what people and machines keep.
    assert!(wrong.is_empty(), "{} things are wrong\n{}", wrong.len(), wrong.join("\n"));
}

/// Prints what happened.
fn tell(chaos: &Chaos, reckoning: &Reckoning, seed: u64, seconds: u64) {
    let Reckoning { benchmarks, judged, scored, ended_after, explained, asked_again, .. } = reckoning;
    println!(
        "seed {seed}, {seconds} s, {benchmarks} benchmarks, {judged} of them judged\n{}",
        chaos.tally.table()
    );
    println!(
        "{scored} dialogues scored; records acknowledged {}, lost {}, taken from logs by a fault {}",
        reckoning.acknowledged, reckoning.lost, reckoning.taken,
    );
    let losses = &chaos.losses;
    println!(
        "records taken from logs {} of {} runs, restored {} times, runs that the copy did not hold {}; damages that logs \
         name {}; finished runs that were resumed for what was lost {asked_again}",
        losses.lost.values().map(BTreeSet::len).sum::<usize>(),
        losses.lost.len(),
        losses.restored,
        losses.gone.len(),
        reckoning.damages,
    );
    let strangers = &chaos.strangers;
    println!(
        "coordinators with a wrong queue {}, told why they are refused {}; older queues that came back {}",
        strangers.came, strangers.refused, strangers.back
    );
    println!("commands that raced, carried out + not: {}", chaos.clients.table());
    println!("submissions at once that began a run of their own: {}", chaos.clients.several);
    println!(
        "all ended {:.0} s after the last fault, but {} that say why not",
        ended_after.as_secs_f64(),
        explained.len()
    );
    println!("created and never begun, as they said, and begun by who read it: {}", reckoning.unbegun);
    explained.iter().for_each(|explained| println!("  {explained}"));
    for fault in Fault::ALL {
        if let Some(why) = chaos.not_tried(fault) {
            println!("not tried: {fault}: {why}");
        }
    }
}
