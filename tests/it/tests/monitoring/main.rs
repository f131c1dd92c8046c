//! The dashboards of `deploy/grafana`, made from what [`run`], [`fleet`] and [`reliability`] say, and the rules of
//! `deploy/prometheus`: whether they name metrics that exist, and whether every alert has its runbook and its test.
//!
//! `KGFLEET_BLESS=1 cargo test -p integration-tests --test monitoring` writes the dashboards anew. Whether their queries
//! return data is tested on a real cluster, in `cli/tests/it/cluster/seen`.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod catalogue;
mod dashboards;
mod fleet;
mod grafana;
mod panels;
mod reliability;
mod rules;
mod run;

use std::path::{Path, PathBuf};

/// The folder of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}
