//! Why a child died, and whether its answer is the cause.
//!
//! An answer can make a child use CPU time, memory and stack, and nothing else that kills a process. Signals from
//! outside, a kernel short of memory, a machine that starves the child: these are external causes, and no model is
//! judged by them.

use std::time::Duration;

use rustix::process::Signal;
use tasks::Limit;

/// The facts about a child that gave no verdict.
#[derive(Clone, Debug)]
pub(super) struct Evidence {
    /// Why communication with it ended.
    pub(super) trouble: Trouble,
    /// The signal that killed it; `None` if it exited by itself or was killed by its parent.
    pub(super) signal: Option<i32>,
    /// The beginning of its standard error output.
    pub(super) last_words: String,
    /// CPU time of its last judgement, if the system reports it.
    pub(super) cpu: Option<Duration>,
    /// CPU limit of a judgement.
    pub(super) cpu_max: Duration,
}

/// Why an exchange with a child failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// It made no progress: it was stopped, or got almost no CPU time.
    Starved,
    /// It took longer than it may.
    Late,
    /// It closed its pipes, which happens only when it exits.
    Ended,
    /// It sent an invalid message.
    Garbage,
}

/// The interpretation of a death.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ChildDeath {
    /// The answer hit this limit, proven by the child's resource usage.
    Proven(Limit),
    /// Either the answer or a temporary shortage may be the cause.
    Suspected(Limit),
    /// No answer can cause this.
    Ours(String),
}

impl ChildDeath {
    /// The limit that the answer hit, or seems to have hit.
    pub(super) fn limit(&self) -> Option<Limit> {
        match self {
            Self::Proven(limit) | Self::Suspected(limit) => Some(*limit),
            Self::Ours(_) => None,
        }
    }
}

/// Error of the reported CPU time of a dead process: it is counted in ticks of 10 ms, twice.
const ACCOUNTS_SHORT_MAX: Duration = Duration::from_millis(50);

impl Evidence {
    /// Interprets the death.
    pub(super) fn death(&self) -> ChildDeath {
        if self.trouble != Trouble::Ended {
            return self.ours();
        }
        let died_by = |signals: &[Signal]| signals.iter().any(|signal| self.signal == Some(signal.as_raw()));
        if died_by(&[Signal::XCPU]) {
            return match self.cpu {
                Some(cpu) if cpu + ACCOUNTS_SHORT_MAX >= self.cpu_max => ChildDeath::Proven(Limit::CpuTime),
                Some(_) => self.ours(),
                None => ChildDeath::Suspected(Limit::CpuTime),
            };
        }
        let crashed = died_by(&[Signal::ABORT, Signal::SEGV, Signal::BUS, Signal::ILL, Signal::FPE]);
        if crashed && self.last_words.contains("overflowed its stack") {
            ChildDeath::Proven(Limit::Nesting)
        } else if crashed && self.last_words.contains("memory allocation") {
            // Either the address space is full, or the machine was short of memory for a moment.
            ChildDeath::Suspected(Limit::Memory)
        } else if crashed || (self.signal.is_none() && self.last_words.contains("panicked at")) {
            ChildDeath::Suspected(Limit::Crash)
        } else {
            self.ours()
        }
    }

    fn ours(&self) -> ChildDeath {
        let what = match (self.trouble, self.signal) {
            (Trouble::Starved, _) => "it was stopped or got almost no CPU time".to_owned(),
            (Trouble::Late, _) => "it took too long".to_owned(),
            (Trouble::Garbage, _) => "it broke the protocol".to_owned(),
            (Trouble::Ended, Some(signal)) => format!("signal {signal} killed it"),
            (Trouble::Ended, None) => "it exited by itself".to_owned(),
        };
        let words = self.last_words.trim();
        ChildDeath::Ours(if words.is_empty() { what } else { format!("{what}: {words}") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: Duration = Duration::from_secs(12);

    fn death(signal: Option<Signal>, last_words: &str, cpu: Option<Duration>) -> ChildDeath {
        let signal = signal.map(Signal::as_raw);
        let trouble = Trouble::Ended;
        Evidence { trouble, signal, last_words: last_words.into(), cpu, cpu_max: BUDGET }.death()
    }

    #[test]
    fn what_the_answer_did_is_a_limit() {
        let spent = |cpu| death(Some(Signal::XCPU), "", cpu);
        assert_eq!(spent(Some(BUDGET - Duration::from_millis(20))), ChildDeath::Proven(Limit::CpuTime));
        assert_eq!(spent(None), ChildDeath::Suspected(Limit::CpuTime));
        let stack = "\nthread 'judge' has overflowed its stack\nfatal runtime error: stack overflow\n";
        assert_eq!(death(Some(Signal::ABORT), stack, None), ChildDeath::Proven(Limit::Nesting));
        let memory = "memory allocation of 536870912 bytes failed\n";
        assert_eq!(death(Some(Signal::ABORT), memory, None), ChildDeath::Suspected(Limit::Memory));
        let crash = ChildDeath::Suspected(Limit::Crash);
        assert_eq!(death(Some(Signal::SEGV), "", None), crash);
        assert_eq!(death(None, "thread 'judge' panicked at a.rs:1:1:\nindex out of bounds", None), crash);
    }

    #[test]
    fn what_no_answer_can_do_is_ours() {
        let ours = |death: ChildDeath| matches!(death, ChildDeath::Ours(_));
        for signal in [Signal::KILL, Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT, Signal::STOP] {
            assert!(ours(death(Some(signal), "", Some(BUDGET))), "{signal:?}");
        }
        assert!(ours(death(Some(Signal::XCPU), "", Some(BUDGET / 2))), "sent by somebody else");
        assert!(ours(death(Some(Signal::KILL), "memory allocation of 8 bytes failed", None)));
        assert!(ours(death(None, "", None)), "it closed its pipes");
        for trouble in [Trouble::Starved, Trouble::Late, Trouble::Garbage] {
            let evidence =
                Evidence { trouble, signal: None, last_words: String::new(), cpu: None, cpu_max: BUDGET };
            assert!(ours(evidence.death()), "{trouble:?}");
        }
    }
}
