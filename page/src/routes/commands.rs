//! The commands of operators: to runs and to workers.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::{Redirect, Response};
use domain::control::{BenchmarkCommand, Control};
use domain::{ErrorCode, FailureCause, RunId, ServiceError, WorkerId};

use super::{Fields, answer};
use crate::admission::{Audience, Visitor};
use crate::cache::Topic;
use crate::render::frame::path_of;
use crate::session::same;
use crate::site::Site;

/// The fields of a form, if its sender has the right and its token is valid.
fn meant(site: &Site, visitor: &Visitor, body: &str) -> Result<Fields, ServiceError> {
    let denied = |message: String| Err(ServiceError::new(ErrorCode::Denied, message));
    let fields = Fields::of(body);
    if !same(fields.get("form_token"), &visitor.form_token) {
        return denied("the form is not of this session: open the page again".to_owned());
    }
    if !visitor.steers() {
        site.access(visitor).was_refused("a command on the page");
        return denied(format!("`{}` may not do this: it needs the role operator", visitor.caller.name()));
    }
    Ok(fields)
}

/// `POST /runs/{run}/command`.
pub(super) async fn command(
    State(site): State<Arc<Site>>,
    Extension(visitor): Extension<Visitor>,
    Path(run): Path<String>,
    body: String,
) -> Response {
    let run = RunId::new(run);
    let done = carry_out(&site, &visitor, &run, &body).await.map(|done| {
        for audience in Audience::ALL {
            site.cache.forget(&Topic::Benchmark(run.clone(), audience));
            site.cache.forget(&Topic::Benchmarks(audience));
        }
        Redirect::to(&format!("{}?done={}", path_of(&run), site.leave_notice(done)))
    });
    answer(&visitor, done)
}

/// Carries out the command of a form; returns the message for the visitor.
async fn carry_out(site: &Site, visitor: &Visitor, run: &RunId, body: &str) -> Result<String, ServiceError> {
    let fields = meant(site, visitor, body)?;
    let access = site.access(visitor);
    let (command, words) = match fields.get("action") {
        "pause" => (BenchmarkCommand::Pause, "The run is paused: nothing more is handed out."),
        "resume" => (BenchmarkCommand::Resume, "The run goes on."),
        "cancel" => (BenchmarkCommand::Cancel, "The run is cancelled."),
        "retry" => {
            let causes = match fields.get("cause") {
                "" => Vec::new(),
                name => {
                    let cause = FailureCause::ALL.into_iter().find(|cause| cause.as_str() == name);
                    let unknown =
                        || ServiceError::new(ErrorCode::Invalid, "there is no such cause of failures");
                    vec![cause.ok_or_else(unknown)?]
                }
            };
            let asked = |dialogues| format!("{dialogues} failed dialogues are asked again.");
            return access.retry(run, &causes).await.map(asked);
        }
        _ => return Err(ServiceError::new(ErrorCode::Invalid, "there is no such command")),
    };
    access.command(run, command).await?;
    Ok(words.to_owned())
}

/// `POST /workers/drain`.
pub(super) async fn drain(
    State(site): State<Arc<Site>>,
    Extension(visitor): Extension<Visitor>,
    body: String,
) -> Response {
    let drained = match meant(&site, &visitor, &body) {
        Err(error) => Err(error),
        Ok(fields) => site.access(&visitor).drain_worker(&WorkerId::new(fields.get("worker"))).await,
    };
    let done = drained.map(|()| {
        Audience::ALL.into_iter().for_each(|audience| site.cache.forget(&Topic::Workers(audience)));
        let words = "The worker was asked to finish what it holds and end.";
        Redirect::to(&format!("/workers?done={}", site.leave_notice(words.to_owned())))
    });
    answer(&visitor, done)
}
