//! Chooses a configuration, bundled or from a file, and applies the overrides of the command line.

use std::path::Path;

use clap_complete::engine::ArgValueCompleter;
use coordinator::configuration::{Configuration, ConfigurationError, Connector, ModelSpec, TaskChoice};
use packs::configurations::BUNDLED;

use crate::kit::completion::completer_or_file;
use crate::kit::exit_code::{Exit, usage};
use crate::place::{completing, task_files};

/// Options that restrict or override a configuration.
#[derive(Debug, Default, clap::Args)]
pub struct Selection {
    /// Only tasks whose label matches; `*` stands for any text. Repeatable.
    #[arg(long = "task", value_name = "GLOB", add = completing::tasks())]
    tasks: Vec<String>,
    /// Repetitions of every task for every model.
    #[arg(long, visible_alias = "limit", value_name = "N")]
    iterations: Option<u32>,
    /// Seed of everything random.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

/// Completes a configuration: the name of a bundled one, or a file.
pub fn completed() -> ArgValueCompleter {
    completer_or_file(|_| BUNDLED.iter().map(|(name, _)| (*name).to_owned()).collect())
}

/// A configuration that asks models the cases of a task file.
pub fn of_task_file(path: &Path, models: Vec<ModelSpec>) -> anyhow::Result<Configuration> {
    let configuration = task_files::configuration(path, models)?;
    configuration.ok_or_else(|| usage!("{} is no task file: it has no `task_file = 1`", path.display()))
}

/// Stands in for the file in errors if there is none.
pub const COMMAND_LINE: &str = "command line";

impl Selection {
    /// The configuration of a file, or the bundled one, with these overrides.
    pub fn configuration(&self, config: Option<&Path>) -> anyhow::Result<Configuration> {
        let name = config.map_or(Some(BUNDLED[0].0), Path::to_str);
        let bundled = BUNDLED.iter().find(|(bundled, _)| Some(*bundled) == name);
        let (configuration, file) = match (bundled, config) {
            (None, Some(path)) if task_files::is_task_file(path) => {
                let quick = Configuration::parse(BUNDLED[0].1, "quick.toml").map_err(Exit::usage)?;
                (of_task_file(path, quick.models)?, path.display().to_string())
            }
            (None, Some(path)) => {
                (Configuration::read(path).map_err(Exit::usage)?, path.display().to_string())
            }
            (bundled, _) => {
                let (name, text) = bundled.unwrap_or(&BUNDLED[0]);
                let file = format!("{name}.toml");
                (Configuration::parse(text, &file).map_err(Exit::usage)?, file)
            }
        };
        self.apply(configuration, &file)
    }

    /// These overrides of a configuration; `file` names it in errors.
    pub fn apply(&self, mut configuration: Configuration, file: &str) -> anyhow::Result<Configuration> {
        normalise(&mut configuration, file)?;
        if !self.tasks.is_empty() {
            configuration.tasks = self.tasks.iter().cloned().map(TaskChoice::Label).collect();
        }
        if let Some(iterations) = self.iterations {
            configuration.iterations = Some(iterations);
            configuration.task_iterations.clear();
            for model in &mut configuration.models {
                model.iterations = None;
                model.task_iterations.clear();
            }
        }
        if let Some(seed) = self.seed {
            configuration.seed = seed;
        }
        configuration.validate(COMMAND_LINE).map_err(Exit::usage)?;
        Ok(configuration)
    }
}

/// Normalises the addresses of a configuration, so that another spelling is not another configuration. `file` names it in errors.
///
/// # Errors
/// An address cannot be that of an OpenAI-compatible API.
fn normalise(configuration: &mut Configuration, file: &str) -> anyhow::Result<()> {
    let models = configuration.models.iter_mut().enumerate();
    let models = models.map(|(index, model)| (format!("models[{index}]"), model));
    let judges = configuration.judges.iter_mut().map(|(role, judge)| (format!("judges.{role}"), judge));
    for (place, model) in models.chain(judges) {
        let Some(endpoint) = &mut model.endpoint else { continue };
        if model.connector == Connector::OpenaiCompatible {
            let base = models::http::api_base(endpoint).map_err(|error| {
                Exit::usage(ConfigurationError::Value {
                    file: file.to_owned(),
                    field: format!("{place}.endpoint"),
                    problem: format!("is not the address of an API: {error}"),
                })
            })?;
            *endpoint = base.to_string();
        }
    }
    Ok(())
}
