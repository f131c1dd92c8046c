//! A child process with its pipes: starting it, talking to it, and examining its death.

use std::io::{self, BufReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::SandboxConfig;
use super::death::{ChildDeath, Evidence, Trouble};
use super::protocol::{self, Judged, Ready, Request, Setup};
use crate::evaluate::EvaluatorError;

/// Bytes of a reply buffer kept for the next reply.
const BUFFER_BYTES_KEPT: usize = 1 << 20;

/// Bytes of a dead child's standard error that are read.
const LAST_WORDS_BYTES_MAX: u64 = 4096;

/// A child starves if it gets less than one part in this many of a CPU.
const STARVING_SHARE: u32 = 100;

/// A running child.
pub(super) struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    buffer: Vec<u8>,
    /// CPU time that it had used at its last message.
    spent: Duration,
}

/// Why an attempt gave no verdict.
pub(super) enum NoVerdict {
    /// No child can be started, or none can load its tasks; another one could not either.
    Failed(EvaluatorError),
    /// The child died, perhaps while it loaded its tasks.
    Died(ChildDeath),
}

impl Process {
    pub(super) fn start(config: &SandboxConfig) -> Result<Self, NoVerdict> {
        let failed = |error: &dyn std::fmt::Display| {
            NoVerdict::Failed(EvaluatorError::Start(format!("{}: {error}", config.program.display())))
        };
        let mut child = Command::new(&config.program)
            .args(&config.arguments)
            // The child must not see the parent's keys and endpoints.
            .env_clear()
            // Signals from a terminal are meant for the parent only.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| failed(&error))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed(&"no pipes"));
        };
        let output = BufReader::with_capacity(64 << 10, output);
        let mut process = Self { child, input, output, buffer: Vec::new(), spent: Duration::ZERO };
        // A child that does not read must not block the write of a long answer for ever.
        rustix::io::ioctl_fionbio(&process.input, true).map_err(|error| failed(&error))?;
        let patience =
            process.patience(config.limits.starved_after, Some(Instant::now() + config.limits.start));
        let setup = Setup {
            tasks: config.tasks.clone(),
            memory_bytes_max: config.limits.memory_bytes,
            cpu_seconds_max: config.limits.cpu_seconds,
        };
        match process.exchange(&setup, patience) {
            Ok((Ready::Ok(spent), _)) => {
                process.spent = spent;
                Ok(process)
            }
            Ok((Ready::Err(message), _)) => Err(NoVerdict::Failed(EvaluatorError::Start(message))),
            // It has no answer yet that could be the cause.
            Err(trouble) => Err(NoVerdict::Died(match process.post_mortem(trouble, Duration::MAX) {
                ChildDeath::Ours(why) => ChildDeath::Ours(format!("while it loaded its tasks, {why}")),
                ChildDeath::Proven(limit) | ChildDeath::Suspected(limit) => {
                    ChildDeath::Ours(format!("while it loaded its tasks: {}", limit.message()))
                }
            })),
        }
    }

    /// Makes one judgement; the reply, its length as text, and its CPU time. After an error the child must not be used any more.
    pub(super) fn judge(
        &mut self,
        request: &Request<'_>,
        starved_after: Duration,
    ) -> Result<(Judged, usize, Duration), Trouble> {
        let patience = self.patience(starved_after, None);
        let (judged, bytes): (Judged, usize) = self.exchange(request, patience)?;
        let cpu = judged.spent.saturating_sub(self.spent);
        self.spent = judged.spent;
        Ok((judged, bytes, cpu))
    }

    /// Kills the child if it still runs, and returns why it died. `cpu_max` is its CPU limit.
    pub(super) fn post_mortem(mut self, trouble: Trouble, cpu_max: Duration) -> ChildDeath {
        // A child's exit status is fixed before its pipes close, so this kill does not change it.
        let _ = self.child.kill();
        // The resource usage of a process is gone once it is reaped.
        let _ = waitid(WaitId::Pid(self.pid()), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        let cpu = processor_time(self.pid()).map(|total| total.saturating_sub(self.spent));
        let signal = self.child.wait().ok().and_then(|status| status.signal());
        let mut last_words = Vec::new();
        if let Some(stderr) = self.child.stderr.take() {
            let _ = stderr.take(LAST_WORDS_BYTES_MAX).read_to_end(&mut last_words);
        }
        let last_words = String::from_utf8_lossy(&last_words).into_owned();
        Evidence { trouble, signal, last_words, cpu, cpu_max }.death()
    }

    fn patience(&self, every: Duration, end: Option<Instant>) -> StallWatch {
        StallWatch { pid: self.pid(), every, next_look: Instant::now() + every, spent: self.spent, end }
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Sends one message and waits for the reply; returns the reply and its size.
    fn exchange<T: DeserializeOwned>(
        &mut self,
        message: &impl Serialize,
        patience: StallWatch,
    ) -> Result<(T, usize), Trouble> {
        let mut frame = Vec::new();
        protocol::write(&mut frame, message).map_err(|_| Trouble::Garbage)?;
        let mut pipes = Pipes { input: &mut self.input, output: &mut self.output, patience, lost: None };
        let reply = match pipes.write_all(&frame) {
            Ok(()) => protocol::read(&mut pipes, &mut self.buffer),
            Err(_) => Ok(None),
        };
        let reply = match (reply, pipes.lost) {
            (Ok(Some(reply)), _) => Ok((reply, self.buffer.len())),
            (_, Some(trouble)) => Err(trouble),
            (Ok(None), None) => Err(Trouble::Ended),
            (Err(error), None) if error.kind() == io::ErrorKind::UnexpectedEof => Err(Trouble::Ended),
            (Err(_), None) => Err(Trouble::Garbage),
        };
        // One huge verdict must not keep its buffer for the rest of the run.
        self.buffer.clear();
        self.buffer.shrink_to(BUFFER_BYTES_KEPT);
        reply
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Reaps the child on every path; waiting suffices if it has exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Both pipes to a child, with a limit on waiting.
struct Pipes<'a> {
    input: &'a mut ChildStdin,
    output: &'a mut BufReader<ChildStdout>,
    patience: StallWatch,
    /// Why communication failed.
    lost: Option<Trouble>,
}

/// Waits until a pipe can be used.
fn ready(
    pipe: BorrowedFd<'_>,
    flags: PollFlags,
    patience: &mut StallWatch,
    lost: &mut Option<Trouble>,
) -> io::Result<()> {
    loop {
        let left = patience.next_look.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::from_borrowed_fd(pipe, flags)], Some(&timeout)) {
            Ok(0) => {
                if let Err(trouble) = patience.renew() {
                    *lost = Some(trouble);
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

impl Read for Pipes<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.output.buffer().is_empty() {
            ready(self.output.get_ref().as_fd(), PollFlags::IN, &mut self.patience, &mut self.lost)?;
        }
        self.output.read(buffer)
    }
}

impl Write for Pipes<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.input.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    ready(self.input.as_fd(), PollFlags::OUT, &mut self.patience, &mut self.lost)?;
                }
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How long to wait for a reply: as long as the child makes progress, but not beyond `end`, if there is one.
struct StallWatch {
    pid: Pid,
    /// Time between two checks.
    every: Duration,
    next_look: Instant,
    /// CPU time of the child at the last check.
    spent: Duration,
    end: Option<Instant>,
}

impl StallWatch {
    /// Ends one check interval: returns whether to wait longer.
    fn renew(&mut self) -> Result<(), Trouble> {
        let now = Instant::now();
        if self.end.is_some_and(|end| now >= end) {
            return Err(Trouble::Late);
        }
        // If the system does not report it, the child is trusted: its CPU limit ends it.
        if let Some(spent) = processor_time(self.pid) {
            if spent.saturating_sub(self.spent) < self.every / STARVING_SHARE {
                return Err(Trouble::Starved);
            }
            self.spent = spent;
        }
        self.next_look = now + self.every;
        Ok(())
    }
}

/// CPU time that another process has used, including a dead one that is not reaped; `None` if the system does not
/// report it.
fn processor_time(pid: Pid) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    processor_ticks(&stat)
        .map(|ticks| Duration::from_secs(ticks) / rustix::param::clock_ticks_per_second() as u32)
}

/// User and system time in clock ticks: fields 14 and 15 of proc_pid_stat(5). The name, field 2, is in parentheses
/// and may contain anything.
fn processor_ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    user.checked_add(system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_read_past_any_name() {
        let stat =
            "7 (a) b (c) S 1 7 7 0 -1 4194560 100 0 0 0 250 13 0 0 20 0 2 0 100 1 1 18446744073709551615";
        assert_eq!(processor_ticks(stat), Some(263));
        assert_eq!(processor_ticks("7 (a) S 1"), None);
        assert!(!cfg!(target_os = "linux") || processor_time(rustix::process::getpid()).is_some());
    }
}
