//! One record of a result file.
//!
//! The JSON object is kept as read, so that writing it back loses nothing: order of keys, fields of other versions,
//! numbers. The fields needed for evaluation are checked once, when the record is created; the accessors rely on it.
//!
//! | field | since | content |
//! |---|---|---|
//! | `startTime` | 2023 | ISO time, local, microseconds |
//! | `reevalOriginalTime` | Dec 2023 | null, or the original's `startTime` when re-evaluated |
//! | `modelId` | 2023 | `Connector--model--model reported by the API` |
//! | `taskInfo` | 2023 | `taskId`, `version`, `gitCommit`; 2024 `taskLabel`, `taskParameter`; 2025 `condensedTaskData` |
//! | `taskSizeInfo` | Dec 2023 | `targetSize`, `estimatedSize`, `actualSize` (code points of all texts) |
//! | `scores`, `info` | 2023 | the verdict and its explanation |
//! | `taskData` | Dec 2023 | the case |
//! | `interactions` | 2023 | list of `["prompt" or "response", ISO time, text]` |
//! | `duration` | 2023 | `H:MM:SS.ffffff` |

use domain::{Infos, Scores};
use serde_json::{Map, Value};

use super::error::RecordProblem;

/// A record of any version.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultRecord {
    fields: Map<String, Value>,
}

/// The speaker of an interaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// The benchmark.
    Prompt,
    /// The model.
    Response,
}

/// One text of a dialogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interaction<'a> {
    pub speaker: Speaker,
    /// ISO time, local, as recorded.
    pub time: &'a str,
    /// The text, unmodified.
    pub text: &'a str,
}

/// The parts of a `modelId`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelId<'a> {
    /// Connector class, such as `GPT` or `Claude`.
    pub connector: &'a str,
    /// The model asked for.
    pub requested: &'a str,
    /// The model reported by the API; empty if the record does not contain it.
    pub reported: &'a str,
}

impl ResultRecord {
    /// A record from a JSON object.
    ///
    /// # Errors
    /// A field needed for evaluation is missing or has another type: `modelId`, `taskInfo.taskId`,
    /// `taskInfo.version`, `scores`, `info`, `interactions`. All other fields may be missing.
    pub fn from_value(value: Value) -> Result<Self, RecordProblem> {
        let Value::Object(fields) = value else {
            return Err(field("record", "an object"));
        };
        let text = |object: &Map<String, Value>, key: &str, path: &str| {
            object.get(key).is_some_and(Value::is_string).then_some(()).ok_or_else(|| field(path, "a text"))
        };
        let object =
            |key: &str| fields.get(key).and_then(Value::as_object).ok_or_else(|| field(key, "an object"));
        text(&fields, "modelId", "modelId")?;
        let task = object("taskInfo")?;
        text(task, "taskId", "taskInfo.taskId")?;
        text(task, "version", "taskInfo.version")?;
        object("scores")?;
        object("info")?;
        let interactions = fields
            .get("interactions")
            .and_then(Value::as_array)
            .ok_or_else(|| field("interactions", "a list"))?;
        for (index, entry) in interactions.iter().enumerate() {
            if interaction(entry).is_none() {
                return Err(field(
                    &format!("interactions[{index}]"),
                    "a list of \"prompt\" or \"response\", a time and a text",
                ));
            }
        }
        Ok(Self { fields })
    }

    /// The start of the dialogue, as recorded: local time without zone.
    pub fn start_time(&self) -> Option<&str> {
        self.fields.get("startTime")?.as_str()
    }

    /// The start of the original dialogue; `None` unless this record is a re-evaluation.
    pub fn reeval_original_time(&self) -> Option<&str> {
        self.fields.get("reevalOriginalTime")?.as_str()
    }

    /// The model, as recorded.
    pub fn model_id(&self) -> &str {
        self.fields.get("modelId").and_then(Value::as_str).unwrap_or_default()
    }

    /// The parts of the model. Model names may contain `--`; only the first and the last one are separators.
    pub fn model(&self) -> ModelId<'_> {
        let id = self.model_id();
        let (connector, rest) = id.split_once("--").unwrap_or(("", id));
        let (requested, reported) = rest.rsplit_once("--").unwrap_or((rest, ""));
        ModelId { connector, requested, reported }
    }

    /// The task class as recorded, which may be an earlier name of the class.
    pub fn task_id(&self) -> &str {
        self.task_text("taskId").unwrap_or_default()
    }

    /// The task class with its parameters; in files before 2024 the class alone.
    pub fn task_label(&self) -> &str {
        self.task_text("taskLabel").unwrap_or_else(|| self.task_id())
    }

    /// Version of the task class.
    pub fn task_version(&self) -> &str {
        self.task_text("version").unwrap_or_default()
    }

    /// Parameters of the task, since 2024.
    pub fn task_parameter(&self) -> Option<&Map<String, Value>> {
        self.task_info()?.get("taskParameter")?.as_object()
    }

    /// The case: `taskInfo.condensedTaskData`, in files before 2025 `taskData`; `None` if there is neither.
    pub fn task_data(&self) -> Option<&Map<String, Value>> {
        self.task_info()?
            .get("condensedTaskData")
            .and_then(Value::as_object)
            .or_else(|| self.fields.get("taskData")?.as_object())
    }

    /// The recorded scores; empty if the published evaluation raised an exception.
    pub fn scores(&self) -> &Scores {
        self.object("scores")
    }

    /// The explanation of the scores.
    pub fn infos(&self) -> &Infos {
        self.object("info")
    }

    /// The whole dialogue in order.
    pub fn interactions(&self) -> impl Iterator<Item = Interaction<'_>> {
        self.fields
            .get("interactions")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(interaction)
    }

    /// The texts of the benchmark in order.
    pub fn prompts(&self) -> impl Iterator<Item = &str> {
        self.interactions().filter(|i| i.speaker == Speaker::Prompt).map(|i| i.text)
    }

    /// The texts of the model in order.
    pub fn answers(&self) -> impl Iterator<Item = &str> {
        self.interactions().filter(|i| i.speaker == Speaker::Response).map(|i| i.text)
    }

    /// The duration of the dialogue, as `H:MM:SS.ffffff`.
    pub fn duration(&self) -> Option<&str> {
        self.fields.get("duration")?.as_str()
    }

    /// The record as JSON.
    pub fn fields(&self) -> &Map<String, Value> {
        &self.fields
    }

    /// Replaces the recorded verdict and, as LLM-KG-Bench does, marks this record
    /// as a re-evaluation: `reevalOriginalTime` keeps the time of the original, `startTime` becomes `now` (see
    /// [`python_time::local_time`](super::python_time::local_time)).
    pub fn reevaluate(&mut self, scores: Scores, infos: Infos, now: String) {
        // After several re-evaluations, the original is still the first one.
        let original = self.reeval_original_time().or_else(|| self.start_time()).map(str::to_owned);
        self.fields.insert("startTime".to_owned(), now.into());
        if self.fields.contains_key("reevalOriginalTime") {
            self.fields.insert("reevalOriginalTime".to_owned(), original.into());
        } else {
            // At its place in later versions: after `startTime`.
            let place = self.fields.keys().position(|key| key == "startTime").map_or(0, |at| at + 1);
            self.fields.shift_insert(place, "reevalOriginalTime".to_owned(), original.into());
        }
        self.fields.insert("scores".to_owned(), scores.into());
        self.fields.insert("info".to_owned(), infos.into());
    }

    fn task_info(&self) -> Option<&Map<String, Value>> {
        self.fields.get("taskInfo")?.as_object()
    }

    fn task_text(&self, key: &str) -> Option<&str> {
        self.task_info()?.get(key)?.as_str()
    }

    fn object(&self, key: &str) -> &Map<String, Value> {
        static EMPTY: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
        self.fields.get(key).and_then(Value::as_object).unwrap_or(&EMPTY)
    }
}

fn interaction(entry: &Value) -> Option<Interaction<'_>> {
    let [speaker, time, text] = entry.as_array()?.as_slice() else { return None };
    let speaker = match speaker.as_str()? {
        "prompt" => Speaker::Prompt,
        "response" => Speaker::Response,
        _ => return None,
    };
    Some(Interaction { speaker, time: time.as_str()?, text: text.as_str()? })
}

fn field(path: &str, expected: &'static str) -> RecordProblem {
    RecordProblem::Field { field: path.to_owned(), expected }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn old_record() -> Value {
        json!({
            "startTime": "2023-05-01T10:00:00.000001",
            "modelId": "GPT--some--model-1--model-1-0301",
            "taskInfo": {"taskId": "TurtleFriendCount", "version": "2.0", "gitCommit": "abc"},
            "scores": {"f1": 1},
            "info": {},
            "duration": "0:00:01.000000",
            "interactions": [["prompt", "t", "Who?"], ["response", "t", "She."]],
            "addedLater": [1, 2]
        })
    }

    #[test]
    fn a_record_of_2023_reads_without_the_fields_that_came_later() {
        let record = ResultRecord::from_value(old_record()).unwrap();
        assert_eq!(record.task_label(), "TurtleFriendCount");
        assert_eq!(record.task_data(), None);
        assert_eq!(record.answers().collect::<Vec<_>>(), ["She."]);
        assert_eq!(
            record.model(),
            ModelId { connector: "GPT", requested: "some--model-1", reported: "model-1-0301" }
        );
    }

    #[test]
    fn every_field_that_evaluation_needs_is_missed_by_name() {
        for path in ["modelId", "taskInfo", "scores", "info", "interactions"] {
            let mut value = old_record();
            value.as_object_mut().unwrap().shift_remove(path);
            let error = ResultRecord::from_value(value).unwrap_err().to_string();
            assert!(error.contains(path), "{error}");
        }
        let mut value = old_record();
        value["interactions"][1] = json!(["response", "t", null]);
        let error = ResultRecord::from_value(value).unwrap_err().to_string();
        assert!(error.contains("interactions[1]"), "{error}");
    }

    #[test]
    fn a_second_re_evaluation_keeps_the_first_time_and_the_order_of_keys() {
        let mut record = ResultRecord::from_value(old_record()).unwrap();
        record.reevaluate(Scores::new(), Infos::new(), "2024".to_owned());
        record.reevaluate(Scores::new(), Infos::new(), "2025".to_owned());
        assert_eq!(record.reeval_original_time(), Some("2023-05-01T10:00:00.000001"));
        assert_eq!(record.start_time(), Some("2025"));
        let keys: Vec<&str> = record.fields().keys().map(String::as_str).collect();
        assert_eq!(keys[..3], ["startTime", "reevalOriginalTime", "modelId"]);
        assert_eq!(keys.last(), Some(&"addedLater"));
    }
}
