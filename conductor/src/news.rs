//! Decides what people are told of pools, as a plain state machine that sends nothing itself. What lasts is told once, and again
//! only after it was over. What was told is not stored, so a conductor that restarts tells again what still holds.

use std::collections::BTreeSet;

use domain::pools::WaitReason;
use serde::Serialize;

use crate::rounds::RoundOutcome;

domain::named! {
    /// What is told.
    pub enum PoolEvent {
        /// No server of a pool is started any more before somebody mends it.
        Failed = "pool-failed",
        /// A pool with work waits because the GPU-hours are used up.
        BudgetSpent = "budget-spent",
    }
}

/// What is told of a pool, or of all of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PoolNotice {
    pub event: PoolEvent,
    /// The release whose pools these are.
    pub release: String,
    /// The pools, with why their last server failed, if one did.
    pub pools: Vec<NoticedPool>,
    /// GPU-hours of all servers so far.
    pub gpu_hours: f64,
    pub gpu_hours_budget: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NoticedPool {
    pub pool: String,
    pub model: String,
    pub last_failure: Option<String>,
}

/// What was told already.
#[derive(Debug)]
pub struct PoolNews {
    release: String,
    budget: Option<f64>,
    told: BTreeSet<(PoolEvent, String)>,
}

impl PoolNews {
    pub fn new(release: impl Into<String>, budget: Option<f64>) -> Self {
        Self { release: release.into(), budget, told: BTreeSet::new() }
    }

    pub fn release(&self) -> &str {
        &self.release
    }

    /// Takes what a round came to; what to tell now.
    pub fn look(&mut self, outcome: &RoundOutcome) -> Vec<PoolNotice> {
        let mut notices = Vec::new();
        for event in PoolEvent::ALL {
            let holds = outcome.rows.iter().filter(|row| match event {
                PoolEvent::Failed => row.is_given_up,
                PoolEvent::BudgetSpent => {
                    row.wait.as_ref().is_some_and(|wait| wait.why == WaitReason::Budget)
                }
            });
            let pools: Vec<NoticedPool> = holds
                .map(|row| NoticedPool {
                    pool: row.pool.clone(),
                    model: row.model.clone(),
                    last_failure: row.last_failure.clone(),
                })
                .collect();
            self.told.retain(|(of, pool)| *of != event || pools.iter().any(|holding| holding.pool == *pool));
            let is_new = |pool: &NoticedPool| !self.told.contains(&(event, pool.pool.clone()));
            let pools: Vec<NoticedPool> = pools.into_iter().filter(is_new).collect();
            // A budget is spent once, whichever pools come to wait for it.
            let is_known = event == PoolEvent::BudgetSpent && self.told.iter().any(|(of, _)| *of == event);
            self.told.extend(pools.iter().map(|pool| (event, pool.pool.clone())));
            if !pools.is_empty() && !is_known {
                notices.push(PoolNotice {
                    event,
                    release: self.release.clone(),
                    pools,
                    gpu_hours: outcome.gpu_hours,
                    gpu_hours_budget: self.budget,
                });
            }
        }
        notices
    }
}

#[cfg(test)]
mod tests {
    use domain::pools::{PoolState, PoolWait, UsageHours};
    use jiff::Timestamp;

    use super::*;

    fn row(pool: &str, is_given_up: bool, why: Option<WaitReason>) -> PoolState {
        let wait = why.map(|why| PoolWait { why, since: Timestamp::UNIX_EPOCH, until: None });
        PoolState {
            pool: pool.to_owned(),
            model: format!("org/{pool}"),
            gpus: 1,
            servers: Vec::new(),
            wait,
            is_given_up,
            failures: 1,
            last_failure: Some("no such model".to_owned()),
            left: Some(1),
            gpu_hours: UsageHours::default(),
            load_s: 60,
            loading_s: None,
            not_starting: None,
        }
    }

    #[test]
    fn each_thing_is_told_once_and_again_after_it_was_over() {
        let mut news = PoolNews::new("bench", Some(4.0));
        let mut told = |rows: Vec<PoolState>| -> Vec<String> {
            let outcome = RoundOutcome { rows, ..RoundOutcome::default() };
            let words = |notice: PoolNotice| {
                let pools: Vec<String> = notice.pools.into_iter().map(|pool| pool.pool).collect();
                format!("{} {}", notice.event.as_str(), pools.join(","))
            };
            news.look(&outcome).into_iter().map(words).collect()
        };
        let well = || row("a", false, Some(WaitReason::Gpus));
        assert_eq!(told(vec![well(), row("b", false, Some(WaitReason::Retry))]), [""; 0]);
        assert_eq!(told(vec![well(), row("b", true, Some(WaitReason::GivenUp))]), ["pool-failed b"]);
        assert_eq!(told(vec![row("a", true, None), row("b", true, None)]), ["pool-failed a"]);
        assert_eq!(told(vec![well(), row("b", false, Some(WaitReason::Budget))]), ["budget-spent b"]);
        assert_eq!(
            told(vec![row("a", false, Some(WaitReason::Budget)), row("b", false, Some(WaitReason::Budget))]),
            [""; 0]
        );
        assert_eq!(
            told(vec![row("a", true, None), row("b", false, Some(WaitReason::Budget))]),
            ["pool-failed a"]
        );
    }
}
