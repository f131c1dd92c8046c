//! Recorded dialogues for the `replay` connector, which answers as a published model did.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::{Context, bail};
use domain::spelling;
use domain::{Answer, DialogueKey, Iteration, ModelLabel, Prompt, PromptKind, TaskLabel};
use results::llmkgbench::{ResultRecord, discover};
use tasks::wording::recognise_follow_up;
use worker::Script;

/// Maximum number of models listed in an error.
const MODELS_LISTED_MAX: usize = 10;

/// Prompts and answers of a model, by dialogue.
#[derive(Debug, Default)]
pub struct Recording {
    /// The answers, in order.
    pub answers: HashMap<DialogueKey, Vec<Answer>>,
    /// The prompts, in order, as many as answers.
    pub script: Script,
}

/// Reads the dialogues of one model from LLM-KG-Bench result files: the i-th record of the model on a task, in the order of
/// the files, is iteration i.
///
/// `model` is the model's label in the run. `recorded_model_id` selects the model in the files: its whole `modelId`, the
/// requested name, or the name reported by the API; without it the files must contain only one model.
///
/// # Errors
/// A file or record cannot be read, because later records would count as other iterations. No model, or more than one,
/// matches.
pub fn recorded_dialogues(
    paths: &[PathBuf],
    password: Option<&str>,
    model: &ModelLabel,
    recorded_model_id: Option<&str>,
) -> anyhow::Result<Recording> {
    let mut recording = Recording::default();
    let mut iterations: HashMap<String, Iteration> = HashMap::new();
    let mut taken = BTreeSet::new();
    let mut passed_over = BTreeSet::new();
    for document in discover(paths, password) {
        let document = document?;
        let mut failed = None;
        document.read(|read| {
            let record = match read {
                Ok(read) => read.record,
                Err(error) => {
                    failed = Some(error);
                    return ControlFlow::Break(());
                }
            };
            if recorded_model_id.is_some_and(|wanted| !is_called(&record, wanted)) {
                passed_over.insert(record.model_id().to_owned());
                return ControlFlow::Continue(());
            }
            taken.insert(record.model_id().to_owned());
            let next = iterations.entry(record.task_label().to_owned()).or_default();
            let key = DialogueKey {
                model: model.clone(),
                task: TaskLabel::new(record.task_label()),
                iteration: *next,
            };
            *next += 1;
            let answers: Vec<Answer> = record.answers().map(Answer::text).collect();
            recording.script.insert(key.clone(), prompts(&record, answers.len()));
            recording.answers.insert(key, answers);
            ControlFlow::Continue(())
        })?;
        if let Some(error) = failed {
            return Err(error).context("a file with an unreadable record cannot be replayed");
        }
    }
    match (taken.len(), recorded_model_id) {
        (1, _) => Ok(recording),
        (0, Some(wanted)) => {
            let offered = spelling::offer(wanted, passed_over.iter().map(String::as_str));
            bail!("the recorded files contain no model `{wanted}`; {offered}")
        }
        (0, None) => bail!("the recorded files contain no record"),
        (_, Some(wanted)) => bail!("`{wanted}` may be any of these recorded models: {}", list(&taken)),
        (_, None) => bail!("the recorded files contain several models; choose one: {}", list(&taken)),
    }
}

/// The first `count` prompts of a record. A follow-up of unknown kind counts as a `content` follow-up; its text is sent
/// unchanged.
fn prompts(record: &ResultRecord, count: usize) -> Vec<Prompt> {
    let kind = |round: usize, text: &str| match round {
        0 => PromptKind::First,
        _ => recognise_follow_up(text).unwrap_or(PromptKind::Content),
    };
    let texts = record.prompts().take(count).enumerate();
    texts.map(|(round, text)| Prompt { kind: kind(round, text), text: text.to_owned() }).collect()
}

fn is_called(record: &ResultRecord, wanted: &str) -> bool {
    let model = record.model();
    [record.model_id(), model.requested, model.reported].contains(&wanted)
}

fn list(models: &BTreeSet<String>) -> String {
    let mut shown: Vec<&str> = models.iter().take(MODELS_LISTED_MAX).map(String::as_str).collect();
    if models.len() > shown.len() {
        shown.push("…");
    }
    if shown.is_empty() { "none".to_owned() } else { shown.join(", ") }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::*;

    fn record(model: &str, task: &str, answers: &[&str]) -> Value {
        let interactions: Vec<Value> = answers
            .iter()
            .flat_map(|answer| [json!(["prompt", "t", "?"]), json!(["response", "t", answer])])
            .collect();
        json!({
            "modelId": format!("Test--{model}--{model}-2024"),
            "taskInfo": {"taskId": "RdfFriendCount", "taskLabel": task, "version": "4.4"},
            "scores": {}, "info": {}, "interactions": interactions
        })
    }

    fn write(folder: &Path, name: &str, records: &[Value]) {
        let text = serde_json::to_vec(records).unwrap();
        std::fs::write(folder.join(format!("{name}_result.json")), text).unwrap();
    }

    fn load(folder: &Path, wanted: Option<&str>) -> anyhow::Result<HashMap<DialogueKey, Vec<Answer>>> {
        recorded_dialogues(&[folder.to_owned()], None, &ModelLabel::new("again"), wanted)
            .map(|recording| recording.answers)
    }

    fn texts(answers: &HashMap<DialogueKey, Vec<Answer>>, task: &str, iteration: Iteration) -> Vec<String> {
        let key = DialogueKey { model: "again".into(), task: task.into(), iteration };
        answers[&key].iter().map(|answer| answer.text.clone()).collect()
    }

    #[test]
    fn iterations_are_counted_per_task_across_files() {
        let folder = tempfile::tempdir().unwrap();
        write(
            folder.path(),
            "a",
            &[record("m", "x", &["1"]), record("m", "y", &["2"]), record("m", "x", &["3", "4"])],
        );
        write(folder.path(), "b", &[record("m", "x", &["5"])]);
        let answers = load(folder.path(), None).unwrap();
        assert_eq!(answers.len(), 4);
        assert_eq!(texts(&answers, "x", 1), ["3", "4"]);
        assert_eq!(texts(&answers, "x", 2), ["5"]);
        assert_eq!(texts(&answers, "y", 0), ["2"]);
    }

    #[test]
    fn the_model_meant_is_found_by_any_of_its_names() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "a", &[record("m", "x", &["1"]), record("n", "x", &["2"])]);
        for name in ["n", "n-2024", "Test--n--n-2024"] {
            let answers = load(folder.path(), Some(name)).unwrap();
            assert_eq!((answers.len(), texts(&answers, "x", 0)), (1, vec!["2".to_owned()]), "{name}");
        }
        let message = |wanted| format!("{:#}", load(folder.path(), wanted).unwrap_err());
        assert!(message(None).contains("Test--m--m-2024, Test--n--n-2024"), "{}", message(None));
        assert!(message(Some("o")).contains("contain no model `o`"), "{}", message(Some("o")));
    }

    #[test]
    fn an_unreadable_record_is_an_error_because_it_would_shift_the_others() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "a", &[record("m", "x", &["1"]), json!("no record"), record("m", "x", &["2"])]);
        let message = format!("{:#}", load(folder.path(), None).unwrap_err());
        assert!(message.contains("a_result.json: record 1"), "{message}");
    }
}
