//! `kgfleet init`.

use std::io::Write;
use std::path::PathBuf;

use crate::kit::exit_code::{ExitCode, usage};
use crate::kit::output::note;
use crate::kit::whole_file;

/// The configuration, in which `ENDPOINT` and `MODEL` stand for what the user names.
const SKELETON: &str = include_str!("benchmark.toml");

/// The JSON Schema of configurations.
const SCHEMA: &str = include_str!("configuration.schema.json");

/// Write a commented configuration for a model of your own, to be changed.
///
/// `kgfleet init --schema > kgfleet.schema.json` writes the JSON Schema of configurations instead. A line `#:schema PATH` at the
/// top of a configuration names it for editors that use Taplo or Tombi, which then complete and check the keys.
///
/// Exit codes: 0 written; 2 the file is there already, or a name cannot be used; 3 it cannot be written.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The file to write.
    #[arg(default_value = "benchmark.toml")]
    file: PathBuf,
    /// Address of an OpenAI-compatible server, such as vLLM.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8000/v1")]
    endpoint: String,
    /// The model, by the name that the server knows.
    #[arg(long, value_name = "NAME", default_value = "my-model")]
    model: String,
    /// Print the JSON Schema of configurations, and write nothing.
    #[arg(long)]
    schema: bool,
}

/// `kgfleet init`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    if arguments.schema {
        std::io::stdout().lock().write_all(SCHEMA.as_bytes())?;
        return Ok(ExitCode::Success);
    }
    for (option, text) in [("--endpoint", &arguments.endpoint), ("--model", &arguments.model)] {
        if text.is_empty() || text.chars().any(|c| c.is_control() || matches!(c, '"' | '\\')) {
            return Err(usage!(
                "{option}: `{}` may have no quotes, backslashes and control characters",
                text.escape_default()
            ));
        }
    }
    let text = SKELETON.replace("ENDPOINT", &arguments.endpoint).replace("MODEL", &arguments.model);
    let file = &arguments.file;
    whole_file::write_new(file, &text)?;
    let file = file.display();
    note!(
        "wrote {file}; `kgfleet plan {file}` says what it would run and whether it can, `kgfleet run {file}` runs it"
    );
    Ok(ExitCode::Success)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use coordinator::configuration::{ClassChoice, Configuration, ModelSpec};
    use domain::{Connector, RequestSettings, Sampling};
    use serde_json::Value;

    use super::*;

    /// Without the sign in front of keys that are commented out.
    fn uncommented(text: &str) -> String {
        let line = |line: &str| {
            let key = line.strip_prefix("# ").filter(|rest| {
                rest.split_once(" = ").is_some_and(|(key, _)| {
                    key.chars().all(|c| c.is_ascii_lowercase() || matches!(c, '_' | '.'))
                })
            });
            format!("{}\n", key.unwrap_or(line))
        };
        text.lines().map(line).collect()
    }

    #[test]
    fn the_file_is_a_configuration_with_and_without_what_is_commented_out() {
        let plain = Configuration::parse(SKELETON, "benchmark.toml").unwrap();
        assert_eq!((plain.models.len(), plain.iterations), (1, Some(20)));
        let text = uncommented(SKELETON);
        let full = Configuration::parse(&text, "benchmark.toml").unwrap();
        full.validate_local("benchmark.toml").unwrap();
        assert!(
            text.lines().filter(|line| line.starts_with("# ")).all(|line| !line.contains(" = ")),
            "{text}"
        );
        assert!(!full.tasks.is_empty() && full.models[0].key_env.is_some());
    }

    /// The keys that are read for a type, by the message about one that is not.
    fn keys_of<T: serde::de::DeserializeOwned>() -> BTreeSet<String> {
        let error =
            serde_json::from_value::<T>(serde_json::json!({"no such key": 0})).err().unwrap().to_string();
        let (_, known) = error.split_once("expected one of ").unwrap_or_else(|| panic!("{error}"));
        known.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }

    #[test]
    fn the_schema_names_the_keys_that_are_read_and_no_others() {
        let schema: Value = serde_json::from_str(SCHEMA).unwrap();
        let named = |place: &str| {
            let properties =
                schema.pointer(place).and_then(Value::as_object).unwrap_or_else(|| panic!("{place}"));
            properties.keys().cloned().collect::<BTreeSet<_>>()
        };
        assert_eq!(named("/properties"), keys_of::<Configuration>());
        assert_eq!(named("/definitions/model/properties"), keys_of::<ModelSpec>());
        assert_eq!(named("/definitions/sampling/properties"), keys_of::<Sampling>());
        assert_eq!(named("/definitions/request/properties"), keys_of::<RequestSettings>());
        assert_eq!(named("/definitions/task/anyOf/1/properties"), keys_of::<ClassChoice>());
        let connectors = Connector::ALL.map(Connector::as_str);
        assert_eq!(
            schema["definitions"]["model"]["properties"]["connector"]["enum"],
            serde_json::json!(connectors)
        );
    }
}
