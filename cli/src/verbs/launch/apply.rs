//! Carries out a plan: calls helm, submits the run, follows it, wave by wave.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use benchmarks::names;
use domain::control::{BenchmarkView, Control, RunLine, RunPhase, Submission};
use domain::{RunId, ServiceError};
use proto::client::Client;
use serde_json::Value;

use super::plan::ModelOnGpus;
use crate::kit::exit_code::explained;

/// Time between two looks at the runs.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Number of consecutive looks in which judges must have nothing to do. Between two stages of a model there is a moment
/// without work, until a coordinator has derived the next questions.
const SETTLED_LOOKS: u32 = 5;

/// Maximum number of consecutive failed looks: a coordinator that is being installed needs minutes.
const FAILURES_MAX: u32 = 300;

/// The release that a launch installs.
#[derive(Clone, Debug, clap::Args)]
pub struct Release {
    /// Name of the Helm release.
    #[arg(long, default_value = "kgfleet")]
    release: String,
    /// Namespace of the release.
    #[arg(long, default_value = "kgfleet")]
    namespace: String,
    /// The chart.
    #[arg(long, value_name = "DIR", default_value = "helm/kgfleet")]
    chart: String,
    /// Values that win over those of the plan, such as image and storage; repeatable.
    #[arg(long = "base", value_name = "FILE")]
    base: Vec<PathBuf>,
    /// The helm program.
    #[arg(long, value_name = "PROGRAM", env = "KGFLEET_HELM", default_value = "helm")]
    helm: PathBuf,
}

impl Release {
    /// Installs or upgrades the release with these values; with a configuration, the chart submits it.
    pub fn install(&self, values: &Value, run: Option<&Path>) -> anyhow::Result<()> {
        let mut file = tempfile::Builder::new().prefix("kgfleet-values-").suffix(".yaml").tempfile()?;
        file.write_all(serde_saphyr::to_string(values)?.as_bytes())?;
        let mut command =
            self.command(&["upgrade", "--install", &self.release, &self.chart, "--create-namespace"]);
        command.arg("--values").arg(file.path());
        for base in &self.base {
            command.arg("--values").arg(base);
        }
        if let Some(run) = run {
            command.arg("--set-file").arg(format!("run.config={}", run.display()));
            let toml = run.extension().is_some_and(|extension| extension == "toml");
            command.args(["--set", if toml { "run.format=toml" } else { "run.format=yaml" }]);
        }
        self.call(command)
    }

    /// Removes the release. Records, tokens and certificates stay.
    pub fn remove(&self) -> anyhow::Result<()> {
        let command = self.command(&["uninstall", &self.release]);
        self.call(command)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.helm);
        command.args(arguments).args(["--namespace", &self.namespace]);
        command
    }

    fn call(&self, mut command: Command) -> anyhow::Result<()> {
        // Helm's own words go to standard error, because standard output is the plan's.
        let output = command.output().with_context(|| {
            format!("cannot start {}: install Helm 3 or later, or name it with --helm", self.helm.display())
        })?;
        eprint!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if !output.status.success() {
            bail!("{} ended with {}; nothing was submitted", self.helm.display(), output.status);
        }
        Ok(())
    }
}

/// Submits a run, as soon as a coordinator answers.
pub async fn submit(client: &Client, submission: Submission) -> anyhow::Result<BenchmarkView> {
    let mut failures = 0;
    loop {
        match client.submit(submission.clone()).await {
            Ok(queued) => return Ok(queued),
            Err(error) => wait(error, &mut failures).await?,
        }
    }
}

/// Waits until a wave has nothing left to do; after the last wave, until all runs are over. Returns whether they are.
pub async fn follow(client: &Client, run: &RunId, wave: &[ModelOnGpus], last: bool) -> anyhow::Result<bool> {
    let (mut failures, mut settled) = (0, 0);
    let needed = if wave.iter().any(|served| served.judge) { SETTLED_LOOKS } else { 1 };
    loop {
        match client.view(run).await {
            Ok(view) => {
                failures = 0;
                match view.phase {
                    RunPhase::Cancelled => return Err(anyhow!("{} was cancelled", view.run)),
                    RunPhase::Finished => return Ok(true),
                    RunPhase::Preparing | RunPhase::Active | RunPhase::Paused => {}
                }
                settled = if is_done(&view, wave) { settled + 1 } else { 0 };
                if !last && settled >= needed {
                    return Ok(false);
                }
            }
            Err(error) => {
                settled = 0;
                wait(error, &mut failures).await?;
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn wait(error: ServiceError, failures: &mut u32) -> anyhow::Result<()> {
    *failures += 1;
    if !error.code.is_transient() || *failures > FAILURES_MAX {
        return Err(explained(error));
    }
    tokio::time::sleep(LOOK_EVERY).await;
    Ok(())
}

/// Whether every model of a wave has a record of all that it was asked, and every judge of all that it was asked so far.
fn is_done(view: &BenchmarkView, wave: &[ModelOnGpus]) -> bool {
    wave.iter().all(|served| {
        let label = &*served.label;
        let mut runs = view.runs.iter().filter(|run| run.asks.as_str() == label);
        if served.judge {
            return runs.all(|run| run.phase.is_over() || run.remaining() == 0);
        }
        let is_answered = |run: &RunLine| run.phase == RunPhase::Finished || run.remaining() == 0;
        match runs.find(|run| run.stage == names::ASK) {
            Some(asking) => is_answered(asking),
            // One without judges has no runs beside itself.
            None => view.models.iter().any(|model| model.model.as_str() == label && model.remaining() == 0),
        }
    })
}
