//! Finds problems that would end a long run early, before it starts, and tells them.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;
use coordinator::configuration::{Configuration, Connector, ModelSpec};
use coordinator::matching::{Fit, says_it_can, why_nobody};
use coordinator::plan::Plan;
use coordinator::planned::unjudgeable;
use domain::control::Control;
use domain::exchange::WorkerStatus;
use domain::{Ask, ModelHome};
use packs::Pack;
use serde::Serialize;
use worker::Connect;

use super::question;
use crate::engine::connect::{LocalConnect, asks};
use crate::engine::preflight::{self, Level, LongestPrompt};
use crate::kit::exit_code::explained;
use crate::kit::output::{explain, printable};
use crate::kit::runtime::block_on;
use crate::place::queue_login::QueueLogin;
use crate::place::remote::Remote;
use crate::place::targets::Targets;
use crate::place::{disk, packs as material};

/// Where a plan would be carried out, and what of it is checked.
pub(super) struct CheckedPlan<'a> {
    pub configuration: &'a Configuration,
    pub pack: &'a Pack,
    pub plan: &'a Plan,
    /// The fleet that would run it; `None` for this machine.
    pub remote: Option<&'a Remote>,
    /// Folder that would hold the run on this machine.
    pub data_dir: &'a Path,
    /// Whether the models are those of a server on the command line, which are asked one question.
    pub asks: bool,
    /// Address of a queue that a coordinator would use.
    pub queue: Option<&'a str>,
    pub login: &'a QueueLogin,
}

impl CheckedPlan<'_> {
    /// What would end a long run early, or is perhaps not intended.
    ///
    /// # Errors
    /// The tasks cannot be built.
    pub fn findings(&self) -> anyhow::Result<PlanFindings> {
        let Self { configuration, pack, plan, .. } = *self;
        let tasks = material::build(pack, plan)?;
        let mut findings = PlanFindings::default();
        if let Some(message) = preflight::cases(plan) {
            findings.add(Level::Warning, "cases", message);
        }
        if let Some(message) = unjudgeable(configuration, pack, plan) {
            findings.add(Level::Problem, "judge", message);
        }
        if let Some(message) = preflight::unjudged(configuration, &tasks) {
            findings.add(Level::Warning, "judge", message);
        }
        let longest = LongestPrompt::of(plan, &tasks, configuration.seed);
        models::install_crypto();
        block_on(async {
            match self.remote {
                Some(remote) => match remote.client() {
                    Ok(client) => fleet(&client, configuration, &mut findings).await,
                    Err(error) => findings.add(Level::Problem, "coordinator", explain(&error)),
                },
                None => self.here(&longest, &mut findings).await,
            }
            if let Some(address) = self.queue {
                match self.login.into_address(address) {
                    Ok(address) => queue(&address, &mut findings).await,
                    Err(error) => findings.add(Level::Problem, "queue", explain(&error)),
                }
            }
            Ok(())
        })?;
        Ok(findings)
    }

    /// Checks the models that this machine would ask, and its disk.
    async fn here(&self, longest: &LongestPrompt<'_>, findings: &mut PlanFindings) {
        let configuration = self.configuration;
        let connect = LocalConnect::new(None, Targets::of(configuration));
        if self.asks {
            for model in &configuration.models {
                question::ask(model, &connect, findings).await;
            }
        }
        for (number, (model, ask)) in asks(configuration).enumerate() {
            let of_models = (number < configuration.models.len()).then_some(longest);
            of_model(model, ask, &connect, of_models, findings).await;
        }
        findings.of("disk", room(configuration, self.plan.dialogues(), self.data_dir).await);
    }
}

/// Checks a model that this machine asks directly. What judges are asked is not known before there are answers.
async fn of_model(
    model: &ModelSpec,
    ask: Ask,
    connect: &dyn Connect,
    longest: Option<&LongestPrompt<'_>>,
    findings: &mut PlanFindings,
) {
    let what = format!("{} {}", if longest.is_some() { "model" } else { "judge" }, model.label);
    if model.connector == Connector::Replay {
        // Recordings are read during the run; here it is enough that they exist.
        for path in &model.recorded {
            let found = std::fs::metadata(path).with_context(|| path.display().to_string());
            let found = found.map(|_| (Level::Ok, format!("recordings in {}", path.display())));
            findings.of(&what, found);
        }
    } else if model.endpoint.is_none() && model.connector.provider().home == ModelHome::Servers {
        let message = "has no endpoint of its own: a worker beside its server will ask it";
        findings.add(Level::Ok, what, message);
    } else {
        findings.of(&what, preflight::model(model, ask, connect, longest).await);
    }
}

/// Checks whether the records fit on the disk. Those of the unfinished run that `kgfleet run` would go on with are there.
async fn room(
    configuration: &Configuration,
    planned: u64,
    data_dir: &Path,
) -> anyhow::Result<(Level, String)> {
    let written = disk::written_of_unfinished(configuration, data_dir).await?;
    let (level, message) = preflight::disk(data_dir, written, planned).await?;
    let open_end = if configuration.pipeline.is_some() { "; what judges are asked comes on top" } else { "" };
    Ok((level, message + open_end))
}

async fn queue(address: &str, findings: &mut PlanFindings) {
    let checked = async {
        let store = ::queue::open(address, None)?;
        store.check().await
    };
    match checked.await {
        Err(error) => findings.add(Level::Problem, "queue", error.to_string()),
        Ok(warnings) if warnings.is_empty() => findings.add(Level::Ok, "queue", "there and fit"),
        Ok(warnings) => {
            warnings.into_iter().for_each(|warning| findings.add(Level::Warning, "queue", warning));
        }
    }
}

/// Checks a coordinator, and whether its workers serve the models.
async fn fleet(control: &dyn Control, configuration: &Configuration, findings: &mut PlanFindings) {
    match control.check().await.map_err(explained) {
        Err(error) => return findings.add(Level::Problem, "coordinator", explain(&error)),
        Ok(warnings) if warnings.is_empty() => {
            findings.add(Level::Ok, "coordinator", "the coordinator, its queue and its record log are ready");
        }
        Ok(warnings) => {
            warnings.into_iter().for_each(|warning| findings.add(Level::Warning, "coordinator", warning));
        }
    }
    let workers = match control.workers().await.map_err(explained) {
        Ok(workers) => workers,
        Err(error) => return findings.add(Level::Problem, "workers", explain(&error)),
    };
    let statuses: Vec<&WorkerStatus> = workers.iter().map(|worker| &*worker.status).collect();
    for model in &configuration.models {
        let (level, message) = served(&statuses, model);
        findings.add(level, format!("model {}", model.label), message);
    }
}

/// Whether workers can ask a model, by the coordinator's own rule for blocked models.
fn served(workers: &[&WorkerStatus], model: &ModelSpec) -> (Level, String) {
    let requested = model.requested();
    if let Some(why) = why_nobody(workers.iter().copied(), model) {
        let message = format!("`{requested}`: {why}; its dialogues wait until one does");
        return (Level::Warning, message);
    }
    let able = workers.iter().filter(|status| says_it_can(status, model) == Fit::Yes).count();
    (Level::Ok, format!("{able} workers serve `{requested}` and may ask it"))
}

/// Something that was found.
#[derive(Debug, Serialize)]
struct PlanFinding {
    level: Level,
    what: String,
    message: String,
}

/// All of it, in the order of the checks.
#[derive(Debug, Default, Serialize)]
#[serde(transparent)]
pub(super) struct PlanFindings(Vec<PlanFinding>);

impl PlanFindings {
    pub fn add(&mut self, level: Level, what: impl Into<String>, message: impl Into<String>) {
        self.0.push(PlanFinding { level, what: what.into(), message: message.into() });
    }

    /// Adds what a check says, or why it failed.
    pub fn of(&mut self, what: &str, result: anyhow::Result<(Level, String)>) {
        match result {
            Ok((level, message)) => self.add(level, what, message),
            Err(error) => self.add(Level::Problem, what, explain(&error)),
        }
    }

    /// Whether nothing would fail.
    pub fn are_fit(&self) -> bool {
        self.0.iter().all(|finding| finding.level != Level::Problem)
    }

    /// Prints them for people.
    pub fn tell(&self, out: &mut dyn Write) -> io::Result<()> {
        for finding in &self.0 {
            let mark = match finding.level {
                Level::Ok => "ok      ",
                Level::Warning => "warning ",
                Level::Problem => "problem ",
            };
            writeln!(out, "{mark} {}: {}", printable(&finding.what), printable(&finding.message))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use domain::reach::{KeyReach, Reach};

    use super::*;

    #[test]
    fn a_model_whose_key_no_worker_has_is_not_ok() {
        let model: ModelSpec =
            serde_json::from_value(serde_json::json!({ "label": "claude", "connector": "anthropic" }))
                .unwrap();
        let status = |keys: Vec<KeyReach>| WorkerStatus {
            serves: vec!["anthropic".into()],
            reach: Some(Reach { keys, ..Reach::default() }),
            ..WorkerStatus::default()
        };
        let key = KeyReach { name: "house".into(), connector: Connector::Anthropic, places: Vec::new() };
        let (with, without) = (status(vec![key]), status(Vec::new()));
        assert_eq!(
            served(&[&without, &with], &model),
            (Level::Ok, "1 workers serve `claude` and may ask it".to_owned())
        );
        let (level, message) = served(&[&without], &model);
        assert_eq!(level, Level::Warning);
        assert!(message.contains("no worker that serves it may ask it: the key"), "{message}");
        assert_eq!(served(&[], &model).0, Level::Warning);
    }
}
