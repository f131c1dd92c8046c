//! When a worker ends by itself, and with which exit code.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use domain::exchange::Departure;
use service_kit::shutdown::StopSignal;
use worker::until_done::WorkerEnding;
use worker::{EndRules, IdleAfter};

use crate::kit::arguments::{idle_after, seconds};
use crate::kit::exit_code::{ExitCode, usage};

/// Options for the end that a worker decides on itself.
#[derive(Debug, clap::Args)]
pub struct UntilOptions {
    /// End when no run and no judged benchmark has work left for the --model of this worker, and all records are delivered.
    #[arg(long)]
    until_done: bool,
    /// Seconds to stay when there is no work now, but later: runs are paused, judges are asked later, or nobody has
    /// submitted a run of the model yet. `auto`: as long as loading the server took, 5 to 60 minutes. One that never got
    /// work stays for a minute at most.
    #[arg(
        long,
        value_name = "auto|SECONDS",
        default_value = "auto",
        value_parser = idle_after,
        requires = "until_done"
    )]
    idle_after: IdleAfter,
    /// Seconds for which no server may answer, at the start or later, before the worker gives up with exit code 3.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value = "1800",
        value_parser = seconds,
        requires = "until_done"
    )]
    server_wait: Duration,
    /// Also end when other workers hold all that is left.
    #[arg(long, requires = "until_done")]
    leave_surplus: bool,
    /// Exit code if there is no work now, but there may be later.
    #[arg(long, value_name = "CODE", default_value_t = 75, requires = "until_done")]
    later_code: u8,
}

/// The signal that ended a worker, if one did.
#[derive(Clone, Default)]
pub struct Signalled(Arc<OnceLock<StopSignal>>);

impl Signalled {
    /// Notes a signal; the first one counts.
    pub fn note(&self, signal: StopSignal) {
        let _ = self.0.set(signal);
    }

    /// The exit code of what was ended by the signal, or by an operator, before its work was done.
    pub fn exit_code(&self) -> ExitCode {
        match self.0.get() {
            Some(StopSignal::Interrupt) => ExitCode::Interrupted,
            Some(StopSignal::Terminate) | None => ExitCode::Terminated,
        }
    }
}

impl UntilOptions {
    /// The rules, for a worker of these models.
    pub fn rules(&self, models: &[String]) -> anyhow::Result<Option<EndRules>> {
        if !self.until_done {
            return Ok(None);
        }
        if models.is_empty() {
            return Err(usage!("--until-done needs --model: the models whose work is waited for"));
        }
        Ok(Some(EndRules {
            idle_after: self.idle_after,
            server_wait: self.server_wait,
            leave_surplus: self.leave_surplus,
        }))
    }

    /// The exit code of a worker that has ended.
    pub fn exit_code(&self, ended: Option<WorkerEnding>, signalled: &Signalled) -> anyhow::Result<ExitCode> {
        let Some(WorkerEnding { why, reason }) = ended else {
            return Ok(if self.until_done { signalled.exit_code() } else { ExitCode::Success });
        };
        match why {
            Departure::Done | Departure::Surplus => Ok(ExitCode::Success),
            Departure::Held | Departure::Later => Ok(ExitCode::Later(self.later_code)),
            Departure::Drained => Ok(signalled.exit_code()),
            Departure::Failed => Err(anyhow::anyhow!("{reason}")),
        }
    }
}
