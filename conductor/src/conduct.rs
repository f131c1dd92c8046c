//! The loop of a conductor. Each round reads what coordinators need and what the cluster has, lets [`Rounds`] decide, and
//! carries out its orders.
//!
//! No failure ends the loop: what cannot be done is told, and the next round decides anew by what there is then. Without a word
//! from coordinators no server is started; without the cluster nothing happens at all. When the process is to stop, the loop
//! ends between two rounds and leaves the servers alone, so that the next conductor finds them.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::control::{Control, WorkerView};
use domain::exchange::Reply;
use domain::pools::{PoolStates, ServerUsage};
use jiff::Timestamp;
use service_kit::Readiness;
use service_kit::shutdown::{Stop, StopReceiver, reached};
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use crate::cluster::{ClusterError, PoolCluster};
use crate::metrics;
use crate::news::{PoolNews, PoolNotice};
use crate::rounds::{ConductorSettings, RoundOutcome, Rounds, ServerOrder};

/// Time between the creation of two Jobs if something else, such as Kueue, admits them in the order of their creation: Kubernetes
/// states that time in whole seconds only.
const APART: Duration = Duration::from_millis(1_100);

/// Notices that wait to be told, at most; further ones are only logged.
pub const NOTICES_MAX: usize = 16;

/// Decides what people are told, and hands it to the task that tells them. Telling may take long, so rounds do not wait for it.
#[derive(Debug)]
pub struct NewsDesk {
    pub news: PoolNews,
    pub notices: mpsc::Sender<PoolNotice>,
}

impl NewsDesk {
    fn look(&mut self, outcome: &RoundOutcome) {
        for notice in self.news.look(outcome) {
            tracing::error!(event = notice.event.as_str(), pools = ?notice.pools, "pools need somebody");
            if self.notices.try_send(notice).is_err() {
                tracing::warn!("nobody is told: the notices of before are still being told");
            }
        }
    }
}

/// Goes round, every so often, until the process stops.
pub async fn conduct(
    cluster: &dyn PoolCluster,
    control: &dyn Control,
    mut rounds: Rounds,
    every: Duration,
    readiness: Readiness,
    mut desk: NewsDesk,
    stop: StopReceiver,
) {
    let mut looks = tokio::time::interval(every);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut memory = LoopMemory::default();
    loop {
        tokio::select! {
            _ = looks.tick() => {}
            () = reached(stop.clone(), Stop::Drain) => return,
        }
        let done = round(cluster, control, &mut rounds, &mut desk, &mut memory).await;
        metrics::ready(done.is_ok());
        // Said once, not every round.
        if readiness.set(done.clone())
            && let Err(problem) = done
        {
            tracing::warn!(problem, "this round does less than it should");
        }
    }
}

/// What the loop remembers beside what [`Rounds`] does.
#[derive(Default)]
struct LoopMemory {
    /// Problems of the last round.
    said: Vec<String>,
    /// Whether coordinators have told what servers of the release left before.
    is_restored: bool,
}

/// One round. What went wrong is returned; what could be done was done.
async fn round(
    cluster: &dyn PoolCluster,
    control: &dyn Control,
    rounds: &mut Rounds,
    desk: &mut NewsDesk,
    memory: &mut LoopMemory,
) -> Result<(), String> {
    let mut problem = None;
    // Without a word of coordinators nothing is started; servers that will never come are deleted all the same.
    let heard = hear(control, rounds, desk.news.release(), memory).await;
    let has_heard = heard.is_ok();
    let workers = heard.unwrap_or_else(|error| {
        problem = Some(error.message);
        Vec::new()
    });
    let mut state = cluster.state().await.map_err(|error| error.to_string())?;
    // They only explain what keeps servers from starting.
    match cluster.warnings().await {
        Ok(events) => state.events = events,
        Err(error) => problem = problem.or(Some(error.to_string())),
    }
    let outcome = rounds.round(&state, &workers, Timestamp::now());
    if outcome.problems != memory.said {
        outcome.problems.iter().for_each(|problem| tracing::error!(problem, "a CronJob is no pool"));
        memory.said.clone_from(&outcome.problems);
    }
    metrics::state(&outcome, rounds.settings());
    desk.look(&outcome);
    // Coordinators show it to people. Where they are away, servers go on all the same.
    if has_heard && let Err(error) = tell(control, rounds, &outcome, desk.news.release()).await {
        problem = Some(format!("coordinators do not take what pools do: {}", error.message));
    }
    let wants_order = rounds.settings().limits.admits_whole;
    let mut refused = BTreeMap::new();
    if let Err(error) = carry_out(cluster, &outcome, wants_order, &mut refused).await {
        problem = Some(error.to_string());
    }
    rounds.note_refused(refused);
    problem.map_or(Ok(()), Err)
}

/// Hears from coordinators what there is to do and who works, first of all what servers of this release have left.
async fn hear(
    control: &dyn Control,
    rounds: &mut Rounds,
    release: &str,
    memory: &mut LoopMemory,
) -> Reply<Vec<WorkerView>> {
    if !memory.is_restored {
        let mut ended = control.server_usage().await?;
        ended.retain(|usage| usage.release == release);
        rounds.restore(ended);
        memory.is_restored = true;
    }
    let (needs, workers) = (control.needs(&[]).await?, control.workers().await?);
    rounds.note_needs(needs, Timestamp::now());
    Ok(workers)
}

/// Tells coordinators what pools do, and gives them what ended servers left.
async fn tell(
    control: &dyn Control,
    rounds: &mut Rounds,
    outcome: &RoundOutcome,
    release: &str,
) -> Reply<()> {
    control.note_pools(states(outcome, rounds.settings(), release)).await?;
    if !outcome.ended.is_empty() {
        let of_release = |usage: &ServerUsage| ServerUsage { release: release.to_owned(), ..usage.clone() };
        control.note_server_usage(outcome.ended.iter().map(of_release).collect()).await?;
        rounds.note_stored(&outcome.ended);
    }
    Ok(())
}

/// What a round came to, as coordinators are told.
fn states(outcome: &RoundOutcome, settings: &ConductorSettings, release: &str) -> PoolStates {
    PoolStates {
        release: release.to_owned(),
        pools: outcome.rows.clone(),
        gpu_hours: outcome.gpu_hours,
        gpu_hours_planned: outcome.forecast.map(|forecast| forecast.gpu_hours),
        gpu_hours_budget: settings.limits.gpu_hours,
        plan_ends_at: outcome.forecast.map(|forecast| forecast.ends_at),
    }
}

/// Does what was decided. The first failure is returned after the rest was tried; `refused` gets the Jobs that Kubernetes does not
/// take, with the reason.
async fn carry_out(
    cluster: &dyn PoolCluster,
    outcome: &RoundOutcome,
    wants_order: bool,
    refused: &mut BTreeMap<String, String>,
) -> Result<(), ClusterError> {
    let mut first = Ok(());
    let mut is_later = false;
    for order in &outcome.orders {
        let done = match order {
            ServerOrder::Delete { job, uid, why } => {
                tracing::warn!(job, why, "deleting a server");
                cluster.delete(job, uid).await
            }
            ServerOrder::Create { job, manifest } => {
                if wants_order && std::mem::replace(&mut is_later, true) {
                    tokio::time::sleep(APART).await;
                }
                tracing::info!(job, "starting a server");
                cluster.create(manifest).await
            }
        };
        match done {
            // Another conductor was first, or it is gone already: the next round sees what there is.
            Err(ClusterError::Conflict(reason)) => tracing::info!(reason, "it is so already"),
            Err(error) => {
                tracing::error!(%error, "an order was not carried out");
                if let (ServerOrder::Create { job, .. }, ClusterError::Refused(reason)) = (order, &error) {
                    refused.insert(job.clone(), reason.clone());
                }
                first = first.and(Err(error));
            }
            Ok(()) => {}
        }
    }
    first
}

#[cfg(test)]
mod tests;
