//! Normalises the addresses of servers, so that another spelling of an address is not another configuration.

use coordinator::configuration::{Configuration, ConfigurationError, Connector};

use crate::kit::exit_code::Exit;

/// Normalises the addresses of a configuration. `file` names it in errors.
///
/// # Errors
/// An address cannot be that of an OpenAI-compatible API.
pub fn normalise(configuration: &mut Configuration, file: &str) -> anyhow::Result<()> {
    let models = configuration.models.iter_mut().enumerate();
    let models = models.map(|(index, model)| (format!("models[{index}]"), model));
    let judges = configuration.judges.iter_mut().map(|(role, judge)| (format!("judges.{role}"), judge));
    for (place, model) in models.chain(judges) {
        let Some(endpoint) = &mut model.endpoint else { continue };
        if model.connector == Connector::OpenaiCompatible {
            let base = models::http::api_base(endpoint).map_err(|error| {
                Exit::usage(ConfigurationError::Value {
                    file: file.to_owned(),
                    field: format!("{place}.endpoint"),
                    problem: format!("is not the address of an API: {error}"),
                })
            })?;
            *endpoint = base.to_string();
        }
    }
    Ok(())
}
