//! Carries out a plan: calls helm, submits the run, follows it, wave by wave.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{anyhow, bail, Context};
use domain::{ModelLabel, RunId, ServiceError};
use domain::control::{BenchmarkView, Control, RunPhase, Submission};
use proto::client::Client;
use serde_json::Value;
use stages::{names, RunName};

use crate::kit::exit_code::explained;
use super::plan::ModelOnGpus;

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
        match client.runs().await {
            Ok(runs) => {
                failures = 0;
                let ours: Vec<&BenchmarkView> =
                    runs.iter().filter(|other| belongs(&other.run, run)).collect();
                if let Some(view) = ours.iter().find(|view| view.phase == RunPhase::Cancelled) {
                    return Err(anyhow!("{} was cancelled", view.run));
                }
                if ours.iter().any(|view| view.run == *run && view.phase == RunPhase::Finished) {
                    return Ok(true);
                }
                settled = if is_done(&ours, run, wave) { settled + 1 } else { 0 };
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

/// Whether a run is the one that was submitted, or one of a pipeline that was submitted.
fn belongs(other: &RunId, submitted: &RunId) -> bool {
    other == submitted || RunName::read(other).is_some_and(|name| name.pipeline == submitted.as_str())
}

/// Whether every model of a wave has a record of all that it was asked, and every judge of all that it was asked so far.
fn is_done(runs: &[&BenchmarkView], submitted: &RunId, wave: &[ModelOnGpus]) -> bool {
    let pipeline = runs.iter().any(|view| view.run != *submitted);
    wave.iter().all(|served| match (served.judge, pipeline) {
        (true, _) => !runs.iter().any(|view| {
            !view.phase.is_over() && asks(view, &served.label).is_some_and(|remaining| remaining > 0)
        }),
        (false, true) => {
            let slug = names::slug(&ModelLabel::new(&*served.label));
            let of_model = |view: &&&BenchmarkView| {
                RunName::read(&view.run).is_some_and(|name| name.stage == names::ASK && name.model == slug)
            };
            // A run that is over may be listed without its models.
            runs.iter()
                .find(of_model)
                .is_some_and(|view| view.phase == RunPhase::Finished || asks(view, &served.label) == Some(0))
        }
        (false, false) => runs.iter().any(|view| asks(view, &served.label) == Some(0)),
    })
}

/// Dialogues of a model that have no record yet; `None` where a run does not ask it.
fn asks(view: &BenchmarkView, label: &str) -> Option<u64> {
    view.models.iter().find(|model| model.model.as_str() == label).map(domain::control::ModelView::remaining)
}
