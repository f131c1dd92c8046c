//! The dialogues of a model on a task, and one of them.

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use domain::{DialogueKey, RunId};
use serde::Deserialize;

use super::{Visit, answer, internal};
use crate::render::dialogues;

/// A model on a task, and one of its dialogues.
#[derive(Deserialize)]
pub(super) struct DialogueQuery {
    model: String,
    task: String,
    #[serde(default)]
    iteration: u32,
}

impl DialogueQuery {
    fn key(&self) -> DialogueKey {
        let Self { model, task, iteration } = self;
        DialogueKey { model: model.as_str().into(), task: task.as_str().into(), iteration: *iteration }
    }
}

/// `GET /runs/{run}/dialogues`.
pub(super) async fn list(
    (State(site), Extension(visitor)): Visit,
    Path(name): Path<String>,
    Query(query): Query<DialogueQuery>,
) -> Response {
    let (run, key) = (RunId::new(name), query.key());
    let lines = site.access(&visitor).dialogues(&run, &key.model, &key.task).await;
    answer(&visitor, lines.map(|lines| dialogues::list(&visitor, &run, &key, &lines)))
}

/// `GET /runs/{run}/dialogue`.
pub(super) async fn dialogue(
    (State(site), Extension(visitor)): Visit,
    Path(name): Path<String>,
    Query(query): Query<DialogueQuery>,
) -> Response {
    let (run, key, access) = (RunId::new(name), query.key(), site.access(&visitor));
    let record = match access.record(&run, &key).await {
        Ok(record) => record,
        Err(error) => return answer(&visitor, Err::<(), _>(error)),
    };
    let lines = access.dialogues(&run, &key.model, &key.task).await;
    let count = lines.map_or(0, |lines| lines.len());
    let reader = visitor.clone();
    let page = tokio::task::spawn_blocking(move || dialogues::page(&reader, &run, &key, count, record)).await;
    answer(&visitor, page.map_err(internal))
}
