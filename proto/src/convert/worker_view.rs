//! A worker as people see it.

use std::sync::Arc;

use domain::WorkerId;
use domain::control::WorkerView;

use super::{ConversionError, present, required};
use crate::wire;

impl From<WorkerView> for wire::WorkerView {
    fn from(view: WorkerView) -> Self {
        Self {
            worker: view.worker.to_string(),
            status: Some(Arc::unwrap_or_clone(view.status).into()),
            seen_ms_ago: view.seen_ms_ago,
            draining: view.draining,
        }
    }
}

impl TryFrom<wire::WorkerView> for WorkerView {
    type Error = ConversionError;

    fn try_from(view: wire::WorkerView) -> Result<Self, ConversionError> {
        Ok(Self {
            worker: WorkerId::new(required("WorkerView.worker", view.worker)?),
            status: Arc::new(present("WorkerView.status", view.status)?.try_into()?),
            seen_ms_ago: view.seen_ms_ago,
            draining: view.draining,
        })
    }
}
