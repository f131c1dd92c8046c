//! Judged benchmarks: graphs of ordinary runs.
//!
//! The sink stores the revisions of a benchmark's document, each written once, and its state. Everything else follows from
//! its runs, by the functions of [`stages`](::stages). So runs can be derived at any time, and after a crash between two
//! steps the next coordinator continues: it finds the same names, and the sink accepts a run name only once.
//!
//! `submit` proposes and begins runs and benchmarks, `documents` is what the
//! sink keeps, `summary` what came out as it is kept there, `stages` reads what the runs came to, `ask` looks after the runs of
//! the models under test, `derive` creates what is missing, `verbs` does what people ask for; `caps` knows what each may use, by
//! what `counting` finds; `reading` hands a benchmark to reports, `copy` to other machines.

pub(crate) mod ask;
pub(crate) mod attended;
pub(crate) mod caps;
pub(crate) mod copy;
mod counting;
pub(crate) mod derive;
pub(crate) mod documents;
pub(crate) mod history;
pub(crate) mod progress;
pub(crate) mod reading;
pub(crate) mod stages;
pub(crate) mod submit;
pub(crate) mod summary;
pub(crate) mod verbs;

use std::sync::Arc;

use crate::benchmarks::attended::Attended;
use crate::benchmarks::caps::Caps;
use crate::health::Health;
use crate::records::loaded::LoadedRuns;
use crate::records::named_models::NamedModels;
use crate::records::packs::Packs;
use crate::records::store::Store;
use crate::runs::Runs;

/// Benchmarks: whose turn it is, and what happens next.
pub(crate) struct Benchmarks {
    pub health: Arc<Health>,
    pub store: Arc<Store>,
    pub packs: Arc<Packs>,
    pub loaded: Arc<LoadedRuns>,
    pub runs: Arc<Runs>,
    pub attended: Attended,
    pub caps: Caps,
    pub named: Arc<NamedModels>,
    /// Held while runs are told of the phase of their benchmark.
    pub telling: tokio::sync::Mutex<()>,
    /// Held while a run is submitted.
    pub submitting: tokio::sync::Mutex<()>,
}
