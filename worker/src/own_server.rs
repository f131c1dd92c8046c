//! A model server that the worker starts itself: on a free port, again when it ends, and ended with the worker.
//!
//! The arguments of the command may hold `{port}`, `{rank}`, and, as an argument of its own, `{headless}`, which becomes
//! `--headless` for all parts of a server but the first and nothing for that.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::Backoff;
use rustix::process::{Pid, Signal, kill_process_group};
use service_kit::umask;
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Lines of a server's output that are kept as the reason for its end.
const LINES_KEPT_MAX: usize = 12;

/// Bytes of a line that are kept.
const LINE_BYTES_MAX: usize = 300;

/// Bytes of a server's output that are kept, at least, for these lines.
const OUTPUT_BYTES_KEPT: usize = 64 << 10;

/// How long a server may take to end after SIGTERM, before it is interrupted: it may have been started with SIGTERM blocked,
/// where a batch system signals every process of a job.
const TERM_MAX: Duration = Duration::from_secs(5);

/// How long it may take after that, before it is killed.
const STOP_MAX: Duration = Duration::from_secs(10);

/// How long the output of a server that has ended is awaited: its children may hold the pipe.
const OUTPUT_MAX: Duration = Duration::from_secs(1);

/// Bounds of the delay before a server is started again.
const AGAIN_AFTER_MIN: Duration = Duration::from_secs(1);
const AGAIN_AFTER_MAX: Duration = Duration::from_secs(60);

/// A server that ran for so long is started again at once.
const LIVED_LONG: Duration = Duration::from_secs(600);

/// The command of a server, and which part of it this is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerCommand {
    pub program: String,
    pub arguments: Vec<String>,
    /// From 0.
    pub rank: u32,
    /// On how many nodes the server runs.
    pub parts: u32,
}

impl ServerCommand {
    /// The arguments with their placeholders filled in.
    pub fn filled_in(&self, port: u16) -> Vec<String> {
        let is_headless = self.rank > 0;
        let wanted = self.arguments.iter().filter(|argument| is_headless || *argument != "{headless}");
        let fill = |argument: &String| {
            let filled = argument.replace("{port}", &port.to_string());
            filled.replace("{rank}", &self.rank.to_string()).replace("{headless}", "--headless")
        };
        wanted.map(fill).collect()
    }
}

/// What a server does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerState {
    /// It was started, and will answer there.
    Started { endpoint: String },
    /// It has ended, and is started again.
    Restarting { reason: String },
    /// It has ended and is not started again.
    Lost { reason: String },
}

/// A server that runs as long as this.
pub struct OwnServer {
    states: watch::Receiver<ServerState>,
    end: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl OwnServer {
    /// Starts it. A server of one part is started again when it ends; if one of several parts ends, the others cannot go on,
    /// and it is lost.
    pub fn start(command: ServerCommand) -> Self {
        let (tell, states) = watch::channel(ServerState::Restarting { reason: "not started yet".to_owned() });
        let (end, ended) = oneshot::channel();
        let task = tokio::spawn(run(command, tell, ended));
        Self { states, end: Some(end), task }
    }

    /// What it does, now and later.
    pub fn states(&self) -> watch::Receiver<ServerState> {
        self.states.clone()
    }

    /// Ends it: asks it to end, and kills it if it does not.
    pub async fn end(mut self) {
        drop(self.end.take());
        let _ = (&mut self.task).await;
    }
}

async fn run(command: ServerCommand, tell: watch::Sender<ServerState>, mut ended: oneshot::Receiver<()>) {
    let mut backoff = Backoff::new(AGAIN_AFTER_MIN, AGAIN_AFTER_MAX);
    loop {
        let began = Instant::now();
        let reason = match Process::start(&command) {
            Err(error) => format!("{} cannot be started: {error}", command.program),
            Ok((mut process, port)) => {
                let endpoint = format!("http://127.0.0.1:{port}/v1");
                tracing::info!(program = command.program, port, "started the server");
                tell.send_replace(ServerState::Started { endpoint });
                let status = tokio::select! {
                    status = process.child.wait() => status,
                    _ = &mut ended => return process.end().await,
                };
                process.why_ended(&command.program, status).await
            }
        };
        tracing::error!(reason, "the server has ended");
        if command.parts > 1 {
            tell.send_replace(ServerState::Lost { reason });
            return;
        }
        tell.send_replace(ServerState::Restarting { reason });
        if began.elapsed() >= LIVED_LONG {
            backoff.reset();
        }
        tokio::select! {
            () = tokio::time::sleep(backoff.next_delay()) => {}
            _ = &mut ended => return,
        }
    }
}

/// A running server, in a process group of its own, so that nothing of it is left behind.
struct Process {
    child: Child,
    group: Option<Pid>,
    lines: Arc<Mutex<LastLines>>,
    /// Each ends with an output.
    readers: Vec<oneshot::Receiver<()>>,
}

impl Process {
    fn start(command: &ServerCommand) -> std::io::Result<(Self, u16)> {
        // Nothing reserves it: a server whose port was taken meanwhile ends, and is started again on another one.
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        // A shell starts what runs in the background with SIGINT ignored, and children inherit that; a handled signal is back
        // to its default in them.
        drop(signal(SignalKind::interrupt())?);
        let mut server = Command::new(&command.program);
        server
            .args(command.filled_in(port))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        // What it keeps of models may be for others, too.
        let mut child = umask::as_inherited(|| server.spawn())?;
        let lines = Arc::new(Mutex::new(LastLines::default()));
        let mut readers = Vec::new();
        let outputs = [
            child.stdout.take().map(ChildStdout::into_owned_fd),
            child.stderr.take().map(ChildStderr::into_owned_fd),
        ];
        for output in outputs.into_iter().flatten() {
            readers.push(pass_on(File::from(output?), Arc::clone(&lines))?);
        }
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        Ok((Self { child, group, lines, readers }, port))
    }

    /// Why it has ended, in words.
    async fn why_ended(&mut self, program: &str, status: std::io::Result<ExitStatus>) -> String {
        self.signal(Signal::KILL); // What it left behind holds its memory.
        let readers = futures::future::join_all(self.readers.drain(..));
        let _ = tokio::time::timeout(OUTPUT_MAX, readers).await;
        let how = match status {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        let said = self.lines.lock().unwrap_or_else(PoisonError::into_inner).to_string();
        match said.is_empty() {
            true => format!("{program} ended ({how}) and said nothing"),
            false => format!("{program} ended ({how}): {said}"),
        }
    }

    /// Ends it.
    async fn end(mut self) {
        for (signal, wait) in [(Signal::TERM, TERM_MAX), (Signal::INT, STOP_MAX)] {
            self.signal(signal);
            if tokio::time::timeout(wait, self.child.wait()).await.is_ok() {
                return;
            }
        }
        tracing::warn!(seconds = (TERM_MAX + STOP_MAX).as_secs(), "the server does not end, and is killed");
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // It may be gone.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// Passes the output of a server on to this process's own, and keeps its last lines, on a thread that ends with the output.
fn pass_on(mut output: File, lines: Arc<Mutex<LastLines>>) -> std::io::Result<oneshot::Receiver<()>> {
    // The pipe was made for async reading.
    rustix::io::ioctl_fionbio(&output, false)?;
    let (done, reader) = oneshot::channel();
    std::thread::Builder::new().name("server-output".to_owned()).spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = output.read(&mut buffer) {
            lines.lock().unwrap_or_else(PoisonError::into_inner).add(&buffer[..length]);
            // Whoever reads it may be gone; the server must not wait for that.
            let _ = std::io::stderr().write_all(&buffer[..length]);
        }
        drop(done);
    })?;
    Ok(reader)
}

/// The end of an output. Shows as its last lines, each shortened.
#[derive(Debug, Default)]
struct LastLines(Vec<u8>);

impl LastLines {
    fn add(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        if self.0.len() > 2 * OUTPUT_BYTES_KEPT {
            self.0.drain(..self.0.len() - OUTPUT_BYTES_KEPT);
        }
    }
}

impl std::fmt::Display for LastLines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let lines =
            self.0.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
        let lines: Vec<_> =
            lines.map(|line| String::from_utf8_lossy(&line[..line.len().min(LINE_BYTES_MAX)])).collect();
        f.write_str(&lines[lines.len().saturating_sub(LINES_KEPT_MAX)..].join(" | "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(rank: u32, parts: u32, script: &str) -> ServerCommand {
        let arguments = ["-c", script, "server", "{port}", "--rank={rank}", "{headless}"];
        let arguments = arguments.map(str::to_owned).to_vec();
        ServerCommand { program: "/bin/sh".to_owned(), arguments, rank, parts }
    }

    #[test]
    fn placeholders_are_filled_in_and_the_first_part_has_a_head() {
        let filled = |rank| command(rank, 2, "true").filled_in(7000)[3..].to_vec();
        assert_eq!(filled(0), ["7000", "--rank=0"]);
        assert_eq!(filled(1), ["7000", "--rank=1", "--headless"]);
    }

    #[test]
    fn the_last_lines_are_kept_and_shortened() {
        let mut lines = LastLines::default();
        lines.add(b"\n");
        (0..20).for_each(|number| lines.add(format!("line {number}\n\n").as_bytes()));
        lines.add(b"be");
        lines.add(b"gun");
        lines.add(&[b'x'; 10_000]);
        let text = lines.to_string();
        assert!(text.starts_with("line 9 | line 10") && text.contains("begunxxx"), "{text}");
        assert!(text.len() < LINES_KEPT_MAX * (LINE_BYTES_MAX + 10));
    }

    async fn until(
        states: &mut watch::Receiver<ServerState>,
        is: impl FnMut(&ServerState) -> bool,
    ) -> ServerState {
        let wait = states.wait_for(is);
        tokio::time::timeout(Duration::from_secs(60), wait).await.unwrap().unwrap().clone()
    }

    #[tokio::test]
    async fn a_server_that_ends_is_started_again_elsewhere_and_its_last_words_are_the_reason() {
        let server = OwnServer::start(command(0, 1, "echo loading; echo 'ValueError: no' >&2; exit 3"));
        let mut states = server.states();
        let restarting = |state: &ServerState| matches!(state, ServerState::Restarting { reason } if reason.contains("ended"));
        let ServerState::Restarting { reason } = until(&mut states, restarting).await else { panic!() };
        assert!(reason.contains("exit status: 3") && reason.contains("ValueError: no"), "{reason}");
        until(&mut states, |state| matches!(state, ServerState::Started { .. })).await;
        server.end().await;
    }

    #[tokio::test]
    async fn a_part_of_a_server_that_ends_is_lost_and_a_program_that_is_not_there_says_so() {
        let server = OwnServer::start(command(1, 2, "exit 1"));
        let mut states = server.states();
        until(&mut states, |state| matches!(state, ServerState::Lost { .. })).await;
        let missing = ServerCommand { program: "/no/such/program".to_owned(), ..command(0, 2, "") };
        let server = OwnServer::start(missing);
        let mut states = server.states();
        let lost = until(&mut states, |state| matches!(state, ServerState::Lost { .. })).await;
        assert!(format!("{lost:?}").contains("/no/such/program cannot be started"), "{lost:?}");
    }

    #[test]
    fn the_second_signal_reaches_a_server_whose_worker_runs_in_the_background_of_a_shell() {
        let test = "own_server::tests::one_that_does_not_see_the_first_signal_ends_by_the_second";
        let script = format!("trap '' INT; exec \"$0\" --exact {test}");
        let this = std::env::current_exe().unwrap();
        let output = std::process::Command::new("sh").arg("-c").arg(script).arg(this).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
    }

    #[tokio::test]
    async fn one_that_does_not_see_the_first_signal_ends_by_the_second() {
        let folder = tempfile::tempdir().unwrap();
        let (ready, ended) = (folder.path().join("ready"), folder.path().join("ended"));
        let script = format!(
            "trap '' TERM; trap 'touch {}; exit 0' INT; touch {}; while :; do sleep 0.1; done",
            ended.display(),
            ready.display()
        );
        let server = OwnServer::start(command(0, 1, &script));
        while !ready.exists() {
            tokio::task::yield_now().await;
        }
        server.end().await;
        assert!(ended.exists());
    }

    #[tokio::test]
    async fn it_ends_with_all_that_it_has_started() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("child");
        let script = format!("sleep 600 & echo $! > {0}.new; mv {0}.new {0}; wait", file.display());
        let server = OwnServer::start(command(0, 1, &script));
        let child = loop {
            match std::fs::read_to_string(&file) {
                Ok(id) => break id.trim().parse::<i32>().unwrap(),
                Err(_) => tokio::task::yield_now().await,
            }
        };
        server.end().await;
        let child = Pid::from_raw(child).unwrap();
        // Nobody waits for it but the system: it may be a zombie for a moment.
        let status = |pid: Pid| std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
        let lives = || status(child).is_ok_and(|stat| !stat.contains(") Z "));
        tokio::time::timeout(Duration::from_secs(60), async {
            while lives() {
                tokio::task::yield_now().await;
            }
        })
        .await
        .unwrap();
    }
}
