//! Reports events of a run elsewhere: `--on-end COMMAND`, `--webhook URL`.
//!
//! The process that follows the run sends the notices, with its user's rights. A coordinator never does, because then
//! anybody who submits a run could make it call addresses and programs. [`Watchman`] decides about events, [`Telling`]
//! sends them.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use domain::Backoff;
use domain::control::{BenchmarkView, RunPhase};
use models::client::redirect_place;
use models::{ClientOptions, HttpClient, SetupError};
use reqwest::header::CONTENT_TYPE;
use serde::Serialize;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use url::Url;

use crate::kit::arguments::seconds;
use crate::kit::output::say;

/// Maximum number of attempts to send a notice.
const ATTEMPTS_MAX: u32 = 4;

/// Timeout of one attempt.
const ATTEMPT_MAX: Duration = Duration::from_secs(10);

/// Whom to tell, and how soon.
#[derive(Clone, Debug, clap::Args)]
pub struct Notify {
    /// Run this command of the shell when the run is over, with a JSON of how it ended on its standard input. The process
    /// that follows the run does this, so it has to stay; `kgfleet status` and `submit` follow with --follow only.
    #[arg(long, value_name = "COMMAND")]
    pub on_end: Option<String>,
    /// POST a JSON to this URL when the run is over (`finished`), when no record has come for a while (`stalled`), and when
    /// models cannot be asked (`blocked`). Of a judged benchmark only its end is told. The process that follows the run does
    /// the telling, so it has to stay; `kgfleet status` and `submit` follow with --follow only.
    #[arg(long, value_name = "URL")]
    pub webhook: Option<String>,
    #[command(flatten)]
    pub patience: Thresholds,
}

/// How long something has to last before it is told.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Thresholds {
    /// With --webhook: seconds without a record after which a run that has dialogues left counts as stalled.
    #[arg(long = "stalled-after", value_name = "SECONDS", default_value = "900", value_parser = seconds)]
    stalled: Duration,
    /// With --webhook: seconds for which a model may be blocked before it is told. Workers may be starting. A model whose
    /// server is loading is not told.
    #[arg(long = "blocked-after", value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    blocked: Duration,
}

domain::named! {
    /// The events that are reported.
    pub enum NoticeEvent {
        /// The run is over, finished or cancelled.
        Finished = "finished",
        /// There was no record for a while.
        Stalled = "stalled",
        /// No worker can ask the rest of a model.
        Blocked = "blocked",
    }
}

/// Decides which events to report. A plain state machine: an event is reported once, and again only after it was over.
#[derive(Debug)]
struct Watchman {
    patience: Thresholds,
    done: u64,
    /// Time of the last record.
    still_since: Instant,
    blocked_since: Option<Instant>,
    told: BTreeSet<NoticeEvent>,
}

impl Watchman {
    /// Begins to watch.
    fn new(patience: Thresholds, now: Instant) -> Self {
        Self { patience, done: 0, still_since: now, blocked_since: None, told: BTreeSet::new() }
    }

    /// Takes a view of the run; returns the events to report now. After the last one nobody follows the run any longer:
    /// models that are blocked then count as blocked at once.
    fn look(&mut self, view: &BenchmarkView, is_last: bool, now: Instant) -> Vec<NoticeEvent> {
        let works = view.phase == RunPhase::Active && view.done() < view.planned;
        if view.done() != self.done || !works {
            (self.done, self.still_since) = (view.done(), now);
        }
        if is_blocked(view) {
            self.blocked_since.get_or_insert(now);
        } else {
            self.blocked_since = None;
        }
        let Thresholds { stalled, blocked } = self.patience;
        let is_over = view.phase.is_over();
        let is_blocked =
            self.blocked_since.is_some_and(|since| is_last || now.duration_since(since) >= blocked);
        let is_stalled = works && now.duration_since(self.still_since) >= stalled;
        let mut news = Vec::new();
        for (event, holds) in [
            (NoticeEvent::Finished, is_over),
            (NoticeEvent::Stalled, is_stalled),
            (NoticeEvent::Blocked, is_blocked && !is_over),
        ] {
            if !holds {
                self.told.remove(&event);
            } else if self.told.insert(event) {
                news.push(event);
            }
        }
        news
    }
}

/// Whether a model cannot be asked for another reason than that its server loads: that passes by itself. One that loads for ever
/// lets its worker end, or the run stall.
fn is_blocked(view: &BenchmarkView) -> bool {
    view.models.iter().any(|model| model.blocked.is_some() && !model.loading)
}

/// The content of a notice.
#[derive(Debug, Serialize)]
struct Notice<'a> {
    event: NoticeEvent,
    run: &'a str,
    name: &'a str,
    phase: RunPhase,
    planned: u64,
    scored: u64,
    failed: u64,
    /// Reasons why models cannot be asked, each with its models.
    blocked: Vec<Blocked<'a>>,
}

#[derive(Debug, Serialize)]
struct Blocked<'a> {
    reason: &'a str,
    models: Vec<&'a str>,
}

/// Time between two looks at whether somebody is to be told something.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Tells whom it concerns what becomes of a benchmark. Receivers do not hold up whoever follows it.
pub struct Telling {
    /// The newest view, and whether it is the last.
    views: watch::Sender<(BenchmarkView, bool)>,
    looked: Instant,
    task: JoinHandle<()>,
}

impl Telling {
    /// Begins to tell.
    pub fn start(notify: &Notify) -> Self {
        let (views, mut seen) = watch::channel((BenchmarkView::default(), false));
        let mut watchman = Watchman::new(notify.patience, Instant::now());
        let (on_end, webhook) = (notify.on_end.clone(), notify.webhook.clone().map(Webhook::new));
        let task = tokio::spawn(async move {
            while seen.changed().await.is_ok() {
                let (view, is_last) = seen.borrow_and_update().clone();
                for event in watchman.look(&view, is_last, Instant::now()) {
                    tell(on_end.as_deref(), webhook.as_ref(), event, &view).await;
                }
            }
        });
        Self { views, looked: Instant::now(), task }
    }

    /// Takes a view of a benchmark that goes on.
    pub fn look(&mut self, view: &BenchmarkView) {
        if view.goes_on() && self.looked.elapsed() >= LOOK_EVERY {
            self.looked = Instant::now();
            self.views.send_replace((view.clone(), false));
        }
    }

    /// Tells how it ended, after what is being told.
    pub async fn finish(self, last: &BenchmarkView) {
        self.views.send_replace((last.clone(), true));
        drop(self.views);
        let _ = self.task.await;
    }
}

/// Sends a notice to whom the event concerns. Its time is bounded, whatever the receivers do.
async fn tell(on_end: Option<&str>, webhook: Option<&Webhook>, event: NoticeEvent, view: &BenchmarkView) {
    let blocked = view.blocked().into_iter().map(|(reason, models)| Blocked {
        reason,
        models: models.into_iter().map(domain::ModelLabel::as_str).collect(),
    });
    let notice = Notice {
        event,
        run: view.run.as_str(),
        name: &view.name,
        phase: view.phase,
        planned: view.planned,
        scored: view.scored,
        failed: view.failed,
        blocked: blocked.collect(),
    };
    if let Some(webhook) = webhook {
        webhook.send(event.as_str(), &notice).await;
    }
    if let (Some(command), NoticeEvent::Finished) = (on_end, event)
        && let Err(error) = call(command, &notice).await
    {
        say(&format!("{error:#}"));
    }
}

/// Sends notices to an address, whatever they are about.
pub struct Webhook {
    url: String,
    http: HttpClient,
}

impl Webhook {
    pub fn new(url: String) -> Self {
        let http =
            HttpClient::with(ClientOptions { request_max: Some(ATTEMPT_MAX), ..ClientOptions::default() });
        Self { url, http }
    }

    /// Sends a notice. Its time is bounded, whatever the receiver does.
    pub async fn send(&self, event: &str, notice: &impl Serialize) {
        let mut backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(5));
        for attempt in 1..=ATTEMPTS_MAX {
            let Err(error) = self.post(notice).await else { return };
            if attempt == ATTEMPTS_MAX {
                return say(&format!("cannot notify of `{event}`: {error:#}"));
            }
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }

    async fn post(&self, notice: &impl Serialize) -> anyhow::Result<()> {
        // The address may hold a secret, which errors of the client would show.
        let url = Url::parse(&self.url).context("the address of --webhook")?;
        let client = self.http.for_url(&url).map_err(|error| match error {
            SetupError::Endpoint { reason, .. } => {
                anyhow!("the address of --webhook cannot be used: {reason}")
            }
            other => other.into(),
        })?;
        let call =
            client.post(url).header(CONTENT_TYPE, "application/json").body(serde_json::to_vec(notice)?);
        let answer = call.send().await.map_err(reqwest::Error::without_url)?;
        let status = answer.status();
        if let Some(place) = redirect_place(&answer) {
            // The rest of where it leads may hold the same secret.
            let host = place.origin().ascii_serialization();
            bail!(
                "the address of --webhook answered {status}, a redirect to {host}, which is not followed: give the address there"
            );
        }
        if !status.is_success() {
            bail!("the address of --webhook answered {status}");
        }
        Ok(())
    }
}

/// Runs a command with a notice on its standard input. It may have done its work in part, so it is not repeated.
async fn call(command: &str, notice: &impl Serialize) -> anyhow::Result<()> {
    let json = serde_json::to_vec(notice)?;
    let mut child = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::piped())
        // Standard output is for this program's data.
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .context("cannot start the command of --on-end")?;
    let ended = async {
        if let Some(mut stdin) = child.stdin.take() {
            // A command need not read.
            let _ = stdin.write_all(&json).await;
        }
        child.wait().await
    };
    let status = tokio::time::timeout(ATTEMPT_MAX, ended)
        .await
        .with_context(|| format!("the command of --on-end took longer than {} s", ATTEMPT_MAX.as_secs()))??;
    if !status.success() {
        bail!("the command of --on-end ended with {status}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Thresholds =
        Thresholds { stalled: Duration::from_secs(15 * 60), blocked: Duration::from_secs(60) };

    fn view(phase: &str, scored: u64, blocked: Option<&str>) -> BenchmarkView {
        let model = serde_json::json!({
            "model": "m", "planned": 10, "scored": scored, "failed": 0, "units_pending": 1, "units_leased": 0,
            "units_dead": 0, "workers": 0, "parked": null, "blocked": blocked,
        });
        serde_json::from_value(serde_json::json!({
            "run": "r", "name": "n", "phase": phase, "created_at": "2025-01-01T00:00:00Z", "generation": 1,
            "planned": 10, "scored": scored, "failed": 0, "failures": [], "rate": 0.0, "eta_s": null,
            "trouble": null, "models": [model], "cells": [],
        }))
        .unwrap()
    }

    #[test]
    fn a_run_that_stands_still_is_told_once_until_it_moves() {
        let start = Instant::now();
        let mut watchman = Watchman::new(PATIENCE, start);
        let at = |minutes: u64| start + Duration::from_secs(60 * minutes);
        assert_eq!(watchman.look(&view("active", 3, None), false, at(1)), []);
        assert_eq!(watchman.look(&view("active", 3, None), false, at(15)), []);
        assert_eq!(watchman.look(&view("active", 3, None), false, at(16)), [NoticeEvent::Stalled]);
        assert_eq!(watchman.look(&view("active", 3, None), false, at(17)), []);
        assert_eq!(watchman.look(&view("active", 4, None), false, at(18)), []);
        assert_eq!(watchman.look(&view("active", 4, None), false, at(33)), [NoticeEvent::Stalled]);
        assert_eq!(watchman.look(&view("paused", 4, None), false, at(34)), [], "paused by hand");
        assert_eq!(watchman.look(&view("active", 4, None), false, at(40)), []);
        assert_eq!(watchman.look(&view("finished", 10, None), false, at(80)), [NoticeEvent::Finished]);
        assert_eq!(watchman.look(&view("finished", 10, None), true, at(80)), []);
    }

    #[test]
    fn a_model_whose_server_loads_is_not_told_until_it_is_blocked_otherwise() {
        let start = Instant::now();
        let mut watchman = Watchman::new(PATIENCE, start);
        let mut loading = view("active", 3, Some("a server of it is loading"));
        loading.models[0].loading = true;
        assert_eq!(watchman.look(&loading, false, start), []);
        assert_eq!(watchman.look(&loading, false, start + PATIENCE.blocked * 5), []);
        assert_eq!(watchman.look(&loading, true, start + PATIENCE.blocked * 5), []);
        let failed = view("active", 3, Some("its server does not answer"));
        assert_eq!(watchman.look(&failed, false, start + PATIENCE.blocked * 6), []);
        assert_eq!(watchman.look(&failed, false, start + PATIENCE.blocked * 7), [NoticeEvent::Blocked]);
    }

    #[test]
    fn a_model_that_is_blocked_for_a_moment_is_not_told() {
        let start = Instant::now();
        let mut watchman = Watchman::new(PATIENCE, start);
        let blocked = view("active", 3, Some("no worker serves it"));
        assert_eq!(watchman.look(&blocked, false, start), []);
        assert_eq!(watchman.look(&view("active", 3, None), false, start + PATIENCE.blocked), []);
        assert_eq!(watchman.look(&blocked, false, start + PATIENCE.blocked), []);
        assert_eq!(watchman.look(&blocked, false, start + PATIENCE.blocked * 2), [NoticeEvent::Blocked]);
        assert_eq!(watchman.look(&blocked, true, start + PATIENCE.blocked * 2), []);
        assert_eq!(
            Watchman::new(PATIENCE, start).look(&blocked, true, start),
            [NoticeEvent::Blocked],
            "it ends with that"
        );
    }

    #[tokio::test]
    async fn an_address_that_redirects_is_told_without_what_may_be_secret() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hunter2", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = [0; 4096];
            assert!(tokio::io::AsyncReadExt::read(&mut stream, &mut asked).await.unwrap() > 0);
            let answer = "HTTP/1.1 307 Elsewhere\r\nlocation: https://hook.invalid/hunter2\r\ncontent-length: 0\r\n\r\n";
            stream.write_all(answer.as_bytes()).await.unwrap();
            // Closing before all is read would break the connection.
            let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
        });
        let error = Webhook::new(url).post(&serde_json::json!({})).await.unwrap_err().to_string();
        assert!(error.contains("307") && error.contains("https://hook.invalid,"), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
        let nowhere = Webhook::new("http://169.254.169.254/hunter2".to_owned());
        let error = nowhere.post(&serde_json::json!({})).await.unwrap_err().to_string();
        assert!(error.contains("never contacted") && !error.contains("hunter2"), "{error}");
    }
}
