//! The jobs of a plan on Slurm: for each model an array with a task for each server.

use std::fmt;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail};
use coordinator::configuration::Configuration;

use super::plan::{LaunchPlan, ModelOnGpus};
use super::table::{Size, Sizes};
use crate::engine::submit;
use crate::kit::exit_code::usage;
use crate::place::remote::{FLEET_ENV, Remote};

/// Maximum number of servers of a model.
const SERVERS_MAX: u32 = 1_000;

/// Longest time to wait for a coordinator.
const COORDINATOR_WAIT: Duration = Duration::from_secs(600);

/// Shortest time for which a server may load, in minutes: the table's times are estimates.
const LOAD_MINUTES_MIN: u32 = 30;

/// Options for a launch on Slurm.
#[derive(Clone, Debug, clap::Args)]
pub struct SlurmOptions {
    /// Run on Slurm: submit the benchmark, and with sbatch an array of jobs for each model and each judge. They end and come
    /// back by themselves. Jobs take KGFLEET_TOKEN_FILE, KGFLEET_CA and the variables of deploy/slurm/worker.sbatch from the
    /// environment.
    #[arg(long, conflicts_with_all = ["apply", "values", "teardown", "status", "retry", "json"])]
    pub slurm: bool,
    /// Print the command lines, and run none.
    #[arg(long, requires = "slurm")]
    pub dry_run: bool,
    /// Servers of each model. Those that are not needed end.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        requires = "slurm",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(SERVERS_MAX))
    )]
    servers: u32,
    /// An argument for sbatch, such as --sbatch=--partition=gpu; repeatable.
    #[arg(long, value_name = "ARGUMENT", requires = "slurm", allow_hyphen_values = true)]
    sbatch: Vec<String>,
    /// The script of the jobs.
    #[arg(long, value_name = "FILE", default_value = "deploy/slurm/worker.sbatch", requires = "slurm")]
    script: PathBuf,
    /// File with the token of the workers. Default: the one of the caller.
    #[arg(long, value_name = "FILE", env = "KGFLEET_POOL_TOKEN_FILE")]
    pool_token_file: Option<PathBuf>,
}

impl SlurmOptions {
    /// Submits the benchmark and starts the jobs of the plan, or prints what would do so.
    pub fn carry_out(
        &self,
        configuration: &Configuration,
        config: Option<&Path>,
        plan: &LaunchPlan,
        sizes: &Sizes,
        remote: Option<&Remote>,
    ) -> anyhow::Result<()> {
        tell(plan, sizes);
        let line = |model: &ModelOnGpus| self.line(model, &sizes.models[&model.model], remote);
        let lines = plan.served.iter().map(line);
        let mut out = io::stdout().lock();
        if self.dry_run {
            let config = config.map_or("quick".into(), Path::to_string_lossy);
            writeln!(out, "kgfleet submit {}", quoted(&config))?;
            for line in lines {
                writeln!(out, "{line}")?;
            }
            return Ok(());
        }
        let Some(remote) = remote else {
            return Err(usage!("name the coordinator that the compute nodes reach (--fleet)"));
        };
        if !self.script.is_file() {
            return Err(usage!(
                "there is no {}: name the script of the jobs with --script",
                self.script.display()
            ));
        }
        // Nothing is submitted where no job can be started.
        let sbatch = Command::new("sbatch").arg("--version").output();
        sbatch.context("cannot start sbatch: run this where jobs are submitted, or add --dry-run")?;
        let view = submit::submit(remote, configuration, None, COORDINATOR_WAIT)?;
        writeln!(out, "{}", view.run)?;
        for line in lines {
            let output = line.command().output().with_context(|| format!("cannot start {line}"))?;
            if !output.status.success() {
                bail!(
                    "{} was submitted, but not all of its jobs: {line} ended with {}: {}",
                    view.run,
                    output.status,
                    String::from_utf8_lossy(&output.stderr).trim()
                );
            }
            out.write_all(&output.stdout)?;
        }
        Ok(())
    }

    fn line(&self, model: &ModelOnGpus, size: &Size, remote: Option<&Remote>) -> SbatchLine {
        let each = model.pool.gpus;
        let wait = size.load_minutes.saturating_mul(2).max(LOAD_MINUTES_MIN).saturating_mul(60);
        let mut variables = vec![
            ("MODEL".to_owned(), model.model.clone()),
            ("VLLM_ARGS".to_owned(), vllm_arguments(model, size)),
            ("SERVER_WAIT".to_owned(), wait.to_string()),
        ];
        if let Some(remote) = remote {
            variables.push((FLEET_ENV.to_owned(), remote.listed()));
        }
        if let Some(file) = &self.pool_token_file {
            variables.push(("KGFLEET_TOKEN_FILE".to_owned(), file.display().to_string()));
        }
        let mut arguments = vec![
            format!("--array=1-{}", self.servers),
            format!("--nodes={}", model.pool.parts),
            format!("--gpus-per-node={each}"),
            format!("--cpus-per-task={}", each.saturating_mul(2).saturating_add(2)),
        ];
        // Slurm's units are those of Kubernetes without the last letter.
        let memory = size.memory.as_deref().map(|memory| memory.trim_end_matches('i'));
        arguments.extend(memory.map(|memory| format!("--mem={memory}")));
        arguments.extend(self.sbatch.iter().cloned());
        arguments.push(self.script.display().to_string());
        SbatchLine { variables, arguments }
    }
}

/// What a user must know besides the lines.
fn tell(plan: &LaunchPlan, sizes: &Sizes) {
    if !plan.hosted.is_empty() {
        let labels: Vec<&str> = plan.hosted.iter().map(|model| model.label.as_str()).collect();
        eprintln!(
            "hosted, without GPUs: {}; a worker with --connector asks them, on any machine",
            labels.join(", ")
        );
    }
    if plan.served.iter().any(|model| sizes.models[&model.model].gated) {
        eprintln!("gated weights: jobs take HF_TOKEN from the environment");
    }
    for (label, why) in &plan.refused {
        eprintln!("does not fit: {label}: {why}");
    }
}

/// What `vllm serve` is told besides the model.
fn vllm_arguments(model: &ModelOnGpus, size: &Size) -> String {
    let mut arguments = Vec::new();
    if model.pool.gpus > 1 {
        arguments.push(format!("--tensor-parallel-size {}", model.pool.gpus));
    }
    if model.pool.is_gang() {
        arguments.push(format!("--pipeline-parallel-size {}", model.pool.parts));
    }
    if let Some(length) = size.max_model_len {
        arguments.push(format!("--max-model-len {length}"));
    }
    if size.kind != "vllm" {
        arguments.push(format!("--runner pooling --convert {}", size.kind));
    }
    arguments.join(" ")
}

/// A command line of sbatch; shown as a shell takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SbatchLine {
    variables: Vec<(String, String)>,
    arguments: Vec<String>,
}

impl SbatchLine {
    fn command(&self) -> Command {
        let mut command = Command::new("sbatch");
        command.args(&self.arguments).envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }
}

impl fmt::Display for SbatchLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.variables {
            write!(f, "{name}={} ", quoted(value))?;
        }
        write!(f, "sbatch")?;
        self.arguments.iter().try_for_each(|argument| write!(f, " {}", quoted(argument)))
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_one_word_for_a_shell() {
        assert_eq!(quoted("org/model-7B"), "org/model-7B");
        assert_eq!(quoted("--max-model-len 5"), "'--max-model-len 5'");
        assert_eq!(quoted("a'b $HOME"), r"'a'\''b $HOME'");
        assert_eq!(quoted(""), "''");
    }
}
