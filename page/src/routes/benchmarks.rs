//! The list of benchmarks, and each of them.

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use domain::{ErrorCode, RunId};

use super::{Done, Visit, answer, status};
use crate::cache::Topic;
use crate::render::{benchmark, benchmarks};
use crate::stream;

/// `GET /`.
pub(super) async fn list((State(site), Extension(visitor)): Visit) -> Response {
    let state = site.cache.latest(&Topic::Benchmarks(visitor.audience())).await;
    answer(&visitor, state.map(|state| benchmarks::page(&visitor, &state)))
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
