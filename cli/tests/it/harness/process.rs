//! A `kgfleet` process: started, watched, signalled, ended.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// The binary under test, with nothing of this process's environment that would change what it does.
pub fn kgfleet() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kgfleet"));
    shield(&mut command);
    command
}

/// Takes away what would change the behaviour of a `kgfleet` below this command.
pub fn shield(command: &mut Command) {
    command.stdin(Stdio::null());
    // Nor into the checkout: what a command writes where it is started is for nobody to keep.
    command.current_dir(env!("CARGO_TARGET_TMPDIR"));
    // Nothing is written into the home of who runs the tests. Tests of several commands have a folder each, see `Data`.
    command.env("XDG_STATE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/state"));
    for name in [
        "KGFLEET_DATA_DIR",
        "KGFLEET_PASSWORD",
        "KGFLEET_TOKEN",
        "KGFLEET_TOKEN_FILE",
        "KGFLEET_UMASK",
        "ANTHROPIC_API_KEY",
        "GEMINI_API_KEY",
        "http_proxy",
        "HTTP_PROXY",
        "all_proxy",
        "ALL_PROXY",
    ] {
        command.env_remove(name);
    }
}

/// Runs a command to its end.
pub fn finish(command: &mut Command) -> Finished {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    Finished {
        command: format!("{command:?}"),
        status: output.status,
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Runs it in a folder, whose user knows nothing of other ones.
pub fn called(folder: &Path, arguments: &[&str]) -> Finished {
    finish(kgfleet().current_dir(folder).env("XDG_STATE_HOME", folder).args(arguments))
}

/// Standard output of such a call, which ends with this exit code.
#[track_caller]
pub fn ends(folder: &Path, arguments: &[&str], code: i32) -> String {
    called(folder, arguments).expect(code).stdout
}

/// What a process left behind.
#[derive(Debug)]
pub struct Finished {
    command: String,
    status: ExitStatus,
    /// Its data.
    pub stdout: String,
    /// Its talk.
    pub stderr: String,
}

impl Finished {
    /// The exit code; none after a signal.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Fails unless the process ended with this exit code.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.status.code(), Some(code), "exit code of {self}");
        self
    }

    /// Fails unless the talk holds all of these texts.
    #[track_caller]
    pub fn says(self, texts: &[&str]) -> Self {
        for text in texts {
            assert!(self.stderr.contains(text), "`{text}` is missing in the talk of {self}");
        }
        self
    }

    /// Fails unless the data holds all of these texts.
    #[track_caller]
    pub fn prints(self, texts: &[&str]) -> Self {
        for text in texts {
            assert!(self.stdout.contains(text), "`{text}` is missing in the output of {self}");
        }
        self
    }

    /// The data as one JSON value.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("no JSON ({error}) from {self}"))
    }
}

impl std::fmt::Display for Finished {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { command, status, stdout, stderr } = self;
        write!(f, "{command} ({status})\n--- stdout ---\n{stdout}\n--- stderr ---\n{stderr}\n---")
    }
}

/// A process that runs. One that is dropped is killed, so that a failing test leaves nothing behind.
pub struct Running {
    command: String,
    child: Child,
    stdout: Option<JoinHandle<String>>,
    stderr: Option<BufReader<ChildStderr>>,
    talk: String,
}

impl Running {
    /// Starts a command.
    pub fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        Self {
            command: format!("{command:?}"),
            child,
            stdout: Some(std::thread::spawn(move || read(stdout))),
            stderr: Some(BufReader::new(stderr)),
            talk: String::new(),
        }
    }

    /// Waits until the process says something, and returns the line. Fails when it ends without having said it.
    #[track_caller]
    pub fn until_it_says(&mut self, text: &str) -> String {
        loop {
            let mut line = String::new();
            let stderr = self.stderr.as_mut().expect("a process that is listened to");
            let length = stderr.read_line(&mut line).unwrap();
            assert!(length > 0, "{} ended without saying `{text}`:\n{}", self.command, self.talk);
            self.talk.push_str(&line);
            if line.contains(text) {
                return line;
            }
        }
    }

    /// Hears what else the process says and forgets it, so that one that talks much does not wait for a listener.
    pub fn go_on_listening(&mut self) {
        if let Some(mut stderr) = self.stderr.take() {
            std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
        }
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Sends a signal to the process and all of its group, as a terminal does. It must have been started with a group of
    /// its own.
    pub fn signal_group(&self, signal: Signal) {
        kill_process_group(self.pid(), signal).unwrap();
    }

    /// The processes that it has started.
    pub fn children(&self) -> Vec<Pid> {
        children_of(self.pid())
    }

    /// Whether the process has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for the end.
    pub fn finish(mut self) -> Finished {
        if let Some(stderr) = &mut self.stderr {
            stderr.read_to_string(&mut self.talk).unwrap();
        }
        let status = self.child.wait().unwrap();
        Finished {
            command: self.command.clone(),
            status,
            stdout: self.stdout.take().unwrap().join().unwrap(),
            stderr: std::mem::take(&mut self.talk),
        }
    }

    /// Its process id.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read(mut stdout: ChildStdout) -> String {
    let mut bytes = Vec::new();
    stdout.read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The processes that a process has started.
pub fn children_of(own: Pid) -> Vec<Pid> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
    pids.filter(|&pid| stat(pid).is_some_and(|(_, of)| of == own.as_raw_nonzero().get())).collect()
}

/// Whether the process still runs; one that waits to be reaped does not.
pub fn is_alive(pid: Pid) -> bool {
    stat(pid).is_some_and(|(state, _)| state != "Z")
}

/// State and parent of a process.
fn stat(pid: Pid) -> Option<(String, i32)> {
    let text = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    // The name stands in brackets and may hold anything.
    let mut fields = text.rsplit_once(") ")?.1.split(' ');
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}
