//! Carries out a plan on Kubernetes: checks, installs, retries, takes away. Helm and kubectl do it, with the rights of their user.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, anyhow, bail};
use conductor::ClusterState;
use conductor::objects::{POOL_LABEL, RELEASE_LABEL};
use conductor::template::RETRY;
use jiff::Timestamp;
use serde_json::Value;

use super::plan::LaunchPlan;
use super::table::{Sizes, WeightsPlace};
use super::values::{KEYS_SECRET, WEIGHTS_SECRET, provider_keys};
use crate::kit::exit_code::usage;
use crate::kit::output::say;
use crate::kit::whole_file;

/// The chart's `run.extend` where a configuration is a run of its own.
const EXTEND_NEVER: &str = "never";

/// How long helm waits for workers that drain before it removes the release, in its words: a round may take minutes.
const DRAIN_MAX: &str = "30m";

/// The run that a release was installed with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledRun {
    /// Its configuration; empty if there is none.
    pub config: String,
    /// The run that this is added to.
    pub extend: Option<String>,
}

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
    /// Values that win over those of the plan, such as image and storage; repeatable. With a shared volume for weights in
    /// them (sharedPvcStorage), the plan takes it that servers load from there.
    #[arg(long = "base", value_name = "FILE")]
    base: Vec<PathBuf>,
    /// The helm program.
    #[arg(long, value_name = "PROGRAM", env = "KGFLEET_HELM", default_value = "helm")]
    helm: PathBuf,
    /// The kubectl program.
    #[arg(long, value_name = "PROGRAM", env = "KGFLEET_KUBECTL", default_value = "kubectl")]
    kubectl: PathBuf,
}

impl Release {
    /// Installs or upgrades the release with these values; the chart submits the configuration, if there is one.
    pub fn install(&self, values: &Value, run: Option<&Path>, extend: Option<&str>) -> anyhow::Result<()> {
        let mut file = tempfile::Builder::new().prefix("kgfleet-values-").suffix(".yaml").tempfile()?;
        file.write_all(serde_saphyr::to_string(values)?.as_bytes())?;
        let mut command =
            self.helm(&["upgrade", "--install", &self.release, &self.chart, "--create-namespace"]);
        command.arg("--values").arg(file.path());
        for base in &self.base {
            command.arg("--values").arg(base);
        }
        if let Some(run) = run {
            command.arg("--set-file").arg(format!("run.config={}", run.display()));
            let toml = run.extension().is_some_and(|extension| extension == "toml");
            command.args(["--set", if toml { "run.format=toml" } else { "run.format=yaml" }]);
        }
        if let Some(run) = extend {
            command.arg("--set-string").arg(format!("run.extend={run}"));
        }
        self.call_helm(command)
    }

    /// The run that the release was installed with; `None` if there is no such release.
    pub fn installed(&self) -> anyhow::Result<Option<InstalledRun>> {
        let output = self.helm_output(self.helm(&["get", "values", &self.release, "--output", "json"]))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            if said.contains("not found") {
                return Ok(None);
            }
            bail!("{} ended with {}: {}", self.helm.display(), output.status, said.trim());
        }
        // A release without values has `null`.
        let values: Value = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("{} answers what is not understood", self.helm.display()))?;
        let text = |key: &str| values["run"][key].as_str().map(str::to_owned);
        let extend = text("extend").filter(|run| run != EXTEND_NEVER);
        Ok(Some(InstalledRun { config: text("config").unwrap_or_default(), extend }))
    }

    /// Removes the release, after the chart's hook has ended the conductor and drained all workers. Records, tokens and
    /// certificates stay.
    pub fn remove(&self) -> anyhow::Result<()> {
        self.call_helm(self.helm(&["uninstall", &self.release, "--timeout", DRAIN_MAX]))
    }

    /// What the plan needs and the namespace lacks, with what to do about it.
    pub fn lacks(&self, plan: &LaunchPlan, sizes: &Sizes) -> anyhow::Result<Vec<String>> {
        let mut lacks = Vec::new();
        let mut needs = vec![(KEYS_SECRET, provider_keys(plan))];
        if plan.served.iter().any(|model| sizes.models[&model.model].gated) {
            needs.push((WEIGHTS_SECRET, BTreeSet::from(["token".to_owned()])));
        }
        for (secret, keys) in needs.into_iter().filter(|(_, keys)| !keys.is_empty()) {
            let found = self.kubectl(&format!("get secret {secret} --ignore-not-found -o json"))?;
            let found: Value = serde_json::from_slice(&found.stdout).unwrap_or_default();
            let missing: Vec<String> =
                keys.into_iter().filter(|key| found["data"].get(key).is_none()).collect();
            if !missing.is_empty() {
                let literals: Vec<String> =
                    missing.iter().map(|key| format!("--from-literal={key}=...")).collect();
                lacks.push(format!(
                    "the Secret {secret} in {} lacks {}: kubectl -n {} create secret generic {secret} {}",
                    self.namespace,
                    missing.join(", "),
                    self.namespace,
                    literals.join(" ")
                ));
            }
        }
        Ok(lacks)
    }

    pub fn name(&self) -> &str {
        &self.release
    }

    /// Where servers have their weights from, by one's own values, of which the last ones win. What cannot be read is for
    /// helm to refuse, which also takes addresses.
    pub fn weights_place(&self) -> WeightsPlace {
        let mut place = WeightsPlace::default();
        for file in &self.base {
            match has_shared_volume(file) {
                Ok(Some(true)) => place = WeightsPlace::SharedVolume,
                Ok(Some(false)) => place = WeightsPlace::Afar,
                Ok(None) => {}
                Err(error) => {
                    say(&format!("warning: the plan does not know what is in {}: {error:#}", file.display()));
                }
            }
        }
        place
    }

    /// The pools of the release with their servers, as the cluster knows them.
    ///
    /// # Errors
    /// kubectl failed, or the namespace has nothing of such a release.
    pub fn pools(&self) -> anyhow::Result<ClusterState> {
        let kinds = "cronjobs.batch,jobs.batch,pods";
        let state = self.listed(&format!("get {kinds} --selector {} -o json", self.selector()))?;
        if state.is_empty() {
            bail!("there is no release `{}` in the namespace `{}`", self.release, self.namespace);
        }
        Ok(state)
    }

    /// The same, with the warnings of the cluster about them, as far as they may be read.
    pub fn pools_with_warnings(&self) -> anyhow::Result<ClusterState> {
        let mut state = self.pools()?;
        match self.listed("get events --field-selector type=Warning -o json") {
            Ok(listed) => state.events = listed.events,
            Err(error) => say(&format!("warning: the events of the cluster are left out: {error:#}")),
        }
        Ok(state)
    }

    fn listed(&self, words: &str) -> anyhow::Result<ClusterState> {
        let output = self.kubectl(words)?;
        let list = serde_json::from_slice(&output.stdout)?;
        ClusterState::of_list(list)
            .with_context(|| format!("{} answers what is not understood", self.kubectl.display()))
    }

    /// Lets the conductor try a pool again.
    pub fn retry(&self, pool: &str) -> anyhow::Result<()> {
        let selector = format!("{},{POOL_LABEL}={pool}", self.selector());
        let state = self.pools()?;
        let known: Vec<&str> = state.cron_jobs.iter().map(|cron_job| cron_job.metadata.pool()).collect();
        if !known.contains(&pool) {
            return Err(usage!("{} has no pool `{pool}`; it has: {}", self.release, known.join(", ")));
        }
        let now = Timestamp::now();
        self.kubectl(&format!("annotate cronjobs.batch --selector {selector} --overwrite {RETRY}={now}"))?;
        say(&format!(
            "what failed of {pool} before now does not count any more, and a server that has not started is made anew"
        ));
        Ok(())
    }

    fn selector(&self) -> String {
        format!("{RELEASE_LABEL}={}", self.release)
    }

    fn helm(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.helm);
        command.args(arguments).args(["--namespace", &self.namespace]);
        command
    }

    fn helm_output(&self, mut command: Command) -> anyhow::Result<Output> {
        command.output().with_context(|| {
            format!("cannot start {}: install Helm 3 or later, or name it with --helm", self.helm.display())
        })
    }

    fn call_helm(&self, command: Command) -> anyhow::Result<()> {
        // Helm's own words go to standard error, because standard output is the plan's.
        let output = self.helm_output(command)?;
        eprint!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if !output.status.success() {
            bail!("{} ended with {}", self.helm.display(), output.status);
        }
        Ok(())
    }

    /// What kubectl answers to these words.
    fn kubectl(&self, words: &str) -> anyhow::Result<Output> {
        let mut command = Command::new(&self.kubectl);
        command.args(words.split(' ')).args(["--namespace", &self.namespace]);
        let output = command.output().with_context(|| {
            format!("cannot start {}: install kubectl, or name it with --kubectl", self.kubectl.display())
        })?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("{} ended with {}: {}", self.kubectl.display(), output.status, said.trim());
        }
        Ok(output)
    }
}

/// Whether values of the chart say that all servers share a volume with weights; `None` if they say nothing about it.
fn has_shared_volume(file: &Path) -> anyhow::Result<Option<bool>> {
    let text = whole_file::read_text(file)?;
    let values: Value = serde_saphyr::from_str(&text).map_err(|error| anyhow!("{error}"))?;
    Ok(values["sharedPvcStorage"]["enabled"].as_bool())
}
