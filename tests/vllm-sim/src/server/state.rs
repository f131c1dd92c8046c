//! The state that all connections of a server share.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use hyper::Request;
use hyper::header::AUTHORIZATION;

use super::body::BrokenOff;
use super::model::SimModel;
use crate::faults::Faults;
use crate::metrics::unix_time;
use crate::wire::error::ApiError;

/// The shared state.
pub(super) struct Server {
    /// In the order of the configuration; the first serves requests that name none.
    pub(super) models: Vec<Arc<SimModel>>,
    by_name: HashMap<String, usize>,
    pub(super) faults: Faults,
    /// The whole expected header.
    authorization: Option<String>,
    pub(super) created: u64,
    /// Requests to models so far.
    pub(super) arrivals: AtomicU64,
    /// Requests that met a fault so far.
    pub(super) faults_met: AtomicU64,
}

/// Why a request gets no answer.
pub(super) enum SimRefusal {
    /// An error reply.
    Api(ApiError),
    /// Nothing at all.
    BrokenOff(BrokenOff),
}

impl From<ApiError> for SimRefusal {
    fn from(error: ApiError) -> Self {
        Self::Api(error)
    }
}

impl From<BrokenOff> for SimRefusal {
    fn from(broken: BrokenOff) -> Self {
        Self::BrokenOff(broken)
    }
}

impl Server {
    pub(super) fn new(models: Vec<Arc<SimModel>>, faults: Faults, api_key: Option<&str>) -> Self {
        let by_name = models.iter().enumerate().map(|(at, model)| (model.name().to_owned(), at)).collect();
        Self {
            models,
            by_name,
            faults,
            authorization: api_key.map(|key| format!("Bearer {key}")),
            created: unix_time(),
            arrivals: AtomicU64::new(0),
            faults_met: AtomicU64::new(0),
        }
    }

    /// Whether a request has the key, where one is needed.
    pub(super) fn authorized<B>(&self, request: &Request<B>) -> bool {
        let Some(expected) = &self.authorization else { return true };
        request.headers().get(AUTHORIZATION).is_some_and(|given| given.as_bytes() == expected.as_bytes())
    }

    /// The model of that name, or the first one.
    pub(super) fn model(&self, name: Option<&str>) -> Result<&Arc<SimModel>, ApiError> {
        let Some(name) = name else { return Ok(&self.models[0]) };
        self.by_name.get(name).map(|&at| &self.models[at]).ok_or_else(|| {
            let served: Vec<&str> = self.models.iter().map(|model| model.name()).collect();
            ApiError::unknown_model(name, &served)
        })
    }

    /// Numbers a request to a model, from 1.
    pub(super) fn arrived(&self) -> u64 {
        self.arrivals.fetch_add(1, Relaxed) + 1
    }
}
