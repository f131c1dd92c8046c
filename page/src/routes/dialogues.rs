//! The dialogues of a model on a task, and one of them.

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use domain::{DialogueKey, ErrorCode, RunId, ServiceError};
use report::details::DialogueDetail;
use serde::Deserialize;

use super::{Failed, Visit};
use crate::render::{dialogues, frame};

/// A model on a task.
#[derive(Deserialize)]
pub(super) struct CellQuery {
    model: String,
    task: String,
}

/// `GET /runs/{run}/dialogues`.
pub(super) async fn list(
    (State(site), Extension(visitor)): Visit,
    Path(name): Path<String>,
    Query(cell): Query<CellQuery>,
) -> Response {
    let run = RunId::new(name);
    let (model, task) = (cell.model.as_str().into(), cell.task.as_str().into());
    match site.access(&visitor).dialogues(&run, &model, &task).await {
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
    (State(site), Extension(visitor)): Visit,
    Path(name): Path<String>,
    Query(query): Query<DialogueQuery>,
) -> Response {
    let run = RunId::new(name);
    let key = DialogueKey {
        model: query.model.as_str().into(),
        task: query.task.as_str().into(),
        iteration: query.iteration,
    };
    let record = match site.access(&visitor).record(&run, &key).await {
        Ok(record) => record,
        Err(error) => return Failed(visitor, error).into_response(),
    };
    let count =
        site.access(&visitor).dialogues(&run, &key.model, &key.task).await.map_or(0, |lines| lines.len());
    let render = move || {
        let way = dialogues::trail(&run, Some((&key, count)));
        let Some(record) = record else { return dialogues::missing(&visitor, &key, &way) };
        let facts = dialogues::DialogueFacts::of(&record);
        dialogues::page(&visitor, &key, &way, &facts, &DialogueDetail::of_record(record.record))
    };
    match tokio::task::spawn_blocking(render).await {
        Ok(page) => page.into_response(),
        Err(error) => {
            let error = ServiceError::new(ErrorCode::Internal, error.to_string());
            (StatusCode::INTERNAL_SERVER_ERROR, frame::plain(&error)).into_response()
        }
    }
}
