//! LLM-KG-Bench's own `configuration.yml`, read unchanged.
//!
//! ```yaml
//! tasks:
//!   - ClassName                    # or
//!   - label: ClassName-variant
//!     class: ClassName
//!     params: [{graphFormat: turtle}]
//! models:
//!   - label: Some-Model
//!     class: ModelGpt              # or ModelGoogle, ModelClaude, ModelVLLM, …
//!     params: [{model: some-model-2024}]
//! sizes: [1000]
//! iterations: 20
//! ```

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{ClassChoice, Configuration, Connector, ModelSpec, TaskChoice};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    tasks: Vec<TaskEntry>,
    #[serde(default)]
    models: Vec<ModelEntry>,
    /// Target sizes of scalable tasks; packs contain one size.
    #[serde(default)]
    #[expect(dead_code, reason = "read so that it is not reported as unknown")]
    sizes: Vec<u64>,
    iterations: Option<u32>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum TaskEntry {
    Class(String),
    Variant {
        label: Option<String>,
        class: String,
        #[serde(default)]
        params: Vec<Map<String, Value>>,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelEntry {
    label: String,
    class: String,
    #[serde(default)]
    params: Vec<Map<String, Value>>,
}

/// Whether a YAML text is a configuration of this format: its models have a `class`.
pub(crate) fn is_one(text: &str) -> bool {
    text.lines().any(|line| {
        let line = line.trim_start().trim_start_matches("- ").trim_start();
        line.strip_prefix("class:")
            .is_some_and(|class| class.trim().trim_matches(['"', '\'']).starts_with("Model"))
    })
}

/// Reads the configuration.
pub(crate) fn parse(text: &str) -> Result<Configuration, String> {
    let file: File = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
    let models = file.models.into_iter().map(model).collect::<Result<_, _>>()?;
    Ok(Configuration {
        iterations: file.iterations,
        tasks: file.tasks.into_iter().map(task).collect(),
        ..Configuration::of_models("LLM-KG-Bench configuration".to_owned(), models)
    })
}

fn task(entry: TaskEntry) -> TaskChoice {
    match entry {
        TaskEntry::Class(class) => TaskChoice::Label(class),
        TaskEntry::Variant { label, class, params } => TaskChoice::Class(ClassChoice {
            label: label.unwrap_or_else(|| class.clone()),
            class,
            parameters: params.into_iter().flatten().collect(),
        }),
    }
}

fn model(entry: ModelEntry) -> Result<ModelSpec, String> {
    let connector = match entry.class.as_str() {
        "ModelGpt" | "ModelOpenAI" | "ModelVLLM" | "ModelVllm" => Connector::OpenaiCompatible,
        "ModelGoogle" => Connector::Gemini,
        "ModelClaude" => Connector::Anthropic,
        other => {
            return Err(format!(
                "model `{}`: unknown class `{other}` (known: ModelGpt, ModelGoogle, ModelClaude, ModelVLLM)",
                entry.label
            ));
        }
    };
    let parameters: Map<String, Value> = entry.params.into_iter().flatten().collect();
    let text = |name: &str| parameters.get(name).and_then(Value::as_str).map(str::to_owned);
    let endpoint = text("endpoint").or_else(|| text("base_url")).or_else(|| {
        // vLLM runs on this machine; OpenAI's address is well known.
        (connector == Connector::OpenaiCompatible).then(|| match entry.class.as_str() {
            "ModelGpt" | "ModelOpenAI" => "https://api.openai.com/v1".to_owned(),
            _ => "http://127.0.0.1:8000/v1".to_owned(),
        })
    });
    // Without a key: workers know where to find the one for a provider's own address.
    Ok(ModelSpec { model: text("model"), endpoint, ..ModelSpec::new(entry.label, connector) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
tasks:
  - label: RdfFriendCount-turtle-1
    class: RdfFriendCount
    params:
      - specialAddKnowsCount: "1"
        graphFormat: "turtle"
  - SparqlSyntaxFixingListLcQuad
models:
  - label: Somebody
    class: "ModelGoogle"
    params:
      - model: 'models/somebody-001'
sizes:
  - 1000
iterations: 20
"#;

    #[test]
    fn the_published_format_is_read_unchanged() {
        let configuration = Configuration::parse(TEXT, "configuration.yml").unwrap();
        assert_eq!(configuration.iterations, Some(20));
        assert_eq!(configuration.models[0].connector, Connector::Gemini);
        assert_eq!(configuration.models[0].requested(), "models/somebody-001");
        assert_eq!(configuration.tasks[1], TaskChoice::Label("SparqlSyntaxFixingListLcQuad".into()));
        let TaskChoice::Class(choice) = &configuration.tasks[0] else { panic!("a class with parameters") };
        assert_eq!(choice.parameters["graphFormat"], "turtle");
    }

    #[test]
    fn unknown_connectors_are_named() {
        let text = TEXT.replace("ModelGoogle", "ModelParrot");
        assert!(Configuration::parse(&text, "c.yml").unwrap_err().to_string().contains("ModelParrot"));
    }
}
