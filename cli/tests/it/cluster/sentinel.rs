//! A real Sentinel makes a replica the primary that lacks what the old primary had acknowledged.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use history::{Event, Noted};
use queue::testing::{RedisServer, free_port, wait_until};

use super::winners;
use crate::harness::{Cluster, NT_TASK, Server, TURTLE_TASK};

const ITERATIONS: u32 = 40;
const DIALOGUES: usize = 80;

/// Records before the replica is cut off, and records that it never hears of.
const KNOWN: usize = 10;
const UNKNOWN: usize = 10;

/// A sentinel of its own process, which watches one primary.
struct Sentinel {
    process: Child,
    port: u16,
}

impl Sentinel {
    fn start(cluster: &Cluster) -> Self {
        let port = free_port();
        let configuration = format!(
            "sentinel monitor fleet 127.0.0.1 {} 1\nsentinel down-after-milliseconds fleet 2000\n\
             sentinel failover-timeout fleet 10000\n",
            cluster.redis.port()
        );
        let file = cluster.data.write("sentinel.conf", configuration);
        let process = Command::new("redis-server")
            .arg(file)
            .args(["--sentinel", "--bind", "127.0.0.1", "--port", &port.to_string()])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self { process, port }
    }

    fn url(&self) -> String {
        format!("redis+sentinel://127.0.0.1:{}/fleet", self.port)
    }

    /// What it says of the primary that it watches; nothing while it does not listen yet.
    fn info(&self) -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.write_all(b"INFO sentinel\r\n").ok()?;
        let mut said = BufReader::new(stream);
        // Its length comes first: `$LENGTH`.
        let mut length = String::new();
        said.read_line(&mut length).ok()?;
        let mut info = vec![0; length.trim().strip_prefix('$')?.parse().ok()?];
        said.read_exact(&mut info).ok()?;
        String::from_utf8(info).ok()
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
}

fn says(server: &RedisServer, what: &str) -> bool {
    server.ask::<String>("INFO replication").is_some_and(|info| info.contains(what))
}

#[test]
fn a_failover_by_sentinel_that_loses_acknowledged_writes_loses_no_record() {
    let Some(mut cluster) = Cluster::start() else { return };
    let Some(replica) = RedisServer::start_with(&["--appendonly", "yes", "--save", ""]) else { return };
    replica.say::<()>(&format!("REPLICAOF 127.0.0.1 {}", cluster.redis.port()));
    wait_until("the replica has the data of the primary", || says(&replica, "master_link_status:up"));
    let sentinel = Sentinel::start(&cluster);
    wait_until("the sentinel knows the replica", || {
        sentinel.info().is_some_and(|info| info.contains("slaves=1"))
    });
    let server = Server::start();
    let coordinator = cluster.coordinator_with(free_port(), &["--queue", &sentinel.url()]);
    server.gate().close_after(2 * KNOWN);
    let run = cluster.submit(&coordinator, &[NT_TASK, TURTLE_TASK], ITERATIONS);
    let mut worker = cluster.worker("worker", &coordinator, &server);
    cluster.data.until_recorded(&mut worker, KNOWN);

    // From here on the primary acknowledges what the replica never sees: it cannot log in to it again.
    let since_ms = now_ms();
    for command in
        ["CONFIG SET masteruser nobody", "CONFIG SET masterauth nothing", "CLIENT KILL TYPE master"]
    {
        drop(replica.ask::<String>(command));
    }
    wait_until("the replica is cut off", || says(&replica, "master_link_status:down"));
    let before = cluster.data.run().entries().len();
    server.gate().open();
    server.gate().close_after(2 * UNKNOWN);
    cluster.data.until_recorded(&mut worker, before + UNKNOWN);
    cluster.redis.kill();
    wait_until("the sentinel makes the replica the primary", || says(&replica, "role:master"));
    let noted = Noted { at_ms: now_ms(), run: run.as_str().into(), event: Event::WritesLost { since_ms } };
    let line = serde_json::to_string(&noted).unwrap();
    cluster.data.write("events/failover.jsonl", format!("{line}\n"));

    server.gate().open();
    let (view, finished) = cluster.watch(&coordinator, &run);
    finished.expect(0);
    assert_eq!((view.scored, view.failed), (DIALOGUES as u64, 0));
    winners(&cluster, DIALOGUES);
}
