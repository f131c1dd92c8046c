//! Why a child died, and whether its answer has to do with it.
//!
//! An answer makes a child use processor time, memory and stack; nothing else that ends a process comes from it.
//! Signals from outside, a kernel that is short of memory, a machine that lets the child starve: these are troubles of
//! ours, and a model is never judged by them.

use std::time::Duration;

use rustix::process::Signal;
use tasks::Limit;

/// What is known of a child that gave no verdict.
#[derive(Clone, Debug)]
pub(super) struct Evidence {
    /// Why it was not listened to any more.
    pub(super) trouble: Trouble,
    /// The signal that ended it; none where it ended by itself or was ended by its parent.
    pub(super) signal: Option<i32>,
    /// The beginning of what it wrote to its standard error.
    pub(super) last_words: String,
    /// Processor time that its last judgement took, where the system tells.
    pub(super) cpu: Option<Duration>,
    /// Processor time that a judgement may take.
    pub(super) cpu_max: Duration,
}

/// Why an exchange with a child failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// It did not get on: it was stopped, or got next to no processor time.
    Starved,
    /// It took longer than it may.
    Late,
    /// It closed its pipes, which it only does by ending.
    Ended,
    /// It sent what no child sends.
    Garbage,
}

/// What a death means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Death {
    /// The answer hit this limit, and the child's own accounts prove it.
    Proven(Limit),
    /// An answer can cause this, and so can a bad moment.
    Suspected(Limit),
    /// No answer can cause this.
    Ours(String),
}

/// Processor time by which the accounts of a dead process fall short: they are kept in ticks of 10 ms, twice.
const ACCOUNTS_SHORT_MAX: Duration = Duration::from_millis(50);

impl Evidence {
    /// The verdict on the death.
    pub(super) fn death(&self) -> Death {
        if self.trouble != Trouble::Ended {
            return self.ours();
        }
        let died_by = |signals: &[Signal]| signals.iter().any(|signal| self.signal == Some(signal.as_raw()));
        if died_by(&[Signal::XCPU]) {
            return match self.cpu {
                Some(cpu) if cpu + ACCOUNTS_SHORT_MAX >= self.cpu_max => Death::Proven(Limit::CpuTime),
                Some(_) => self.ours(),
                None => Death::Suspected(Limit::CpuTime),
            };
        }
        let crashed = died_by(&[Signal::ABORT, Signal::SEGV, Signal::BUS, Signal::ILL, Signal::FPE]);
        if crashed && self.last_words.contains("overflowed its stack") {
            Death::Proven(Limit::Nesting)
        } else if crashed && self.last_words.contains("memory allocation") {
            // The address space is full, or the machine's memory was for a moment.
            Death::Suspected(Limit::Memory)
        } else if crashed || (self.signal.is_none() && self.last_words.contains("panicked at")) {
            Death::Suspected(Limit::Crash)
        } else {
            self.ours()
        }
    }

    fn ours(&self) -> Death {
        let what = match (self.trouble, self.signal) {
            (Trouble::Starved, _) => "it was stopped or got next to no processor time".to_owned(),
            (Trouble::Late, _) => "it took too long".to_owned(),
            (Trouble::Garbage, _) => "it broke the protocol".to_owned(),
            (Trouble::Ended, Some(signal)) => format!("signal {signal} ended it"),
            (Trouble::Ended, None) => "it ended by itself".to_owned(),
        };
        let words = self.last_words.trim();
        Death::Ours(if words.is_empty() { what } else { format!("{what}: {words}") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: Duration = Duration::from_secs(12);

    fn death(signal: Option<Signal>, last_words: &str, cpu: Option<Duration>) -> Death {
        let signal = signal.map(Signal::as_raw);
        let trouble = Trouble::Ended;
        Evidence { trouble, signal, last_words: last_words.into(), cpu, cpu_max: BUDGET }.death()
    }

    #[test]
    fn what_the_answer_did_is_a_limit() {
        let spent = |cpu| death(Some(Signal::XCPU), "", cpu);
        assert_eq!(spent(Some(BUDGET - Duration::from_millis(20))), Death::Proven(Limit::CpuTime));
        assert_eq!(spent(None), Death::Suspected(Limit::CpuTime));
        let stack = "\nthread 'judge' has overflowed its stack\nfatal runtime error: stack overflow\n";
        assert_eq!(death(Some(Signal::ABORT), stack, None), Death::Proven(Limit::Nesting));
        let memory = "memory allocation of 536870912 bytes failed\n";
        assert_eq!(death(Some(Signal::ABORT), memory, None), Death::Suspected(Limit::Memory));
        let crash = Death::Suspected(Limit::Crash);
        assert_eq!(death(Some(Signal::SEGV), "", None), crash);
        assert_eq!(death(None, "thread 'judge' panicked at a.rs:1:1:\nindex out of bounds", None), crash);
    }

    #[test]
    fn what_no_answer_can_do_is_ours() {
        let ours = |death: Death| matches!(death, Death::Ours(_));
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
