//! Finds problems before a run: `kgfleet plan` reports all of them, `kgfleet run` stops at those that would fail every
//! dialogue of a model. A further check is a function here that both call.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use coordinator::configuration::{Configuration, Connector, ModelSpec};
use coordinator::plan::{Plan, UnaskedCases};
use domain::seed::question_seed;
use domain::text::listed;
use domain::{Ask, Sampling};
use results::Sink;
use results::sink::SinkReport;
use serde::Serialize;
use tasks::Task;
use tasks::families::declared::spec::JudgeSpec;
use worker::{Connect, Listed, TaskList};

use crate::kit::exit_code::Exit;
use crate::place::disk::{DiskForecast, WrittenLogs};

/// Estimated bytes per token of a prompt, a low estimate for RDF and English prose.
const BYTES_PER_TOKEN: usize = 3;

/// How many tasks a finding names before it counts the rest.
const TASKS_NAMED_MAX: usize = 3;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// No problem.
    Ok,
    /// Possibly unintended.
    Warning,
    /// Something would fail.
    Problem,
}

/// The longest first prompt of a run in bytes, computed when first needed.
pub struct LongestPrompt<'a> {
    plan: &'a Plan,
    tasks: &'a TaskList,
    seed: u64,
    bytes: OnceLock<usize>,
}

impl<'a> LongestPrompt<'a> {
    /// For a plan with its tasks.
    pub fn of(plan: &'a Plan, tasks: &'a TaskList, seed: u64) -> Self {
        Self { plan, tasks, seed, bytes: OnceLock::new() }
    }

    /// Renders every case once: iterations of a case differ in the order of statements, not in their number. A prompt that
    /// cannot be rendered counts as empty; its dialogue will report the error.
    fn bytes(&self) -> usize {
        *self.bytes.get_or_init(|| {
            let of_task = |(task, planned): (&Arc<Task>, &coordinator::plan::PlannedTask)| {
                let iterations = 0..u32::try_from(planned.cases).unwrap_or(u32::MAX);
                let prompt = |iteration| {
                    task.first_prompt(iteration, question_seed(self.seed, &planned.label, iteration)).ok()
                };
                iterations.filter_map(prompt).map(|prompt| prompt.text.len()).max()
            };
            self.tasks.iter().zip(&self.plan.tasks).filter_map(of_task).max().unwrap_or_default()
        })
    }
}

/// Checks models and their servers, and prints warnings.
///
/// # Errors
/// See [`model`].
pub async fn models<'a>(
    specs: impl IntoIterator<Item = &'a ModelSpec>,
    connect: &dyn Connect,
    longest: &LongestPrompt<'_>,
) -> anyhow::Result<()> {
    for spec in specs {
        let (level, message) = model(spec, Ask::Chat, connect, Some(longest)).await?;
        if level != Level::Ok {
            eprintln!("warning: model `{}`: {message}", spec.label);
        }
    }
    Ok(())
}

/// Checks a model and its server, and whether the longest prompt fits if that is known. Returns findings, or an error if no
/// dialogue with the model can succeed. What the server's list of models says is advice.
///
/// # Errors
/// A setting that cannot be used (exit code 2), or a server that cannot be reached (3).
pub async fn model(
    spec: &ModelSpec,
    ask: Ask,
    connect: &dyn Connect,
    longest: Option<&LongestPrompt<'_>>,
) -> anyhow::Result<(Level, String)> {
    if spec.connector == Connector::Simulated {
        return Ok((Level::Ok, "simulated on this machine".to_owned()));
    }
    let connected = connect.connect(ask, spec, None).map_err(Exit::usage)?;
    let listed = connected.listed(spec).await?;
    let endpoint = connected.model.identity().endpoint.clone().unwrap_or_default();
    let context = longest.zip(connected.listing.and_then(|server| server.context_tokens()));
    if let Some(remark) = listed.remark(spec.requested()) {
        let message = format!("{endpoint}: {remark}; the first question will show whether it answers");
        return Ok((Level::Warning, message));
    }
    Ok(match (listed, context) {
        (Listed::Served, None) => (Level::Ok, format!("{endpoint} lists it")),
        (Listed::Served, Some((longest, context))) => {
            let (level, message) = context_fits(spec, context, longest.bytes());
            (level, format!("{endpoint} lists it; {message}"))
        }
        _ => (Level::Ok, "its key is there; the first question will show whether it is valid".to_owned()),
    })
}

/// Names the tasks that have fewer iterations than cases; `None` if every case is asked.
pub fn cases(plan: &Plan) -> Option<String> {
    let unasked: Vec<_> = plan.unasked_cases().collect();
    let named =
        unasked.iter().map(|UnaskedCases { task, asked, cases }| format!("{task} ({asked} of {cases})"));
    (!unasked.is_empty()).then(|| {
        format!(
            "not all cases are asked of {} of {} tasks, for want of iterations: {}",
            unasked.len(),
            plan.tasks.len(),
            listed(named, TASKS_NAMED_MAX)
        )
    })
}

/// Names the tasks whose task file wants a judge that the configuration does not ask; `None` if there are none.
pub fn unjudged(configuration: &Configuration, tasks: &TaskList) -> Option<String> {
    if configuration.pipeline.is_some() {
        return None;
    }
    let wants_judge =
        |task: &&Arc<Task>| task.cases().iter().any(|case| JudgeSpec::of_case(&case.data.data).is_some());
    let judged: Vec<_> = tasks.iter().filter(wants_judge).map(|task| task.label.to_string()).collect();
    (!judged.is_empty()).then(|| {
        format!(
            "{} of {} tasks are also graded by a judge where a configuration names one (docs/task-files.md); their checks \
             alone count here: {}",
            judged.len(),
            tasks.len(),
            listed(judged.iter().cloned(), TASKS_NAMED_MAX)
        )
    })
}

/// Whether the longest prompt and an answer fit into the context of a model.
fn context_fits(model: &ModelSpec, context: u32, longest: usize) -> (Level, String) {
    let tokens = u32::try_from(longest / BYTES_PER_TOKEN).unwrap_or(u32::MAX);
    let left = context.saturating_sub(tokens);
    let (answer, least) = match model.sampling.max_tokens {
        Some(wanted) => (wanted, wanted),
        // It gives way to the prompt.
        None => (model.sampling.tokens(Some(context)).min(left), Sampling::TOKENS_DEFAULT.min(context / 2)),
    };
    let say = |verdict: &str| {
        format!(
            "context of {context} tokens, longest prompt about {tokens}, answers up to {answer}: {verdict}"
        )
    };
    if tokens >= context {
        (Level::Problem, say("the longest prompts do not fit and would fail with `context-exceeded`"))
    } else if left < least {
        (Level::Warning, say("answers to the longest prompts will be cut short"))
    } else {
        (Level::Ok, say("fits"))
    }
}

/// Checks whether the folder has space for the records of this many dialogues, some of which may be written.
///
/// # Errors
/// The folder cannot be written.
pub async fn disk(data_dir: &Path, written: WrittenLogs, planned: u64) -> anyhow::Result<(Level, String)> {
    let SinkReport { place, free_bytes } = Sink::new(data_dir).check().await?;
    let forecast = DiskForecast::of(written, planned.saturating_sub(written.records), free_bytes);
    let level = if forecast.fits() { Level::Ok } else { Level::Problem };
    Ok((level, format!("records in {place}: {forecast}")))
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
