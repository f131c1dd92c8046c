//! Sends a configuration to a coordinator.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use coordinator::configuration::Configuration;
use domain::ErrorCode;
use domain::control::{BenchmarkView, Control, Submission};
use serde_json::Value;

use crate::engine::notify::Notify;
use crate::engine::watch;
use crate::kit::exit_code::{Exit, ExitCode, explained};
use crate::kit::output::note;
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

/// The message to a coordinator for a configuration.
pub fn submission(configuration: &Configuration) -> anyhow::Result<Submission> {
    Ok(Submission { configuration: serde_json::to_value(configuration)?, pack: pack(configuration)? })
}

/// Prints what an extension has changed.
pub fn tell_changes(extended: &BenchmarkView) {
    extended.notes.iter().for_each(|note| note!("{note}"));
}

/// Says that a benchmark that is under way keeps its priority.
fn tell_priority(wanted: Option<u64>, view: &BenchmarkView) {
    if wanted.is_some_and(|wanted| wanted != u64::from(view.priority)) {
        note!(
            "{} is under way, and its priority stays {}; submit it with --extend {} to change that",
            view.run,
            view.priority,
            view.run
        );
    }
}

/// Time between two looks for coordinators.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Waits for so long until a coordinator answers, and says for what it waits.
pub fn await_coordinators(remote: &Remote, wait: Duration) -> anyhow::Result<()> {
    if wait.is_zero() {
        return Ok(());
    }
    block_on(async {
        let client = remote.client()?;
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
    })
}

/// Submits a configuration.
pub fn configuration(remote: &Remote, configuration: &Configuration, json: bool) -> anyhow::Result<ExitCode> {
    queue(remote, submission(configuration)?, None, None, json)
}

/// Submits a run, and follows it if the user wants that.
pub fn queue(
    remote: &Remote,
    submission: Submission,
    extends: Option<&str>,
    follow: Option<Notify>,
    json: bool,
) -> anyhow::Result<ExitCode> {
    block_on(async {
        let client = remote.client()?;
        let queued = match extends {
            None => {
                let priority = submission.configuration.get("priority").and_then(Value::as_u64);
                client.submit(submission).await.inspect(|view| tell_priority(priority, view))
            }
            Some(run) => {
                let run = names::resolve(run, &client).await?;
                client.extend(&run, submission).await.inspect(tell_changes)
            }
        };
        let queued = queued.map_err(explained)?;
        if let Some(notify) = follow {
            note!("{}", view::headline(&queued));
            return watch::follow(&client, &queued.run, json, notify).await;
        }
        let mut out = io::stdout().lock();
        if json {
            writeln!(out, "{}", serde_json::to_string(&queued)?)?;
        } else {
            writeln!(out, "{}", queued.run)?;
            note!("{}; `kgfleet status {} --follow` follows it", view::headline(&queued), queued.run);
        }
        Ok(ExitCode::Success)
    })
}
