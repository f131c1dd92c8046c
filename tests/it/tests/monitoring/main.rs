//! The dashboards of `deploy/grafana` and the rules of `deploy/prometheus`: whether they name metrics that exist, and whether
//! every alert has its section and its test. Whether their queries return data is tested on a real cluster, in
//! `cli/tests/it/cluster/seen`.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod catalogue;
mod dashboards;
mod rules;

use std::path::{Path, PathBuf};

/// The folder of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}
