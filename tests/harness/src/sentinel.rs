//! A real Sentinel: started on a free port, stopped by its own process id when dropped.

use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use queue::testing::redis::FromRedisValue;
use tempfile::TempDir;

use crate::ports::free_port;
use crate::redis::{ask, program};
use crate::waiting::wait_until;

/// The name under which a [`SentinelServer`] knows its primary.
const SERVICE: &str = "fleet";

/// How long a primary must be silent before it counts as gone, in milliseconds.
const DOWN_AFTER_MS: u64 = 2_000;

/// A Sentinel that decides without others.
pub struct SentinelServer {
    port: u16,
    process: Child,
    _folder: TempDir,
}

impl SentinelServer {
    /// Watches the primary at this port of the loopback interface, and waits until it listens.
    pub fn start(primary: u16) -> Self {
        let (port, folder) = (free_port(), tempfile::tempdir().expect("a temporary folder"));
        let file = folder.path().join("sentinel.conf");
        let configuration = format!(
            "sentinel monitor {SERVICE} 127.0.0.1 {primary} 1\n\
             sentinel down-after-milliseconds {SERVICE} {DOWN_AFTER_MS}\n\
             sentinel failover-timeout {SERVICE} 1000\n"
        );
        std::fs::write(&file, configuration).expect("a file in a temporary folder");
        let process = Command::new(program().expect("the primary has one"))
            .arg(file)
            .args(["--sentinel", "--bind", "127.0.0.1", "--port", &port.to_string()])
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server starts");
        wait_until("the sentinel listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self { port, process, _folder: folder }
    }

    /// The address of its primary, for a queue.
    pub fn url(&self) -> String {
        self.url_of(SERVICE)
    }

    /// The same for another service.
    pub fn url_of(&self, service: &str) -> String {
        format!("redis+sentinel://127.0.0.1:{}/{service}", self.port)
    }

    /// Whether it knows exactly one replica of its primary.
    pub fn knows_a_replica(&self) -> bool {
        self.info().is_some_and(|info| info.contains("slaves=1,"))
    }

    /// For how long the line of the replica to the primary has been down, as the replica said last, in milliseconds.
    pub fn replica_was_cut_off_for(&self) -> Option<u64> {
        let replicas: Vec<Vec<String>> = self.ask(&format!("SENTINEL REPLICAS {SERVICE}"))?;
        let facts = replicas.first()?;
        let place = facts.iter().position(|fact| fact == "master-link-down-time")?;
        facts.get(place + 1)?.parse().ok()
    }

    /// The port of the primary that it watches. During a failover, clients learn of the next primary earlier.
    pub fn watched(&self) -> Option<u16> {
        let info = self.info()?;
        let (_, port) = info.split_once("address=127.0.0.1:")?;
        port.split(',').next()?.parse().ok()
    }

    /// Sets how long the primary must be silent before it counts as gone, in milliseconds.
    pub fn set_down_after(&self, ms: u64) {
        drop(self.ask::<String>(&format!("SENTINEL SET {SERVICE} down-after-milliseconds {ms}")));
    }

    /// Forgets replicas that are gone, and looks for those that are there.
    pub fn look_again(&self) {
        let _ = self.ask::<u64>(&format!("SENTINEL RESET {SERVICE}"));
    }

    fn info(&self) -> Option<String> {
        self.ask("INFO sentinel")
    }

    fn ask<T: FromRedisValue>(&self, words: &str) -> Option<T> {
        ask(&format!("redis://127.0.0.1:{}", self.port), words)
    }
}

impl Drop for SentinelServer {
    fn drop(&mut self) {
        // It may have ended by itself; both are fine.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
