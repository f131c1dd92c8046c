//! Models at the server of the command line, in place of those of a configuration.

use std::path::Path;

use coordinator::configuration::{Configuration, Connector, ModelSpec};
use domain::Sampling;

use crate::configure::choose::{self, COMMAND_LINE, Selection};
use crate::kit::exit_code::usage;
use crate::place::task_files;

/// Models at a server with OpenAI's API.
#[derive(Debug, clap::Args)]
pub struct AtEndpoint {
    /// Base URL of an OpenAI-compatible server, such as http://127.0.0.1:8000/v1.
    #[arg(long, value_name = "URL", requires = "models")]
    endpoint: Option<String>,
    /// Name of a model, as the server knows it. Repeatable.
    #[arg(long = "model", value_name = "NAME", requires = "endpoint")]
    models: Vec<String>,
    /// Environment variable with the server's key.
    #[arg(long, value_name = "VAR", requires = "endpoint")]
    key_env: Option<String>,
    #[command(flatten)]
    sampling: SamplingOptions,
}

/// How the models at --endpoint draw tokens. What is not said is the server's choice, but for the length of answers.
#[derive(Debug, clap::Args)]
struct SamplingOptions {
    /// Softmax temperature of the models at --endpoint, 0 to 2. Default: the server's.
    #[arg(long, value_name = "T", requires = "endpoint")]
    temperature: Option<f64>,
    /// Nucleus probability of the models at --endpoint, 0 to 1. Default: the server's.
    #[arg(long, value_name = "P", requires = "endpoint")]
    top_p: Option<f64>,
    /// Maximum number of tokens of an answer of the models at --endpoint.
    #[arg(long, value_name = "N", requires = "endpoint")]
    max_tokens: Option<u32>,
}

impl AtEndpoint {
    /// Whether a server is named.
    pub fn is_given(&self) -> bool {
        self.endpoint.is_some()
    }

    /// The configuration that the arguments describe.
    pub fn configuration(
        &self,
        selection: &Selection,
        config: Option<&Path>,
    ) -> anyhow::Result<Configuration> {
        match (config, &self.endpoint) {
            (config, None) => selection.configuration(config),
            (None, Some(endpoint)) => selection.apply(self.of_server(endpoint)?, COMMAND_LINE),
            (Some(config), Some(endpoint)) if task_files::is_task_file(config) => {
                let server = self.of_server(endpoint)?;
                selection.apply(choose::of_task_file(config, server.models)?, COMMAND_LINE)
            }
            (Some(config), Some(_)) => Err(usage!(
                "{} is a configuration, which names its models itself; --endpoint and --model are for task files, and for runs \
             without a configuration",
                config.display()
            )),
        }
    }

    /// The configuration of models at a server.
    fn of_server(&self, endpoint: &str) -> anyhow::Result<Configuration> {
        let base = models::http::api_base(endpoint).map_err(|error| usage!("--endpoint: {error}"))?;
        let SamplingOptions { temperature, top_p, max_tokens } = self.sampling;
        let model = |name: &String| ModelSpec {
            endpoint: Some(base.to_string()),
            key_env: self.key_env.clone(),
            sampling: Sampling { temperature, top_p, max_tokens, ..Sampling::default() },
            ..ModelSpec::new(name, Connector::OpenaiCompatible)
        };
        let name = format!("{} at {}", self.models.join(", "), base.as_str());
        Ok(Configuration::of_models(name, self.models.iter().map(model).collect()))
    }
}
