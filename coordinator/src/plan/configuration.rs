//! Benchmark configurations: which models, which tasks, how often.
//!
//! Three formats are read: ours in TOML or YAML (the fields of [`Configuration`]), and LLM-KG-Bench's
//! `configuration.yml` unchanged ([`llmkgbench`]).

use std::collections::BTreeMap;
use std::path::Path;

use benchmarks::JudgeWordings;
pub use domain::glob::Glob;
pub use domain::model::{Connector, ModelSpec};
use domain::reach::{Place, points_nowhere};
use domain::spelling::{self, with_question};
use domain::text::label_problem;
use domain::{Ask, Priority};
use serde::{Deserialize, Serialize};

mod access;
pub(crate) mod cap;
pub mod llmkgbench;
mod request;
mod sampling;

pub use self::cap::Cap;

/// Longest name of a configuration, or of a model at its server, in characters: they stand in tables, in folders and in metrics.
/// Labels have [their own limit](domain::text::LABEL_BYTES_MAX).
pub const NAME_CHARS_MAX: usize = 1_000;

/// Longest configuration file, in bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Maximum number of entries of `tasks`, each of which is compared with every task of the pack.
pub const TASK_CHOICES_MAX: usize = 1_000;

/// Default iterations of a task, as in the published runs of proprietary models.
pub const ITERATIONS_DEFAULT: u32 = 20;

/// Maximum number of iterations of a task. More is a typing error.
pub const ITERATIONS_MAX: u32 = 100_000;

/// A benchmark configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    /// A name for people.
    pub name: String,
    /// Seed of everything random: the order of serialised graphs, sampling seeds.
    #[serde(default)]
    pub seed: u64,
    /// The task pack: `core` (built in) or the path of a pack file. Default: `core`.
    #[serde(default = "core_pack")]
    pub pack: String,
    /// Repetitions of every task for every model, 1 to 100 000. A model may have its own number. Default: 20; as many as a task
    /// has cases where the kind of the benchmark asks each of them once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u32>,
    /// Repetitions of single tasks, by label or pattern, for models that have no number of their own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub task_iterations: BTreeMap<String, u32>,
    /// Tasks by label; `*` stands for any text. Default: the 26 tasks of the benchmark.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TaskChoice>,
    /// The models, at least one.
    pub models: Vec<ModelSpec>,
    /// The kind of a judged benchmark, such as `judged-facts`: answers of the models are then judged by models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<String>,
    /// The judges of a judged benchmark, by role.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub judges: BTreeMap<String, ModelSpec>,
    /// Numbers of the kind of a judged benchmark that are to be otherwise than by default, such as a threshold.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, f64>,
    /// Which edition of its kind's own wordings a judged benchmark is asked in. Default: the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edition: Option<u32>,
    /// What the judges of a judged benchmark are asked in other words, by stage: `system`, `first` and `choice`, each with the
    /// placeholders that the stage fills.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub wordings: JudgeWordings,
    /// A pipeline whose answers are judged again, with the verdicts of the same judges to the same questions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reuse: Option<String>,
    /// Its share of a fleet beside other benchmarks of the same submitter, 1 to 100: one of 20 gets twice as much as one of 10.
    /// Default: 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// How much it may use before nothing more of it is asked, all its stages together. Default: as much as it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap: Option<Cap>,
}

fn core_pack() -> String {
    "core".to_owned()
}

/// Selects tasks of the pack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TaskChoice {
    /// All tasks whose label matches; a class name means its one task.
    Label(String),
    /// The task of this class with these parameters, under the given label.
    Class(ClassChoice),
}

/// A task by class and parameters, as in LLM-KG-Bench configurations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassChoice {
    /// Its label in the run.
    pub label: String,
    /// Class name.
    pub class: String,
    /// Parameters; all must equal those of the pack's task. Numbers may be written as text.
    #[serde(default)]
    pub parameters: serde_json::Map<String, serde_json::Value>,
}

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigurationError {
    /// The file cannot be read.
    #[error("{file}: {source}")]
    Io {
        file: String,
        /// Why.
        source: std::io::Error,
    },
    /// Not TOML or YAML of the expected shape.
    #[error("{file}: {message}")]
    Syntax {
        file: String,
        /// The parser's message, with line and column.
        message: String,
    },
    /// A value is out of bounds.
    #[error("{file}: `{field}` {problem}")]
    Value {
        file: String,
        /// The value.
        field: String,
        /// What is wrong, with the bound.
        problem: String,
    },
}

/// What is wrong with a name that nobody could read.
fn too_long(name: &str) -> Option<String> {
    let chars = name.chars().count();
    (chars > NAME_CHARS_MAX).then(|| format!("is {chars} characters long; it may have {NAME_CHARS_MAX}"))
}

/// The first setting of a model or judge that cannot be, and the problem.
fn model_problem(model: &ModelSpec, asks: Ask) -> Option<(String, String)> {
    let field = |name: &str, problem: &str| Some((name.to_owned(), problem.to_owned()));
    if model.concurrency == Some(0) {
        return field("concurrency", "is 0; it must be at least 1");
    }
    if model.skill.is_some_and(|skill| !(0.0..=1.0).contains(&skill)) {
        return field("skill", "must be between 0 and 1");
    }
    if model.skill.is_some() && model.connector != Connector::Simulated {
        return field("skill", "is for simulated models only");
    }
    if model.connector == Connector::Replay && model.recorded.is_empty() {
        return field("recorded", "is empty; name the result files to answer from");
    }
    let access = access::problem(model, asks).map(|(name, problem)| (name.to_owned(), problem));
    let sampling =
        || sampling::problem(&model.sampling).map(|(name, problem)| (format!("sampling.{name}"), problem));
    let request =
        || request::problem(model, asks).map(|(name, problem)| (format!("request.{name}"), problem));
    access.or_else(sampling).or_else(request)
}

impl Configuration {
    /// All tasks of the built-in pack for these models, and everything else by default.
    pub fn of_models(name: String, models: Vec<ModelSpec>) -> Self {
        Self {
            name,
            seed: 0,
            pack: core_pack(),
            iterations: None,
            task_iterations: BTreeMap::new(),
            tasks: Vec::new(),
            models,
            pipeline: None,
            judges: BTreeMap::new(),
            settings: BTreeMap::new(),
            edition: None,
            wordings: BTreeMap::new(),
            reuse: None,
            priority: None,
            cap: None,
        }
    }

    /// Reads a configuration file: `.toml` in TOML, everything else in YAML, either ours or LLM-KG-Bench's.
    pub fn read(path: &Path) -> Result<Self, ConfigurationError> {
        let file = path.display().to_string();
        if path.extension().is_some_and(|extension| extension == "kgpack") {
            let message =
                format!("it is a pack, and no configuration; a configuration names it: `pack = \"{file}\"`");
            return Err(ConfigurationError::Syntax { file, message });
        }
        let text = service_kit::named_files::read_text(path, FILE_BYTES_MAX)
            .map_err(|source| ConfigurationError::Io { file: file.clone(), source })?;
        Self::parse(&text, &file)
    }

    /// Reads a configuration; `file` names it in errors and decides the syntax.
    pub fn parse(text: &str, file: &str) -> Result<Self, ConfigurationError> {
        let syntax = |message: String| ConfigurationError::Syntax { file: file.to_owned(), message };
        let configuration: Self = if Path::new(file).extension().is_some_and(|extension| extension == "toml")
        {
            toml::from_str(text).map_err(|error| syntax(with_question(error.to_string())))?
        } else if llmkgbench::is_one(text) {
            llmkgbench::parse(text).map_err(syntax)?
        } else {
            serde_saphyr::from_str(text).map_err(|error| syntax(with_question(error.to_string())))?
        };
        configuration.validate(file)?;
        Ok(configuration)
    }

    /// Additional checks, besides [`validate`](Self::validate), for a run in one process: the configuration must say where
    /// models are served and where keys are. In a fleet the workers know.
    pub fn validate_local(&self, file: &str) -> Result<(), ConfigurationError> {
        for (place, model) in self.places() {
            let wrong = |field: &str, problem: &str| {
                let (file, field) = (file.to_owned(), format!("{place}.{field}"));
                Err(ConfigurationError::Value { file, field, problem: problem.to_owned() })
            };
            if model.connector == Connector::OpenaiCompatible && model.endpoint.is_none() {
                return wrong("endpoint", "is missing; this connector needs the server's URL");
            }
            if model.key.is_some() {
                return wrong(
                    "key",
                    "names a key of a fleet's workers; on one machine use `key_env`, `key_file` or `key_command`",
                );
            }
        }
        Ok(())
    }

    /// Additional checks, besides [`validate`](Self::validate), for a fleet: the configuration comes from others and must not
    /// direct workers to their own machines or to forbidden addresses.
    pub fn validate_fleet(&self, file: &str) -> Result<(), ConfigurationError> {
        for (place, model) in self.places() {
            let wrong = |field: &str, problem: String| {
                let (file, field) = (file.to_owned(), format!("{place}.{field}"));
                Err(ConfigurationError::Value { file, field, problem })
            };
            if let Err(denied) = points_nowhere(model) {
                let field = match (&model.key_env, &model.key_file) {
                    (Some(_), _) => "key_env",
                    (None, Some(_)) => "key_file",
                    (None, None) => "key_command",
                };
                return wrong(field, format!("is not for fleets: {denied}"));
            }
            let Some(endpoint) = &model.endpoint else { continue };
            if let Err(problem) = Place::parse(endpoint) {
                return wrong("endpoint", format!("cannot be asked: {problem}"));
            }
        }
        Ok(())
    }

    /// Checks that a judged benchmark has the judges that its kind needs, and that no other benchmark has any.
    fn validate_judges(&self, file: &str) -> Result<(), ConfigurationError> {
        let wrong = |field: String, problem: String| {
            Err(ConfigurationError::Value { file: file.to_owned(), field, problem })
        };
        let Some(name) = &self.pipeline else {
            let fields = [
                ("judges", !self.judges.is_empty()),
                ("settings", !self.settings.is_empty()),
                ("edition", self.edition.is_some()),
                ("wordings", !self.wordings.is_empty()),
                ("reuse", self.reuse.is_some()),
            ];
            if let Some((field, _)) = fields.into_iter().find(|(_, given)| *given) {
                return wrong(
                    field.to_owned(),
                    "belongs to a judged benchmark; `pipeline` says which".into(),
                );
            }
            return Ok(());
        };
        let Some(kind) = benchmarks::kinds::find(Some(name)) else {
            let known: Vec<&str> = benchmarks::kinds::judged().map(|kind| kind.name).collect();
            let offered = spelling::offer(name, known.iter().copied());
            return wrong("pipeline".to_owned(), format!("is `{name}`; {offered}"));
        };
        for stage in kind.stages() {
            let field = format!("judges.{}", stage.judge);
            let Some(judge) = self.judges.get(stage.judge) else {
                return wrong(field, format!("is missing; stage `{}` of {name} asks it", stage.name));
            };
            let asks = stage.asks();
            if !judge.connector.offers().contains(&asks) {
                let problem = format!("cannot be asked to {asks}, as stage `{}` does", stage.name);
                return wrong(format!("{field}.connector"), problem);
            }
            if let Some((name, problem)) = model_problem(judge, asks) {
                return wrong(format!("{field}.{name}"), problem);
            }
        }
        for (name, value) in &self.settings {
            let field = format!("settings.{name}");
            let Some(setting) = kind.settings().iter().find(|setting| setting.name == name) else {
                let names: Vec<&str> = kind.settings().iter().map(|setting| setting.name).collect();
                let known = if names.is_empty() { "it has none".to_owned() } else { names.join(", ") };
                return wrong(field, format!("is no setting of {}: {known}", kind.name));
            };
            let (least, most) = setting.range;
            if !(least..=most).contains(value) {
                return wrong(field, format!("is {value}; it must be between {least} and {most}"));
            }
        }
        if let Some(edition) = self.edition.filter(|_| kind.judging_in(self.edition).is_none()) {
            let problem = format!("is {edition}; {name} has the editions 1 to {}", kind.edition());
            return wrong("edition".to_owned(), problem);
        }
        for (name, wording) in &self.wordings {
            let field = format!("wordings.{name}");
            let Some(stage) = kind.stages().iter().find(|stage| stage.name == name) else {
                let names: Vec<&str> = kind.stages().iter().map(|stage| stage.name).collect();
                return wrong(field, format!("is no stage of {}: {}", kind.name, names.join(", ")));
            };
            if let Err(unusable) = stage.check_wording(wording) {
                let kind = unusable.kind.map(|kind| format!(".{kind}")).unwrap_or_default();
                return wrong(format!("{field}{kind}"), unusable.problem);
            }
        }
        let needed = |role: &String| kind.stages().iter().any(|stage| stage.judge == role);
        if let Some(role) = self.judges.keys().find(|role| !needed(role)) {
            return wrong(format!("judges.{role}"), format!("is asked by no stage of {name}"));
        }
        Ok(())
    }

    /// Takes the priority and the cap of what it extends, where it names none.
    pub(crate) fn keep_terms_of(&mut self, extended: &Self) {
        self.priority = self.priority.or(extended.priority);
        self.cap = self.cap.or(extended.cap);
    }

    /// Whether it names another cap than the one under which it goes on.
    pub(crate) fn names_other_cap(&self, known: Option<Cap>) -> bool {
        self.cap.is_some() && self.cap != known
    }

    /// The same questions without what makes it a judged benchmark.
    pub(crate) fn unjudged(&self) -> Self {
        let (judges, settings, wordings) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { pipeline: None, judges, settings, wordings, edition: None, reuse: None, ..self.clone() }
    }

    /// The models that are asked, with their paths in the configuration.
    fn places(&self) -> impl Iterator<Item = (String, &ModelSpec)> {
        let models = self.models.iter().enumerate().map(|(index, model)| (format!("models[{index}]"), model));
        models.chain(self.judges.iter().map(|(role, judge)| (format!("judges.{role}"), judge)))
    }

    /// Checks all bounds that types do not enforce.
    pub fn validate(&self, file: &str) -> Result<(), ConfigurationError> {
        let wrong = |field: &str, problem: String| {
            Err(ConfigurationError::Value { file: file.to_owned(), field: field.to_owned(), problem })
        };
        if let Some(problem) = too_long(&self.name) {
            return wrong("name", problem);
        }
        for (place, model) in self.places() {
            if let Some(problem) = label_problem(model.label.as_str()) {
                return wrong(&format!("{place}.label"), problem);
            }
            if let Some(problem) = model.model.as_deref().and_then(too_long) {
                return wrong(&format!("{place}.model"), problem);
            }
        }
        let iterations = 1..=ITERATIONS_MAX;
        let bad_iterations = |given: u32| format!("is {given}; it must be between 1 and {ITERATIONS_MAX}");
        if let Some(given) = self.iterations.filter(|given| !iterations.contains(given)) {
            return wrong("iterations", bad_iterations(given));
        }
        let too_many = |of: &BTreeMap<String, u32>| {
            let over = of.iter().find(|(_, given)| **given > ITERATIONS_MAX);
            over.map(|(task, given)| format!("of `{task}` is {given}; it may be {ITERATIONS_MAX} at most"))
        };
        if let Some(problem) = too_many(&self.task_iterations) {
            return wrong("task_iterations", problem);
        }
        if self.tasks.len() > TASK_CHOICES_MAX {
            let problem = format!("has {} entries; it may have {TASK_CHOICES_MAX}", self.tasks.len());
            return wrong("tasks", problem);
        }
        if self.models.is_empty() {
            return wrong("models", "is empty; name at least one model".into());
        }
        if let Some((field, problem)) = self.cap.and_then(Cap::problem) {
            return wrong(field, problem);
        }
        self.validate_judges(file)?;
        let mut labels = std::collections::BTreeSet::new();
        for (index, model) in self.models.iter().enumerate() {
            let field = |name: &str| format!("models[{index}].{name}");
            if !labels.insert(&model.label) {
                return wrong(
                    &field("label"),
                    format!("`{}` is used twice; labels must differ", model.label),
                );
            }
            if let Some(given) = model.iterations.filter(|given| !iterations.contains(given)) {
                return wrong(&field("iterations"), bad_iterations(given));
            }
            if let Some(problem) = too_many(&model.task_iterations) {
                return wrong(&field("task_iterations"), problem);
            }
            if let Some((name, problem)) = model_problem(model, Ask::Chat) {
                return wrong(&field(&name), problem);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOML: &str = r#"
        name = "two models"
        iterations = 3
        tasks = ["RdfFriendCount-*"]
        [[models]]
        label = "local"
        connector = "openai-compatible"
        endpoint = "http://127.0.0.1:8000/v1"
        sampling = { temperature = 0.0 }
        [[models]]
        label = "sim"
        connector = "simulated"
        skill = 0.5
        iterations = 7
    "#;

    #[test]
    fn names_have_an_end() {
        let long = "x".repeat(NAME_CHARS_MAX + 1);
        for (text, field) in [
            (format!("name: {long}\nmodels: [{{label: a, connector: simulated}}]"), "name"),
            (
                format!("name: a\nmodels: [{{label: a, connector: simulated, model: {long}}}]"),
                "models[0].model",
            ),
        ] {
            let refused = Configuration::parse(&text, "a.yaml").unwrap_err().to_string();
            assert!(refused.contains(&format!("`{field}` is 1001 characters long")), "{refused}");
        }
        for label in [&long, "", "m\\u001b[2J", "\\u202em"] {
            let text = format!("name = \"a\"\n[[models]]\nlabel = \"{label}\"\nconnector = \"simulated\"\n");
            let refused = Configuration::parse(&text, "a.toml").unwrap_err().to_string();
            assert!(refused.contains("`models[0].label`"), "{refused}");
        }
    }

    #[test]
    fn lists_of_tasks_have_an_end() {
        let with = |choices: usize| {
            let tasks = "'RdfFriendCount-*', ".repeat(choices);
            let text =
                format!("name = 'a'\ntasks = [{tasks}]\n[[models]]\nlabel = 'm'\nconnector = 'simulated'\n");
            Configuration::parse(&text, "a.toml").map(|read| read.tasks.len())
        };
        assert_eq!(with(TASK_CHOICES_MAX).unwrap(), TASK_CHOICES_MAX);
        let refused = with(TASK_CHOICES_MAX + 1).unwrap_err().to_string();
        assert!(refused.contains("`tasks` has 1001 entries; it may have 1000"), "{refused}");
    }

    #[test]
    fn toml_and_yaml_say_the_same() {
        let from_toml = Configuration::parse(TOML, "a.toml").unwrap();
        let yaml = r#"
name: two models
iterations: 3
tasks: ["RdfFriendCount-*"]
models:
  - {label: local, connector: openai-compatible, endpoint: "http://127.0.0.1:8000/v1", sampling: {temperature: 0.0}}
  - {label: sim, connector: simulated, skill: 0.5, iterations: 7}
"#;
        assert_eq!(from_toml, Configuration::parse(yaml, "a.yaml").unwrap());
        assert_eq!(from_toml.pack, "core");
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        let error = |from: &str, to: &str| {
            assert!(TOML.contains(from));
            Configuration::parse(&TOML.replacen(from, to, 1), "a.toml").unwrap_err().to_string()
        };
        assert!(error("iterations = 3", "iterations = 0").contains("between 1 and"));
        assert!(error("label = \"sim\"", "label = \"local\"").contains("models[1].label"));
        assert!(error("skill = 0.5", "skill = 1.5").contains("between 0 and 1"));
        let unknown = error("iterations = 3", "iteration = 3");
        assert!(unknown.contains("line") && unknown.ends_with("did you mean `iterations`?"), "{unknown}");
    }

    #[test]
    fn a_fleets_configuration_points_nowhere_in_its_workers() {
        let error = |line: &str| {
            let text = TOML.replace("skill = 0.5", line).replace("\"simulated\"", "\"anthropic\"");
            Configuration::parse(&text, "a.toml").unwrap().validate_fleet("a.toml").unwrap_err().to_string()
        };
        for line in ["key_env = \"ANTHROPIC_API_KEY\"", "key_file = \"/etc/hostname\""] {
            let refused = error(line);
            assert!(refused.contains("models[1].key_") && refused.contains("key = \"NAME\""), "{refused}");
        }
        assert!(error("endpoint = \"http://169.254.169.254/\"").contains("never contacted"));
        assert!(error("endpoint = \"http://u:p@h/\"").contains("password"));
        Configuration::parse(TOML, "a.toml").unwrap().validate_fleet("a.toml").unwrap();
        let named = TOML.replace("skill = 0.5", "key = \"house\"");
        let refused = Configuration::parse(&named, "a.toml").unwrap().validate_local("a.toml").unwrap_err();
        assert!(refused.to_string().contains("models[1].key"), "{refused}");
    }

    #[test]
    fn settings_belong_to_a_kind_and_have_bounds() {
        let error = |from: &str, to: &str| {
            let judge = "{label: j, connector: simulated}";
            let roles = ["writer", "abstention", "embedder", "classifier", "entailment", "expert"];
            let judges: String = roles.map(|role| format!("  {role}: {judge}\n")).concat();
            let text = format!(
                "name: a\npipeline: kghalubench\nmodels: [{judge}]\njudges:\n{judges}settings:\n  similarity_threshold: 0.725\n"
            );
            assert_eq!(
                Configuration::parse(&text, "a.yaml").unwrap().settings["similarity_threshold"],
                0.725
            );
            Configuration::parse(&text.replacen(from, to, 1), "a.yaml").unwrap_err().to_string()
        };
        assert!(
            error("0.725", "7").contains("`settings.similarity_threshold` is 7; it must be between 0 and 1")
        );
        assert!(error("0.725", ".nan").contains("must be between 0 and 1"));
        let unknown = error("similarity_threshold", "threshold");
        assert!(unknown.contains("settings.threshold") && unknown.contains("cosine_share"), "{unknown}");
        let text = "name: a\nmodels: [{label: m, connector: simulated}]\nsettings: {x: 1}\n";
        let nowhere = Configuration::parse(text, "a.yaml").unwrap_err().to_string();
        assert!(nowhere.contains("`settings` belongs to a judged benchmark"), "{nowhere}");
    }

    #[test]
    fn a_cap_allows_something() {
        let read = |cap: &str| Configuration::parse(&format!("{TOML}\n[cap]\n{cap}\n"), "a.toml");
        assert_eq!(read("tokens = 1_000_000").unwrap().cap, Some(Cap { tokens: 1_000_000 }));
        let refused = |cap: &str| read(cap).unwrap_err().to_string();
        assert!(refused("").contains("tokens"), "{}", refused(""));
        assert!(refused("tokens = 0").contains("`cap.tokens` is 0"));
        assert!(refused("gpu_hours = 1").contains("gpu_hours"));
    }

    #[test]
    fn only_a_run_of_one_process_must_say_where_its_models_are() {
        let text = TOML.replace("endpoint = \"http://127.0.0.1:8000/v1\"", "");
        let configuration = Configuration::parse(&text, "a.toml").unwrap();
        let refused = configuration.validate_local("a.toml").unwrap_err().to_string();
        assert!(refused.contains("models[0].endpoint") && refused.contains("server's URL"), "{refused}");
        Configuration::parse(TOML, "a.toml").unwrap().validate_local("a.toml").unwrap();
    }
}
