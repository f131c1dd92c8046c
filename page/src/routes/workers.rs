//! The workers.

use axum::Extension;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};

use super::{Done, Failed, Visit};
use crate::cache::Topic;
use crate::render::workers;
use crate::stream;

/// `GET /workers`.
pub(super) async fn list((State(site), Extension(visitor)): Visit, Query(done): Query<Done>) -> Response {
    match site.cache.latest(&Topic::Workers(visitor.audience())).await {
        Ok(state) => {
            let notice = site.take_notice(&done.done);
            workers::page(&visitor, &state, notice.as_deref()).into_response()
        }
        Err(error) => Failed(visitor, error).into_response(),
    }
}

/// `GET /workers/live`.
pub(super) async fn list_live((State(site), Extension(visitor)): Visit) -> Response {
    let topic = Topic::Workers(visitor.audience());
    stream::of(site, visitor, topic)
}
