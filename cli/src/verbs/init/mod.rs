//! `kgfleet init`.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;

use crate::kit::exit_code::{ExitCode, usage};
use crate::kit::output::say;

/// The configuration, in which `ENDPOINT` and `MODEL` stand for what the user names.
const SKELETON: &str = include_str!("benchmark.toml");

/// Write a commented configuration for a model of your own, to be changed.
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
}

/// `kgfleet init`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
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
    let mut written = std::fs::File::create_new(file).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            usage!("{} is there already; name another file", file.display())
        }
        _ => anyhow::Error::from(error).context(format!("cannot write {}", file.display())),
    })?;
    written.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", file.display()))?;
    let file = file.display();
    say(&format!(
        "wrote {file}; `kgfleet check {file}` looks whether it can run, `kgfleet run {file}` runs it"
    ));
    Ok(ExitCode::Success)
}

#[cfg(test)]
mod tests {
    use coordinator::configuration::Configuration;

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
}
