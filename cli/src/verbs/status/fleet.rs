//! The runs of a fleet, as its coordinator knows them.

use std::io::{self, Write};

use domain::control::Control;
use report::costs::Prices;

use super::shown;
use crate::engine::notify::Notify;
use crate::engine::watch;
use crate::kit::exit_code::{ExitCode, explained};
use crate::kit::runtime::block_on;
use crate::kit::screen::Screen;
use crate::kit::view;
use crate::place::names;
use crate::place::remote::Remote;

/// Follows one run until it ends.
pub(super) fn follow(remote: &Remote, run: &str, notify: Notify, json: bool) -> anyhow::Result<ExitCode> {
    remote.about(run, async |client, run| watch::follow(client, run, json, notify).await)
}

/// Shows one run, or lists all of them.
pub(super) fn show(
    remote: &Remote,
    run: Option<&str>,
    prices: &Prices,
    json: bool,
) -> anyhow::Result<ExitCode> {
    block_on(async {
        let client = remote.client()?;
        let mut out = io::stdout().lock();
        if let Some(run) = run {
            let run = names::of_coordinator(run, &client).await?;
            let found = client.view(&run).await.map_err(explained)?;
            if json {
                writeln!(out, "{}", serde_json::to_string(&found)?)?;
            } else {
                let head = [
                    Some(view::headline(&found)),
                    view::share(&found),
                    view::limits(&found),
                    view::spent(&found, prices),
                ];
                shown::show(&found, true, head.into_iter().flatten(), &mut out)?;
            }
            return Ok(ExitCode::Success);
        }
        let runs = client.list().await.map_err(explained)?;
        if json {
            for run in &runs {
                writeln!(out, "{}", serde_json::to_string(run)?)?;
            }
        } else {
            Screen::here().table(&view::runs(&runs), &mut out)?;
        }
        Ok(ExitCode::Success)
    })
}
