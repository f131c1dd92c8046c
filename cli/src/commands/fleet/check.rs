//! `kgfleet check`: everything that would end a long run early, looked at before it begins.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use coordinator::configuration::{Benchmark, Connector, ModelSpec};
use coordinator::plan::Plan;
use domain::Sampling;
use domain::control::Control;
use domain::seed::question_seed;
use models::{HttpClient, OpenAiCompatible, OpenAiConfig};
use results::sink::{Sink, SinkReport};
use serde::Serialize;
use tasks::Task;
use worker::TaskList;
use worker::connect::key_of;

use super::{MaybeRemote, block_on, explained};
use crate::commands::run::Selection;
use crate::exit_code::ExitCode;
use crate::output::{explain, printable};
use crate::run::{material, session};

/// Bytes that a record takes in the log, generously: published dialogues compress to less than half of it.
const RECORD_BYTES: u64 = 4096;

/// Bytes of a prompt per token, guessed low, as for RDF and English prose.
const BYTES_PER_TOKEN: usize = 3;

/// Look at everything that a long run needs before it begins.
///
/// Checks the configuration, keys, servers, whether their context holds the longest prompt, the disk, and with
/// --coordinator or --queue also those. Exit codes: 0 fit, perhaps with warnings; 1 something would fail; 2 the
/// configuration cannot be used.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Configuration file, or `quick` for the bundled one.
    config: PathBuf,
    #[command(flatten)]
    selection: Selection,
    /// Folder that the run would be kept in.
    #[arg(long, value_name = "DIR", env = "KGFLEET_DATA_DIR", default_value = "kgfleet-data")]
    data_dir: PathBuf,
    /// Address of the Redis that a coordinator would use: redis://….
    #[arg(long, value_name = "URL", env = "KGFLEET_QUEUE")]
    queue: Option<String>,
    /// Print JSON lines.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: MaybeRemote,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Ok,
    Warning,
    Problem,
}

/// Something that was looked at.
#[derive(Debug, Serialize)]
struct Finding {
    level: Level,
    what: String,
    message: String,
}

#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, level: Level, what: impl Into<String>, message: impl Into<String>) {
        self.0.push(Finding { level, what: what.into(), message: message.into() });
    }

    fn of<T>(&mut self, what: &str, result: anyhow::Result<T>, fine: impl FnOnce(T) -> String) {
        match result {
            Ok(value) => self.add(Level::Ok, what, fine(value)),
            Err(error) => self.add(Level::Problem, what, explain(&error)),
        }
    }
}

/// Runs the command.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let benchmark = arguments.selection.benchmark(Some(&arguments.config))?;
    let (pack, plan) = session::plan(&benchmark)?;
    let tasks = material::build(&pack, &plan)?;
    let mut findings = Findings::default();
    findings.add(
        Level::Ok,
        "configuration",
        format!("{} models, {} tasks, {} dialogues", plan.models.len(), plan.tasks.len(), plan.dialogues()),
    );
    let longest = longest_prompt(&plan, &tasks, benchmark.seed)?;
    models::install_crypto();
    block_on(async {
        match arguments.remote.named() {
            Some(remote) => match remote.client() {
                Ok(client) => fleet(&client, &benchmark, &mut findings).await,
                Err(error) => findings.add(Level::Problem, "coordinator", explain(&error)),
            },
            None => {
                let http = HttpClient::new();
                for model in &benchmark.models {
                    check_model(model, &http, longest, &mut findings).await;
                }
                findings.of("disk", disk(&arguments.data_dir, plan.dialogues()).await, |message| message);
            }
        }
        if let Some(address) = &arguments.queue {
            queue(address, &mut findings).await;
        }
        Ok(())
    })?;
    tell(&findings.0, arguments.json)?;
    let fit = findings.0.iter().all(|finding| finding.level != Level::Problem);
    Ok(if fit { ExitCode::Success } else { ExitCode::Unsatisfied })
}

fn tell(findings: &[Finding], json: bool) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    for finding in findings {
        if json {
            writeln!(out, "{}", serde_json::to_string(finding)?)?;
        } else {
            let mark = match finding.level {
                Level::Ok => "ok      ",
                Level::Warning => "warning ",
                Level::Problem => "problem ",
            };
            writeln!(out, "{mark} {}: {}", printable(&finding.what), printable(&finding.message))?;
        }
    }
    Ok(())
}

/// Bytes of the longest first prompt. Every case is looked at once: iterations of a case differ in the order of
/// statements, not in their number.
fn longest_prompt(plan: &Plan, tasks: &TaskList, seed: u64) -> anyhow::Result<usize> {
    let mut longest = 0;
    for (task, planned) in tasks.iter().zip(&plan.tasks) {
        let task: &Task = task;
        for iteration in 0..u32::try_from(planned.cases).unwrap_or(u32::MAX) {
            let prompt = task.first_prompt(iteration, question_seed(seed, &planned.label, iteration))?;
            longest = longest.max(prompt.text.len());
        }
    }
    Ok(longest)
}

async fn check_model(model: &ModelSpec, http: &HttpClient, longest: usize, findings: &mut Findings) {
    let what = format!("model {}", model.label);
    match model.connector {
        Connector::Simulated => return findings.add(Level::Ok, what, "simulated on this machine"),
        Connector::Replay => {
            for path in &model.recorded {
                findings.of(
                    &what,
                    std::fs::metadata(path).with_context(|| path.display().to_string()),
                    |_| format!("recordings in {}", path.display()),
                );
            }
            return;
        }
        Connector::Anthropic | Connector::Gemini | Connector::OpenaiCompatible => {}
    }
    let key = match key_of(model) {
        Ok(key) => key,
        Err(error) => return findings.add(Level::Problem, what, explain(&error.into())),
    };
    let Some(endpoint) = model.endpoint.as_deref().filter(|_| model.connector == Connector::OpenaiCompatible)
    else {
        let message = match model.connector {
            Connector::OpenaiCompatible => {
                "has no endpoint of its own: a worker beside its server will ask it"
            }
            Connector::Anthropic | Connector::Gemini | Connector::Simulated | Connector::Replay => {
                "its key is there; whether it is good shows with the first call"
            }
        };
        return findings.add(Level::Ok, what, message);
    };
    let mut config = OpenAiConfig::new(endpoint, model.requested());
    config.key = key;
    let result = async {
        let server = OpenAiCompatible::with_client(config, http)?;
        let served =
            server.probe().await.with_context(|| format!("{endpoint} does not answer as it should"))?;
        let found = served.iter().find(|found| found.id == model.requested()).with_context(|| {
            let names: Vec<&str> = served.iter().map(|found| found.id.as_str()).take(20).collect();
            format!("{endpoint} does not serve `{}`; it serves: {}", model.requested(), names.join(", "))
        })?;
        anyhow::Ok(found.max_model_len)
    };
    match result.await {
        Err(error) => findings.add(Level::Problem, what, explain(&error)),
        Ok(None) => findings.add(Level::Ok, what, format!("{endpoint} serves it")),
        Ok(Some(context)) => {
            let (level, message) = context_fits(model, context, longest);
            findings.add(level, what, format!("{endpoint} serves it; {message}"));
        }
    }
}

/// Whether the longest prompt and an answer fit into the context of a model.
fn context_fits(model: &ModelSpec, context: u32, longest: usize) -> (Level, String) {
    let tokens = u32::try_from(longest / BYTES_PER_TOKEN).unwrap_or(u32::MAX);
    let answer = model.sampling.max_tokens.unwrap_or(Sampling::MAX_TOKENS_DEFAULT);
    let say = |verdict: &str| {
        format!(
            "context of {context} tokens, longest prompt about {tokens}, answers up to {answer}: {verdict}"
        )
    };
    if tokens >= context {
        (Level::Problem, say("the longest prompts do not fit and would fail with `context-exceeded`"))
    } else if tokens.saturating_add(answer) > context {
        (Level::Warning, say("answers to the longest prompts will be cut short"))
    } else {
        (Level::Ok, say("fits"))
    }
}

/// Whether the folder can be written and has room.
async fn disk(data_dir: &Path, dialogues: u64) -> anyhow::Result<String> {
    let SinkReport { place, free_bytes } = Sink::folder(data_dir).check().await?;
    let need = dialogues * RECORD_BYTES;
    let figures = format!("{place} has {} MB free; the records may take {} MB", free_bytes >> 20, need >> 20);
    anyhow::ensure!(free_bytes > need, "{figures}");
    Ok(figures)
}

async fn queue(address: &str, findings: &mut Findings) {
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

/// What a coordinator says of itself, and whether its workers serve the models.
async fn fleet(control: &dyn Control, benchmark: &Benchmark, findings: &mut Findings) {
    match control.check().await.map_err(explained) {
        Err(error) => return findings.add(Level::Problem, "coordinator", explain(&error)),
        Ok(warnings) if warnings.is_empty() => {
            findings.add(Level::Ok, "coordinator", "it, its queue and its record log are fit");
        }
        Ok(warnings) => {
            warnings.into_iter().for_each(|warning| findings.add(Level::Warning, "coordinator", warning));
        }
    }
    let workers = match control.workers().await.map_err(explained) {
        Ok(workers) => workers,
        Err(error) => return findings.add(Level::Problem, "workers", explain(&error)),
    };
    for model in &benchmark.models {
        let what = format!("model {}", model.label);
        let by_name = |serves: &&domain::control::WorkerView| {
            let connector = serde_json::to_value(model.connector).unwrap_or_default();
            serves.status.serves.iter().any(|name| name == model.requested() || connector == name.as_str())
        };
        match workers.iter().filter(by_name).count() {
            0 => findings.add(
                Level::Warning,
                what,
                format!("no worker serves `{}` now; its dialogues wait until one does", model.requested()),
            ),
            count => findings.add(Level::Ok, what, format!("{count} workers serve `{}`", model.requested())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_too_small_for_the_longest_prompt_is_a_problem() {
        let model: ModelSpec =
            serde_json::from_value(serde_json::json!({ "label": "m", "connector": "simulated" })).unwrap();
        assert_eq!(context_fits(&model, 32_768, 15_000).0, Level::Ok);
        assert_eq!(context_fits(&model, 8_192, 15_000).0, Level::Warning);
        assert_eq!(context_fits(&model, 4_096, 15_000).0, Level::Problem);
    }
}
