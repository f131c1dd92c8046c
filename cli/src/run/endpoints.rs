//! Addresses of servers in the one form in which they are compared: the same server written otherwise is no other
//! configuration.

use coordinator::configuration::{Benchmark, ConfigurationError, Connector};

use crate::exit_code::Exit;

/// Brings the addresses of a configuration into that form. `file` names it in errors.
///
/// # Errors
/// An address that cannot be one of an OpenAI-compatible API.
pub fn normalise(benchmark: &mut Benchmark, file: &str) -> anyhow::Result<()> {
    for (index, model) in benchmark.models.iter_mut().enumerate() {
        let Some(endpoint) = &mut model.endpoint else { continue };
        if model.connector == Connector::OpenaiCompatible {
            let base = models::http::api_base(endpoint).map_err(|error| {
                Exit::usage(ConfigurationError::Value {
                    file: file.to_owned(),
                    field: format!("models[{index}].endpoint"),
                    problem: format!("is no address of an API: {error}"),
                })
            })?;
            *endpoint = base.to_string();
        }
    }
    Ok(())
}
