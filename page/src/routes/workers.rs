//! The workers.

use axum::Extension;
use axum::extract::{Query, State};
use axum::response::Response;

use super::{Done, Visit, answer};
use crate::cache::Topic;
use crate::render::workers;
use crate::stream;

/// `GET /workers`.
pub(super) async fn list((State(site), Extension(visitor)): Visit, Query(done): Query<Done>) -> Response {
    let state = site.cache.latest(&Topic::Workers(visitor.audience())).await;
    let page = state.map(|state| {
        let notice = site.take_notice(&done.done);
        workers::page(&visitor, &state, notice.as_deref())
    });
    answer(&visitor, page)
}

/// `GET /workers/live`.
pub(super) async fn list_live((State(site), Extension(visitor)): Visit) -> Response {
    let topic = Topic::Workers(visitor.audience());
    stream::of(site, visitor, topic)
}
