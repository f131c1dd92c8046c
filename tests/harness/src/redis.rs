//! Real Redis servers: started on a free port, stopped by their own process id when dropped; and stores of the queue on them.
//!
//! Crates that test the queue alone use [`bench`] and [`cluster_bench`], which a test can let grow older.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use queue::testing::Bench;
use queue::testing::redis::{Client, Cmd, Connection, FromRedisValue, RedisResult, Value, cmd};
use tempfile::TempDir;

use crate::ports::free_port;
use crate::skip::skip;
use crate::waiting::wait_until;

/// How long a server may take to let a client in. Reached only if something is broken.
const CONNECT_MAX: Duration = Duration::from_secs(30);

/// How long a test asks a server that may be unable to answer.
const SOON: Duration = Duration::from_secs(1);

/// A `redis-server` or `valkey-server` started by the test.
pub struct RedisServer {
    program: PathBuf,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    port: u16,
    folder: TempDir,
    process: Child,
}

impl RedisServer {
    /// A server without persistence. `None`, with a message, if this machine has no such program.
    pub fn start() -> Option<Self> {
        Self::start_with(&["--save", "", "--appendonly", "no"])
    }

    /// A server with these arguments, besides port and folder.
    pub fn start_with(arguments: &[&str]) -> Option<Self> {
        Self::start_in(arguments, &[])
    }

    /// The same with variables in its environment.
    pub fn start_in(arguments: &[&str], environment: &[(String, String)]) -> Option<Self> {
        let Some(program) = program() else {
            skip("neither redis-server nor valkey-server is installed");
            return None;
        };
        let arguments: Vec<_> = arguments.iter().map(ToString::to_string).collect();
        let mut folder = tempfile::tempdir().expect("a temporary folder");
        // Another process may take the port before the server does. The server then ends at once, and the next port
        // is tried.
        for _ in 0..8 {
            let port = free_port();
            let process = spawn(&program, &arguments, environment, port, &folder);
            let mut server = Self {
                program: program.clone(),
                arguments: arguments.clone(),
                environment: environment.to_vec(),
                port,
                folder,
                process,
            };
            if server.wait_until_ready() {
                return Some(server);
            }
            folder = server.into_folder();
        }
        panic!("no redis-server came up on eight ports");
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Sends a command and waits.
    fn send<T: FromRedisValue>(&self, command: &Cmd) -> T {
        let mut connection = self.connection().expect("the server answers");
        command.query(&mut connection).expect("the server takes the command")
    }

    /// Sends a command given as text.
    pub fn say<T: FromRedisValue>(&self, words: &str) -> T {
        self.send(&command(words))
    }

    /// Kills it, like a power cut.
    pub fn kill(&mut self) {
        // It may have ended by itself; both are fine.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Restarts it on its port, with its persisted data.
    pub fn restart(&mut self) {
        self.begin_again();
        assert!(self.wait_until_ready(), "redis-server came up again");
    }

    /// The same without waiting until it answers.
    pub fn begin_again(&mut self) {
        self.kill();
        self.process = spawn(&self.program, &self.arguments, &self.environment, self.port, &self.folder);
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.process.try_wait().expect("a child of ours").is_some()
    }

    /// Its answer to a command given as text; `None` if it does not answer.
    pub fn ask<T: FromRedisValue>(&self, words: &str) -> Option<T> {
        ask(&self.url(), words)
    }

    /// Whether its `INFO replication` contains these words.
    pub fn replicates(&self, words: &str) -> bool {
        self.ask::<String>("INFO replication").is_some_and(|info| info.contains(words))
    }

    /// Cuts a replica off from its primary: it cannot log in there again.
    pub fn cut_off(&self) {
        for command in
            ["CONFIG SET masteruser nobody", "CONFIG SET masterauth nothing", "CLIENT KILL TYPE master"]
        {
            // The last one answers with an error where the link is down already.
            drop(self.ask::<Value>(command));
        }
    }

    fn connection(&self) -> RedisResult<Connection> {
        Client::open(self.url())?.get_connection_with_timeout(CONNECT_MAX)
    }

    /// Whether it answers; false if it ended instead.
    fn wait_until_ready(&mut self) -> bool {
        wait_until("redis-server answers", || {
            let ended = self.process.try_wait().expect("a child of ours").is_some();
            ended || self.connection().is_ok_and(|mut c| cmd("PING").query::<String>(&mut c).is_ok())
        });
        self.process.try_wait().expect("a child of ours").is_none()
    }

    fn into_folder(mut self) -> TempDir {
        self.kill();
        std::mem::replace(&mut self.folder, tempfile::tempdir().expect("a temporary folder"))
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(
    program: &PathBuf,
    arguments: &[String],
    environment: &[(String, String)],
    port: u16,
    folder: &TempDir,
) -> Child {
    Command::new(program)
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .args(["--bind", "127.0.0.1", "--maxmemory-policy", "noeviction", "--port", &port.to_string()])
        .args(arguments)
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .spawn()
        .expect("redis-server starts")
}

/// A command given as text.
fn command(words: &str) -> Cmd {
    let mut command = Cmd::new();
    words.split_whitespace().for_each(|word| {
        command.arg(word);
    });
    command
}

/// The answer of the server at an address to a command given as text; `None` if it does not answer in time.
pub(super) fn ask<T: FromRedisValue>(url: &str, words: &str) -> Option<T> {
    let mut connection = Client::open(url).ok()?.get_connection_with_timeout(SOON).ok()?;
    connection.set_read_timeout(Some(SOON)).ok()?;
    command(words).query(&mut connection).ok()
}

/// The server's program, where it is installed.
pub(super) fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let files = |name| std::env::split_paths(&path).map(move |folder: PathBuf| folder.join(name));
    ["redis-server", "valkey-server"].into_iter().flat_map(files).find(|file| file.is_file())
}

/// A store on a Redis server for one test; `None`, said aloud, if there is no such program.
pub fn bench() -> Option<Bench> {
    let server = RedisServer::start()?;
    Some(Bench::kept_in(&server.url(), "one", Box::new(server)))
}

/// A store on a Redis Cluster of two nodes, each with half of the slots. Call it within a runtime.
pub fn cluster_bench() -> Option<Bench> {
    let node = || {
        // The usual bus port, port + 10000, may exceed the highest port.
        let bus = free_port().to_string();
        RedisServer::start_with(&["--save", "", "--cluster-enabled", "yes", "--cluster-port", &bus])
    };
    let nodes = [node()?, node()?];
    for (node, slots) in nodes.iter().zip(["0 8191", "8192 16383"]) {
        node.say::<()>(&format!("CLUSTER ADDSLOTSRANGE {slots}"));
    }
    nodes[1].say::<()>("CONFIG SET cluster-node-timeout 2000");
    nodes[0].say::<()>("CLUSTER SET-CONFIG-EPOCH 1");
    nodes[1].say::<()>("CLUSTER SET-CONFIG-EPOCH 2");
    let bus: String = nodes[1].say::<Vec<String>>("CONFIG GET cluster-port").remove(1);
    nodes[0].say::<()>(&format!("CLUSTER MEET 127.0.0.1 {} {bus}", nodes[1].port()));
    for node in &nodes {
        wait_until("the cluster agrees", || {
            let info: String = node.say("CLUSTER INFO");
            info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:2")
        });
    }
    let url = format!("redis+cluster://127.0.0.1:{},127.0.0.1:{}", nodes[0].port(), nodes[1].port());
    Some(Bench::kept_in(&url, "one", Box::new(nodes)))
}
