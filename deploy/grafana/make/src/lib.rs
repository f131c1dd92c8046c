//! The dashboards of `deploy/grafana`. [`run`], [`fleet`] and [`reliability`] list panels and queries; [`grafana`]
//! writes them as JSON. A panel is added to one of the lists.
//!
//! `cargo run -p dashboards` writes the files. A test compares the files with this source, and another one runs every
//! query against a real cluster.

pub mod fleet;
pub mod grafana;
pub mod panels;
pub mod reliability;
pub mod run;

use panels::Dashboard;

/// Every dashboard.
pub const ALL: [&Dashboard; 3] = [&run::DASHBOARD, &fleet::DASHBOARD, &reliability::DASHBOARD];

/// Every dashboard as a file: its name, and what is in it.
pub fn files() -> impl Iterator<Item = (String, String)> {
    ALL.into_iter().map(|dashboard| {
        let others: Vec<&Dashboard> = ALL.into_iter().filter(|other| other.uid != dashboard.uid).collect();
        (format!("{}.json", dashboard.uid), grafana::file(dashboard, &others))
    })
}
