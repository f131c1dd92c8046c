//! Sends a configuration to a coordinator.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use coordinator::configuration::Configuration;
use domain::control::{BenchmarkView, Control, Submission};
use domain::{ErrorCode, Priority};
use proto::client::ApiClient;

use crate::kit::exit_code::{Exit, ExitCode, explained};
use crate::kit::output::{note, print_json};
use crate::kit::runtime::block_on;
use crate::kit::view;
use crate::place::names;
use crate::place::packs::CORE;
use crate::place::remote::Remote;
use crate::place::task_files;

/// The pack of a configuration as a file; `None` if it is the built-in one.
fn pack(configuration: &Configuration) -> anyhow::Result<Option<Arc<[u8]>>> {
    if configuration.pack == CORE {
        return Ok(None);
    }
    if let Some(sealed) = packs::bundled(&configuration.pack) {
        return Ok(Some(sealed.into()));
    }
    if let Some(sealed) = task_files::sealed(&configuration.pack)? {
        return Ok(Some(sealed));
    }
    let bytes = service_kit::named_files::read(Path::new(&configuration.pack), packs::SEALED_BYTES_MAX)
        .with_context(|| format!("cannot read the pack {}", configuration.pack))
        .map_err(Exit::usage)?;
    Ok(Some(bytes.into()))
}

/// Time between two looks for coordinators.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Submits a configuration: as a run of its own, or as what `extends` another one by. Coordinators that cannot be reached are waited
/// for so long.
///
/// # Errors
/// The pack cannot be read; the coordinator refuses the configuration, or does not answer.
pub fn submit(
    remote: &Remote,
    configuration: &Configuration,
    extends: Option<&str>,
    wait: Duration,
) -> anyhow::Result<BenchmarkView> {
    let submission =
        Submission { configuration: serde_json::to_value(configuration)?, pack: pack(configuration)? };
    block_on(async {
        let client = remote.client()?;
        if !wait.is_zero() {
            await_coordinators(remote, &client, wait).await?;
        }
        let Some(run) = extends else {
            let queued = client.submit(submission).await.map_err(explained)?;
            tell_priority(configuration.priority, &queued);
            return Ok(queued);
        };
        let run = names::resolve(run, &client).await?;
        let extended = client.extend(&run, submission).await.map_err(explained)?;
        tell_changes(&extended);
        Ok(extended)
    })
}

/// Says what was submitted.
pub fn tell(queued: &BenchmarkView, json: bool) -> anyhow::Result<ExitCode> {
    if json {
        print_json(queued)?;
    } else {
        writeln!(io::stdout(), "{}", queued.run)?;
        note!("{}; `kgfleet status {} --follow` follows it", view::headline(queued), queued.run);
    }
    Ok(ExitCode::Success)
}

/// Prints what an extension has changed.
pub fn tell_changes(extended: &BenchmarkView) {
    extended.notes.iter().for_each(|note| note!("{note}"));
}

/// Says that a benchmark that is under way keeps its priority.
fn tell_priority(wanted: Option<Priority>, view: &BenchmarkView) {
    if wanted.is_some_and(|wanted| wanted.get() != view.priority) {
        note!(
            "{} is under way, and its priority stays {}; submit it with --extend {} to change that",
            view.run,
            view.priority,
            view.run
        );
    }
}

/// Waits for so long until a coordinator answers, and says for what it waits.
async fn await_coordinators(remote: &Remote, client: &ApiClient, wait: Duration) -> anyhow::Result<()> {
    let (until, mut said) = (Instant::now() + wait, String::new());
    loop {
        match client.list().await {
            Ok(_) => return Ok(()),
            Err(error) if error.code == ErrorCode::Unavailable && Instant::now() < until => {
                if said != error.message {
                    note!("waiting for {}: {}", remote.address(), error.message);
                    said = error.message;
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
            Err(error) => return Err(explained(error)),
        }
    }
}
