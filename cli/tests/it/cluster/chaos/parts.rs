//! The processes of the cluster under test: started, watched, started again when they end.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::harness::process::{children_of, kgfleet};

/// A process, and how it is started.
pub struct Part {
    /// What it is, for people.
    pub role: &'static str,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    log: PathBuf,
    child: Child,
    started: Instant,
}

impl Part {
    /// Starts `kgfleet` with these arguments; what it says is kept in a file.
    pub fn start(
        role: &'static str,
        arguments: &[&str],
        environment: Vec<(String, String)>,
        log: PathBuf,
    ) -> Self {
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        let child = spawn(&arguments, &environment, &log);
        Self { role, arguments, environment, log, child, started: Instant::now() }
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Sends a signal; to one that has ended it means nothing.
    pub fn signal(&mut self, signal: Signal) {
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            let _ = kill_process(self.pid(), signal);
        }
    }

    /// Kills it; it is started again by [`watch`](Self::watch).
    pub fn kill(&mut self) {
        let _ = (self.child.kill(), self.child.wait());
    }

    /// One of the processes that it has started.
    pub fn child(&self, pick: usize) -> Option<Pid> {
        let children = children_of(self.pid());
        (!children.is_empty()).then(|| children[pick % children.len()])
    }

    /// Starts it again where it has ended.
    pub fn watch(&mut self) {
        if self.child.try_wait().is_ok_and(|status| status.is_some()) {
            self.child = spawn(&self.arguments, &self.environment, &self.log);
            self.started = Instant::now();
        }
    }

    /// Process id, age and memory in megabytes.
    pub fn memory(&self) -> Option<(u32, Duration, f64)> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kib: f64 = line.split_whitespace().next()?.parse().ok()?;
        Some((self.child.id(), self.started.elapsed(), kib / 1024.0))
    }

    /// The end of what it said.
    pub fn last_words(&self) -> String {
        let said = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = said.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(arguments: &[String], environment: &[(String, String)], log: &Path) -> Child {
    let log = File::options().create(true).append(true).open(log).unwrap();
    let mut command: Command = kgfleet();
    command
        .args(arguments)
        // As in the image: otherwise the C library keeps what large buffers leave, and memory says nothing of the program.
        .env("MALLOC_MMAP_THRESHOLD_", "131072")
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdout(Stdio::null())
        .stderr(log);
    command.spawn().unwrap()
}
