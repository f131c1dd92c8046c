//! A cluster of real processes: Redis, coordinators and workers, on ports of the loopback interface.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{RedisServer, free_port};
use domain::control::BenchmarkView;

use super::process::{Finished, Running};
use super::server::MODEL;
use super::{Data, Server};

/// Seconds of a lease. Long enough for a busy machine; short enough that a test waits for one to expire.
const LEASE_S: &str = "2";

/// Redis, a data folder, and the processes that a test started. All of them end with it.
pub struct Cluster {
    /// What coordinators write into.
    pub data: Data,
    /// The queue's server.
    pub redis: RedisServer,
    lease: &'static str,
}

/// A coordinator that runs.
pub struct Coordinator {
    pub process: Running,
    /// Where it listens.
    pub port: u16,
}

impl Coordinator {
    /// Its address.
    pub fn url(&self) -> String {
        url(self.port)
    }
}

fn url(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

impl Cluster {
    /// Redis and an empty folder; `None`, said aloud, without redis-server.
    pub fn start() -> Option<Self> {
        Self::with_lease(LEASE_S)
    }

    /// The same with leases of so many seconds.
    pub fn with_lease(lease: &'static str) -> Option<Self> {
        let redis =
            RedisServer::start_with(&["--appendonly", "yes", "--appendfsync", "always", "--save", ""]);
        Some(Self { data: Data::new(), redis: redis?, lease })
    }

    /// A coordinator on a free port.
    pub fn coordinator(&self) -> Coordinator {
        self.coordinator_at(free_port())
    }

    /// A coordinator on this port.
    pub fn coordinator_at(&self, port: u16) -> Coordinator {
        self.coordinator_with(port, &["--queue", &self.redis.url()])
    }

    /// A coordinator on this port with its queue in memory.
    pub fn lone_coordinator_at(&self, port: u16) -> Coordinator {
        self.coordinator_with(port, &[])
    }

    /// The same with more arguments.
    pub fn coordinator_with(&self, port: u16, more: &[&str]) -> Coordinator {
        self.coordinator_by(&mut self.data.command(&self.coordinator_arguments(port, more)), port)
    }

    /// What a coordinator is started with.
    pub fn coordinator_arguments(&self, port: u16, more: &[&str]) -> Vec<String> {
        let listen = format!("127.0.0.1:{port}");
        let arguments = ["coordinator", "--listen", &listen, "--lease", self.lease];
        let http: &[&str] = if more.contains(&"--metrics") { &[] } else { &["--metrics", "127.0.0.1:0"] };
        [&arguments[..], http, more].concat().into_iter().map(str::to_owned).collect()
    }

    /// The coordinator that this command starts on this port.
    pub fn coordinator_by(&self, command: &mut Command, port: u16) -> Coordinator {
        let mut process = Running::start(command);
        process.until_it_says("serving on");
        Coordinator { process, port }
    }

    /// A worker of this name beside this server, with four dialogues in flight.
    pub fn worker(&self, name: &str, coordinator: &Coordinator, server: &Server) -> Running {
        self.worker_with(name, coordinator.port, &server.url(), &["--concurrency", "4"])
    }

    /// The same with more arguments.
    pub fn worker_with(&self, name: &str, port: u16, endpoint: &str, more: &[&str]) -> Running {
        self.worker_in(&self.work_dir(name), name, port, endpoint, more)
    }

    /// Another process under a name that a worker has, with a work folder of its own.
    pub fn twin(&self, name: &str, coordinator: &Coordinator, server: &Server) -> Running {
        let work_dir = self.data.path().join("elsewhere");
        self.worker_in(&work_dir, name, coordinator.port, &server.url(), &[])
    }

    fn worker_in(&self, work_dir: &Path, name: &str, port: u16, endpoint: &str, more: &[&str]) -> Running {
        let coordinator = url(port);
        let arguments = [
            "worker",
            "--fleet",
            &coordinator,
            "--name",
            name,
            "--endpoint",
            endpoint,
            "--evaluators",
            "1",
            "--work-dir",
            work_dir.to_str().unwrap(),
        ];
        self.data.start(&[&arguments[..], more].concat())
    }

    /// What a worker keeps.
    pub fn work_dir(&self, name: &str) -> PathBuf {
        self.data.path().join("work").join(name)
    }

    /// A configuration of the one model of [`Server`].
    pub fn configuration(&self, tasks: &[&str], iterations: u32) -> PathBuf {
        let text = format!(
            "name = 'cluster'\nseed = 5\niterations = {iterations}\ntasks = {tasks:?}\n[[models]]\nlabel = '{MODEL}'\n\
             connector = 'openai-compatible'\nstream = false\n"
        );
        self.data.write("cluster.toml", text)
    }

    /// `kgfleet` with these arguments, for this coordinator.
    pub fn kgfleet(&self, coordinator: &Coordinator, arguments: &[&str]) -> Finished {
        let url = coordinator.url();
        self.data.kgfleet(&[arguments, &["--fleet", &url]].concat())
    }

    /// Submits a configuration; the run's name.
    pub fn submit(&self, coordinator: &Coordinator, tasks: &[&str], iterations: u32) -> String {
        let configuration = self.configuration(tasks, iterations);
        let submitted = self.kgfleet(coordinator, &["submit", configuration.to_str().unwrap()]).expect(0);
        submitted.stdout.trim().to_owned()
    }

    /// Follows a run to its end; what it is then.
    pub fn watch(&self, coordinator: &Coordinator, run: &str) -> (BenchmarkView, Finished) {
        let finished = self.kgfleet(coordinator, &["status", "--follow", run, "--json"]);
        let last = finished.stdout.lines().next_back().unwrap_or_default();
        let view = serde_json::from_str(last).unwrap_or_else(|error| panic!("no view ({error}): {finished}"));
        (view, finished)
    }

    /// A run as it is now.
    pub fn status(&self, coordinator: &Coordinator, run: &str) -> BenchmarkView {
        let status = self.kgfleet(coordinator, &["status", run, "--json"]).expect(0);
        serde_json::from_value(status.json()).unwrap()
    }
}
