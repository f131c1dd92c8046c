//! What people look at.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use domain::{DialogueKey, ErrorCode, RunId, ServiceError};
use report::details::DialogueDetail;
use serde::Deserialize;

use super::{Failed, status};
use crate::board::Topic;
use crate::door::Visitor;
use crate::render::{self, dialogues, run, runs, workers};
use crate::site::Site;
use crate::stream;

/// What was just done, as the redirect after a form says it.
#[derive(Deserialize)]
pub(super) struct Done {
    #[serde(default)]
    done: String,
}

type Look = (State<Arc<Site>>, Extension<Visitor>);

/// `GET /`.
pub(super) async fn runs((State(site), Extension(visitor)): Look) -> Response {
    match site.board.look(&Topic::Runs).await {
        Ok(snapshot) => runs::page(&visitor, &snapshot).into_response(),
        Err(error) => Failed(visitor, error).into_response(),
    }
}

/// `GET /live`.
pub(super) async fn runs_live((State(site), Extension(visitor)): Look) -> Response {
    stream::of(site, visitor, Topic::Runs)
}

/// `GET /runs/{run}`.
pub(super) async fn run(
    (State(site), Extension(visitor)): Look,
    Path(name): Path<String>,
    Query(done): Query<Done>,
) -> Response {
    let id = RunId::new(name);
    match site.board.look(&Topic::Run(id.clone())).await {
        Ok(snapshot) => run::page(&visitor, &id, &snapshot, &done.done).into_response(),
        Err(error) => Failed(visitor, error).into_response(),
    }
}

/// `GET /runs/{run}/live`.
pub(super) async fn run_live((State(site), Extension(visitor)): Look, Path(name): Path<String>) -> Response {
    let topic = Topic::Run(RunId::new(name));
    // An unknown run is told at once: a browser does not ask again then.
    match site.board.look(&topic).await {
        Err(error) if error.code == ErrorCode::NotFound => {
            (status(error.code), "no such run\n").into_response()
        }
        _ => stream::of(site, visitor, topic),
    }
}

/// `GET /workers`.
pub(super) async fn workers((State(site), Extension(visitor)): Look, Query(done): Query<Done>) -> Response {
    match site.board.look(&Topic::Workers { steers: visitor.steers() }).await {
        Ok(snapshot) => workers::page(&visitor, &snapshot, &done.done).into_response(),
        Err(error) => Failed(visitor, error).into_response(),
    }
}

/// `GET /workers/live`.
pub(super) async fn workers_live((State(site), Extension(visitor)): Look) -> Response {
    let steers = visitor.steers();
    stream::of(site, visitor, Topic::Workers { steers })
}

/// A model on a task.
#[derive(Deserialize)]
pub(super) struct CellQuery {
    model: String,
    task: String,
}

/// `GET /runs/{run}/dialogues`.
pub(super) async fn dialogues(
    (State(site), Extension(visitor)): Look,
    Path(name): Path<String>,
    Query(cell): Query<CellQuery>,
) -> Response {
    let run = RunId::new(name);
    let (model, task) = (cell.model.as_str().into(), cell.task.as_str().into());
    match site.coordinator.dialogues(&run, &model, &task).await {
        Ok(lines) => dialogues::list(&visitor, &run, &model, &task, &lines).into_response(),
        Err(error) => Failed(visitor, error).into_response(),
    }
}

#[derive(Deserialize)]
pub(super) struct DialogueQuery {
    model: String,
    task: String,
    iteration: u32,
}

/// `GET /runs/{run}/dialogue`.
pub(super) async fn dialogue(
    (State(site), Extension(visitor)): Look,
    Path(name): Path<String>,
    Query(asked): Query<DialogueQuery>,
) -> Response {
    let run = RunId::new(name);
    let key = DialogueKey {
        model: asked.model.as_str().into(),
        task: asked.task.as_str().into(),
        iteration: asked.iteration,
    };
    let looked = match site.behalf(&visitor).record(&run, &key).await {
        Ok(looked) => looked,
        Err(error) => return Failed(visitor, error).into_response(),
    };
    let count = site.coordinator.dialogues(&run, &key.model, &key.task).await.map_or(0, |lines| lines.len());
    let render = move || {
        let way = dialogues::trail(&run, Some((&key, count)));
        let Some(looked) = looked else { return dialogues::missing(&visitor, &key, &way) };
        let facts = dialogues::DialogueFacts::of(&looked);
        dialogues::page(&visitor, &key, &way, &facts, &DialogueDetail::of_record(looked.record))
    };
    match tokio::task::spawn_blocking(render).await {
        Ok(page) => page.into_response(),
        Err(error) => {
            let error = ServiceError::new(ErrorCode::Internal, error.to_string());
            (StatusCode::INTERNAL_SERVER_ERROR, render::plain(&error)).into_response()
        }
    }
}
