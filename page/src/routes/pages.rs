//! The pages: benchmarks and workers with their live updates, dialogues and one of them.

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use domain::{DialogueKey, ErrorCode, RunId};
use serde::Deserialize;

use super::{Done, Visit, answer, internal, status};
use crate::cache::Topic;
use crate::render::{benchmark, dialogues, lists};
use crate::stream;

/// `GET /`.
pub(super) async fn list((State(site), Extension(visitor)): Visit) -> Response {
    let state = site.cache.latest(&Topic::Benchmarks(visitor.audience())).await;
    answer(&visitor, state.map(|state| lists::benchmarks(&visitor, &state)))
}

/// `GET /live`.
pub(super) async fn list_live((State(site), Extension(visitor)): Visit) -> Response {
    let topic = Topic::Benchmarks(visitor.audience());
    stream::of(site, visitor, topic)
}

/// `GET /runs/{run}`.
pub(super) async fn benchmark(
    (State(site), Extension(visitor)): Visit,
    Path(name): Path<String>,
    Query(done): Query<Done>,
) -> Response {
    let id = RunId::new(name);
    let topic = Topic::Benchmark(id.clone(), visitor.audience());
    let state = match site.access(&visitor).shows_to_caller(&id).await {
        Ok(()) => site.cache.latest(&topic).await,
        Err(error) => Err(error),
    };
    let page = state.map(|state| {
        let notice = site.take_notice(&done.done);
        benchmark::page(&visitor, &id, &state, &site.links, notice.as_deref())
    });
    answer(&visitor, page)
}

/// `GET /runs/{run}/live`.
pub(super) async fn benchmark_live(
    (State(site), Extension(visitor)): Visit,
    Path(name): Path<String>,
) -> Response {
    let id = RunId::new(name);
    if let Err(error) = site.access(&visitor).shows_to_caller(&id).await {
        return (status(error.code), format!("{error}\n")).into_response();
    }
    let topic = Topic::Benchmark(id, visitor.audience());
    // An unknown run is told at once: a browser does not ask again then.
    match site.cache.latest(&topic).await {
        Err(error) if error.code == ErrorCode::NotFound => {
            (status(error.code), "no such run\n").into_response()
        }
        _ => stream::of(site, visitor, topic),
    }
}

/// `GET /workers`.
pub(super) async fn workers((State(site), Extension(visitor)): Visit, Query(done): Query<Done>) -> Response {
    let state = site.cache.latest(&Topic::Workers(visitor.audience())).await;
    let page = state.map(|state| {
        let notice = site.take_notice(&done.done);
        lists::workers(&visitor, &state, notice.as_deref())
    });
    answer(&visitor, page)
}

/// `GET /workers/live`.
pub(super) async fn workers_live((State(site), Extension(visitor)): Visit) -> Response {
    let topic = Topic::Workers(visitor.audience());
    stream::of(site, visitor, topic)
}

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
pub(super) async fn dialogues(
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
