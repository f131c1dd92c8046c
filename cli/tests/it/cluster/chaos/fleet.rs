//! A cluster for every kind of fault: every connection passes a proxy that can be cut, records and spools are on small
//! file systems, the clocks of Redis and of a coordinator follow files.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};
use tempfile::TempDir;
use vllm_sim::FaultRule;

use super::clocks;
use super::parts::Part;
use super::plan::{Area, Fault, Planned};
use super::redis::Redis;
use super::servers::{self, lying, refusing, throttling};
use crate::disk_full::Mount;
use crate::harness::acknowledged::ACKNOWLEDGED;
use crate::harness::{Proxy, free_port, wait_until};

const COORDINATORS: usize = 2;
const WORKERS: usize = 3;
const SERVERS: usize = 2;

/// Seconds of a lease.
pub const LEASE_S: &str = "2";

/// Longer than a lease.
const STOPPED_FOR: Duration = Duration::from_millis(3_000);

/// How often coordinators are cut from their workers, and for how long they are connected in between.
const CUTS: u32 = 3;
const BETWEEN_CUTS: Duration = Duration::from_millis(1_000);

/// How long other faults last.
const FOR: Duration = Duration::from_millis(1_500);

/// How long Sentinel takes to replace a primary that was killed: from then on the time to recover counts.
const FAILED_OVER_WITHIN: Duration = Duration::from_secs(2);

/// Room on each file system, in KiB.
const ROOM_KIB: u32 = 256 << 10;

/// The library that sets the clock of a process, made from `tests/clock.c`.
const CLOCK: &str = "clock.so";

/// What ends a fault, or goes on with it.
enum Heal {
    Continue(Role, usize),
    ContinueRedis,
    MendRedis,
    CutCoordinators,
    MendCoordinators,
    FreeDisk,
    FreeSpool,
    WritableDisk,
    GoodServer(usize),
}

#[derive(Clone, Copy)]
enum Role {
    Coordinator,
    Worker,
    Server,
}

/// The cluster.
pub struct Fleet {
    coordinators: Vec<Part>,
    workers: Vec<Part>,
    servers: Vec<Part>,
    server_configs: Vec<PathBuf>,
    redis: Redis,
    lines: Vec<Proxy>,
    ports: Vec<u16>,
    /// Until when Redis is in some trouble, and takes no other.
    redis_busy: Instant,
    disk_busy: Instant,
    heals: Vec<(Instant, Heal)>,
    clocks: bool,
    disks: Option<Disks>,
    /// Whether the last coordinator and the last worker are left alive, so that their memory can be watched.
    is_sparing: bool,
    folder: TempDir,
}

/// Small file systems.
struct Disks {
    _spools: Mount,
    data: Mount,
}

impl Disks {
    /// For records and for workers; nothing where this user may not mount.
    fn mount(folder: &Path) -> Option<Self> {
        let [data, spools] = ["data", "spools"].map(|name| Mount::tmpfs(&folder.join(name), ROOM_KIB));
        Some(Self { _spools: spools?, data: data? })
    }
}

impl Fleet {
    /// Starts everything; `None`, said aloud, without redis-server.
    pub fn start() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let disks = Disks::mount(folder.path());
        let clocks = clocks::make(&at(CLOCK));
        for clock in ["redis.clock", "coordinator.clock"] {
            std::fs::write(at(clock), 0_i64.to_ne_bytes()).unwrap();
        }
        let redis = Redis::start(clocks::environment(clocks, &at(CLOCK), &at("redis.clock")))?;
        let queue = redis.url();
        let mut fleet = Self {
            coordinators: Vec::new(),
            workers: Vec::new(),
            servers: Vec::new(),
            server_configs: Vec::new(),
            redis,
            lines: Vec::new(),
            ports: Vec::new(),
            redis_busy: Instant::now(),
            disk_busy: Instant::now(),
            heals: Vec::new(),
            clocks,
            disks,
            is_sparing: false,
            folder,
        };
        for number in 0..COORDINATORS {
            fleet.add_coordinator(number, &queue);
        }
        for number in 0..SERVERS {
            fleet.add_server(number);
        }
        for number in 0..WORKERS {
            fleet.add_worker(number);
        }
        // Records that nobody has served belong to whichever queue comes first.
        let bond = fleet.data().join("queue.json.json");
        wait_until("the records are served with a queue", || bond.is_file());
        Some(fleet)
    }

    /// A path beside the folder of runs.
    pub fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The folder of runs.
    pub fn data(&self) -> PathBuf {
        self.at("data")
    }

    /// The file in which workers note what was acknowledged, on none of the small file systems.
    pub fn acknowledged(&self) -> PathBuf {
        self.at("acknowledged")
    }

    fn add_coordinator(&mut self, number: usize, queue: &str) {
        let port = free_port();
        let (listen, data) = (format!("127.0.0.1:{port}"), self.data());
        // The clock of one of them is set.
        let has_clock = self.clocks && number == 0;
        let environment = clocks::environment(has_clock, &self.at(CLOCK), &self.at("coordinator.clock"));
        let arguments = [
            "coordinator",
            "--listen",
            &listen,
            "--metrics",
            "127.0.0.1:0",
            "--queue",
            queue,
            "--lease",
            LEASE_S,
            "--data-dir",
            data.to_str().unwrap(),
        ];
        let log = self.at(&format!("coordinator-{number}.log"));
        self.coordinators.push(Part::start("coordinators", &arguments, environment, log));
        self.lines.push(Proxy::to(port));
        self.ports.push(port);
    }

    fn add_server(&mut self, number: usize) {
        let (port, config) = (free_port(), self.at(&format!("server-{number}.yaml")));
        std::fs::write(&config, servers::config(&[])).unwrap();
        let listen = format!("127.0.0.1:{port}");
        let arguments = ["simulate", config.to_str().unwrap(), "--listen", &listen];
        let log = self.at(&format!("server-{number}.log"));
        self.servers.push(Part::start("servers", &arguments, Vec::new(), log));
        self.server_configs.push(config);
        let endpoint = format!("http://127.0.0.1:{port}/v1\n");
        let mut endpoints = File::options().create(true).append(true).open(self.at("endpoints")).unwrap();
        endpoints.write_all(endpoint.as_bytes()).unwrap();
    }

    fn add_worker(&mut self, number: usize) {
        let (name, endpoints) = (format!("worker-{number}"), self.at("endpoints"));
        let (coordinator, work) =
            (urls(number, |number| self.lines[number].port()), self.at("spools").join(&name));
        let arguments = [
            "worker",
            "--fleet",
            &coordinator,
            "--name",
            &name,
            "--endpoints-file",
            endpoints.to_str().unwrap(),
            "--evaluators",
            "1",
            "--concurrency",
            "4",
            "--grace",
            "5",
            "--work-dir",
            work.to_str().unwrap(),
        ];
        let log = self.at(&format!("{name}.log"));
        let noted = self.acknowledged().to_str().unwrap().to_owned();
        let environment = vec![(ACKNOWLEDGED.to_owned(), noted)];
        self.workers.push(Part::start("workers", &arguments, environment, log));
    }

    /// The coordinators' own addresses, for people, beginning with one of them.
    pub fn url(&self, pick: usize) -> String {
        urls(pick, |number| self.ports[number])
    }

    /// Classes of faults that cannot be tried here, and why.
    pub fn not_tried(&self, fault: Fault) -> Option<&'static str> {
        match fault {
            Fault::ClockOfRedis | Fault::ClockOfCoordinator if !self.clocks => {
                Some("there is no C compiler to make tests/clock.c with")
            }
            Fault::FullDisk | Fault::FullSpool | Fault::ReadOnlyDisk if self.disks.is_none() => {
                Some("this user cannot mount a small file system")
            }
            _ => None,
        }
    }

    /// From now on no fault ends the last coordinator or the last worker.
    pub fn spare_the_last(&mut self) {
        self.is_sparing = true;
    }

    fn is_spared(&self, &Planned { fault, pick, .. }: &Planned) -> bool {
        self.is_sparing
            && match fault {
                // A file system becomes read-only only if no coordinator has a file open.
                Fault::KillAllWorkers | Fault::ReadOnlyDisk => true,
                Fault::KillWorker | Fault::TermWorker => pick % WORKERS == WORKERS - 1,
                Fault::KillCoordinator | Fault::TermCoordinator => pick % COORDINATORS == COORDINATORS - 1,
                _ => false,
            }
    }

    /// Lets a fault happen; when it is over. `None` where what it would hit is spared, or in other trouble.
    pub fn hit(&mut self, planned: &Planned, now: Instant) -> Option<Instant> {
        if self.is_spared(planned) {
            return None;
        }
        let pick = planned.pick;
        let (coordinator, worker, server) = (pick % COORDINATORS, pick % WORKERS, pick % SERVERS);
        let mut ends = now;
        match planned.fault {
            Fault::KillWorker => self.workers[worker].kill(),
            Fault::KillAllWorkers => self.workers.iter_mut().for_each(Part::kill),
            Fault::KillCoordinator => self.coordinators[coordinator].kill(),
            Fault::KillServer => self.servers[server].kill(),
            Fault::TermWorker => self.workers[worker].signal(Signal::TERM),
            Fault::TermCoordinator => self.coordinators[coordinator].signal(Signal::TERM),
            Fault::TermServer => self.servers[server].signal(Signal::TERM),
            Fault::StopWorker => ends = self.stop(Role::Worker, worker, now),
            Fault::StopCoordinator => ends = self.stop(Role::Coordinator, coordinator, now),
            Fault::StopServer => ends = self.stop(Role::Server, server, now),
            Fault::KillEvaluator => self.signal_evaluator(worker, pick, Signal::KILL)?,
            Fault::StopEvaluator => self.signal_evaluator(worker, pick, Signal::STOP)?,
            Fault::TermEvaluator => self.signal_evaluator(worker, pick, Signal::TERM)?,
            Fault::CutCoordinators => {
                // Again and again, each time for longer than a lease.
                for cut in 0..CUTS {
                    let begins = now + cut * (STOPPED_FOR + BETWEEN_CUTS);
                    self.later(begins, Duration::ZERO, Heal::CutCoordinators);
                    ends = self.later(begins, STOPPED_FOR, Heal::MendCoordinators);
                }
            }
            Fault::ClockOfCoordinator => clocks::set(&self.at("coordinator.clock"), pick),
            Fault::ServerThrottles => ends = self.spoil(server, throttling(), now),
            Fault::ServerLies => ends = self.spoil(server, lying(), now),
            Fault::ServerRefuses => ends = self.spoil(server, refusing(), now),
            fault if fault.area() == Area::Disks => {
                if !self.has_sound_disks(now) {
                    return None;
                }
                ends = self.hit_disk(planned.fault, now)?;
                self.disk_busy = ends;
            }
            fault if fault.area() == Area::Redis => {
                if !self.has_sound_redis(now) {
                    return None;
                }
                ends = self.hit_redis(planned, now)?;
                self.redis_busy = ends;
            }
            other => unreachable!("{other} is the matter of others"),
        }
        Some(ends)
    }

    /// Whether records can be written.
    pub fn has_sound_disks(&self, now: Instant) -> bool {
        now >= self.disk_busy
    }

    /// Whether Redis is in no trouble.
    pub fn has_sound_redis(&self, now: Instant) -> bool {
        now >= self.redis_busy && !self.redis.is_failing_over()
    }

    /// Redis.
    pub fn redis(&self) -> &Redis {
        &self.redis
    }

    /// Redis, which takes no other trouble until then.
    pub fn trouble_redis(&mut self, until: Instant) -> &mut Redis {
        self.redis_busy = until;
        &mut self.redis
    }

    /// Whether the last coordinator and the last worker must live on.
    pub fn is_sparing(&self) -> bool {
        self.is_sparing
    }

    /// Kills all coordinators; they are started again with the next look at them.
    pub fn end_coordinators(&mut self) {
        self.coordinators.iter_mut().for_each(Part::kill);
    }

    /// What a coordinator of this cluster is told of a queue, beside where it listens.
    pub fn arguments_of_stranger(&self, queue: &str) -> Vec<String> {
        let data = self.data();
        let arguments =
            ["coordinator", "--queue", queue, "--lease", LEASE_S, "--data-dir", data.to_str().unwrap()];
        arguments.into_iter().map(str::to_owned).collect()
    }

    fn hit_redis(&mut self, planned: &Planned, now: Instant) -> Option<Instant> {
        match planned.fault {
            Fault::StopRedis => {
                self.signal_redis(Signal::STOP);
                return Some(self.later(now, STOPPED_FOR, Heal::ContinueRedis));
            }
            Fault::CutRedis => {
                self.redis.line().cut();
                return Some(self.later(now, FOR, Heal::MendRedis));
            }
            Fault::TermRedis => self.signal_redis(Signal::TERM),
            Fault::RestartRedis => self.redis.primary().begin_again(),
            Fault::FlushRedis => drop(self.redis.primary().ask::<String>("FLUSHALL")),
            Fault::ClockOfRedis => clocks::set(&self.at("redis.clock"), planned.pick),
            Fault::FailOver => {
                self.redis.fail_over()?;
                return Some(Instant::now() + FAILED_OVER_WITHIN);
            }
            other => unreachable!("{other} does not concern Redis"),
        }
        Some(Instant::now())
    }

    fn hit_disk(&mut self, fault: Fault, now: Instant) -> Option<Instant> {
        let disks = self.disks.as_ref()?;
        let fill = |folder: PathBuf| {
            let mut filler = File::create(folder.join("filler")).unwrap();
            // Until there is no room.
            while filler.write_all(&[0; 1 << 20]).is_ok() {}
        };
        Some(match fault {
            Fault::FullDisk => {
                fill(self.data());
                self.later(now, FOR, Heal::FreeDisk)
            }
            Fault::FullSpool => {
                fill(self.at("spools"));
                self.later(now, FOR, Heal::FreeSpool)
            }
            _ => {
                // Nobody may have a file open for writing then.
                self.coordinators.iter_mut().for_each(Part::kill);
                disks.data.call(&["-o", "remount,ro"]).then_some(())?;
                self.later(now, FOR, Heal::WritableDisk)
            }
        })
    }

    fn stop(&mut self, role: Role, number: usize, now: Instant) -> Instant {
        self.parts(role)[number].signal(Signal::STOP);
        self.later(now, STOPPED_FOR, Heal::Continue(role, number))
    }

    fn spoil(&mut self, number: usize, rules: Vec<FaultRule>, now: Instant) -> Instant {
        std::fs::write(&self.server_configs[number], servers::config(&rules)).unwrap();
        self.servers[number].kill();
        self.later(now, STOPPED_FOR, Heal::GoodServer(number))
    }

    fn parts(&mut self, role: Role) -> &mut Vec<Part> {
        match role {
            Role::Coordinator => &mut self.coordinators,
            Role::Worker => &mut self.workers,
            Role::Server => &mut self.servers,
        }
    }

    fn signal_evaluator(&self, worker: usize, pick: usize, signal: Signal) -> Option<()> {
        let pid = self.workers[worker].child(pick)?;
        // It may have ended in this moment.
        let _ = kill_process(pid, signal);
        Some(())
    }

    fn signal_redis(&mut self, signal: Signal) {
        let pid = rustix::process::Pid::from_raw(self.redis.primary().pid() as i32).unwrap();
        let _ = kill_process(pid, signal);
    }

    fn later(&mut self, now: Instant, after: Duration, heal: Heal) -> Instant {
        self.heals.push((now + after, heal));
        now + after
    }

    /// Ends the faults that are over, and starts again what has ended.
    pub fn tend(&mut self, now: Instant) {
        let (due, later): (Vec<_>, Vec<_>) = self.heals.drain(..).partition(|(at, _)| *at <= now);
        self.heals = later;
        for (_, heal) in due {
            self.heal(heal);
        }
        self.redis.tend(now);
        for parts in [&mut self.coordinators, &mut self.workers, &mut self.servers] {
            parts.iter_mut().for_each(Part::watch);
        }
    }

    /// Ends all faults.
    pub fn heal_all(&mut self) {
        let mut heals = std::mem::take(&mut self.heals);
        heals.sort_by_key(|(at, _)| *at);
        for (_, heal) in heals {
            self.heal(heal);
        }
        self.redis.settle();
        for clock in ["redis.clock", "coordinator.clock"] {
            clocks::set(&self.at(clock), 0);
        }
    }

    fn heal(&mut self, heal: Heal) {
        match heal {
            Heal::Continue(role, number) => self.parts(role)[number].signal(Signal::CONT),
            Heal::ContinueRedis => self.signal_redis(Signal::CONT),
            Heal::MendRedis => self.redis.line().mend(),
            Heal::CutCoordinators => self.lines.iter().for_each(Proxy::cut),
            Heal::MendCoordinators => self.lines.iter().for_each(Proxy::mend),
            Heal::FreeDisk => std::fs::remove_file(self.data().join("filler")).unwrap(),
            Heal::FreeSpool => std::fs::remove_file(self.at("spools").join("filler")).unwrap(),
            Heal::WritableDisk => {
                let writable = |disks: &Disks| disks.data.call(&["-o", "remount,rw"]);
                assert!(self.disks.as_ref().is_some_and(writable));
            }
            Heal::GoodServer(number) => {
                std::fs::write(&self.server_configs[number], servers::config(&[])).unwrap();
                self.servers[number].kill();
            }
        }
    }

    /// Role, process id, age and megabytes of every process.
    pub fn memory(&self) -> Vec<(&'static str, u32, Duration, f64)> {
        let parts = self.coordinators.iter().chain(&self.workers);
        parts.filter_map(|part| part.memory().map(|(pid, age, mb)| (part.role, pid, age, mb))).collect()
    }

    /// What everybody said last.
    pub fn last_words(&self) -> String {
        let parts = self.coordinators.iter().chain(&self.workers);
        parts.map(|part| format!("--- {}\n{}\n", part.role, part.last_words())).collect()
    }
}

/// The addresses of all coordinators, beginning with one of them.
fn urls(first: usize, port: impl Fn(usize) -> u16) -> String {
    let in_turn = (first..first + COORDINATORS).map(|number| port(number % COORDINATORS));
    in_turn.map(|port| format!("http://127.0.0.1:{port}")).collect::<Vec<_>>().join(",")
}
