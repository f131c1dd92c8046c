//! Foretells when the servers of a plan start and end, for people who decide how many GPUs to take. It runs the plan through
//! [`World`], which asks the function that a conductor asks ([`conductor::pool::decide()`]) in virtual time, so it starts nothing. The
//! forecast assumes that every server loads and works as the plan says, and that none fails.

use std::time::Duration;

use conductor::pool::bound::{PoolWork, bound};
use conductor::pool::world::GpuHours;
use conductor::pool::{Limits, World, WorldPool};

use super::plan::LaunchPlan;

/// What a launch may use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaunchLimits {
    pub gpus: u32,
    pub gpus_per_node: u32,
    /// GPU-hours; `None`: no budget.
    pub gpu_hours: Option<f64>,
}

/// When the servers of a model are there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScheduleRow {
    /// Which of [`LaunchPlan::served`] it is.
    pub model: usize,
    /// Servers in all.
    pub servers: u32,
    pub starts: Duration,
    pub ends: Duration,
}

/// The schedule of what is known beforehand. It has no models without dialogues in the plan, such as judges: how often those are
/// asked depends on the answers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schedule {
    /// By start.
    pub rows: Vec<ScheduleRow>,
    /// When the last one ends.
    pub over_at: Duration,
    /// No order of the same servers is over sooner.
    pub bound: Duration,
    pub gpu_hours: GpuHours,
    /// GPUs in use at once, at most.
    pub gpus_max: u32,
    /// Which of [`LaunchPlan::served`] the budget leaves out.
    pub over_budget: Vec<usize>,
}

impl Schedule {
    /// Schedules a plan.
    pub fn of(plan: &LaunchPlan, limits: LaunchLimits) -> Self {
        let per_node = limits.gpus_per_node.min(limits.gpus).max(1);
        let nodes = limits.gpus / per_node;
        let known: Vec<usize> =
            (0..plan.served.len()).filter(|model| plan.served[*model].dialogues > 0).collect();
        let exact = |model: &usize| {
            let served = &plan.served[*model];
            WorldPool::exact(served.pool.clone(), served.dialogues as f64)
        };
        let pools: Vec<WorldPool> = known.iter().map(exact).collect();
        let work: Vec<PoolWork<'_>> =
            pools.iter().map(|pool| PoolWork { pool: &pool.believed, dialogues: pool.dialogues }).collect();
        let bound = bound(&work, nodes, per_node);
        let world = World {
            nodes: vec![per_node; nodes as usize],
            pools,
            limits: Limits { gpu_hours: limits.gpu_hours, ..Limits::of_gpus(nodes * per_node) },
        };
        let outcome = world.run();
        let mut rows: Vec<ScheduleRow> = Vec::new();
        for server in &outcome.servers {
            let model = known[server.pool];
            match rows.iter_mut().find(|row| row.model == model) {
                Some(row) => {
                    row.servers += 1;
                    row.ends = row.ends.max(server.ended_at);
                }
                None => rows.push(ScheduleRow {
                    model,
                    servers: 1,
                    starts: server.created_at,
                    ends: server.ended_at,
                }),
            }
        }
        let over_at = rows.iter().map(|row| row.ends).max().unwrap_or_default();
        Self {
            rows,
            over_at,
            bound,
            gpu_hours: outcome.gpu_hours,
            gpus_max: outcome.gpus_max,
            over_budget: outcome.over_budget.iter().map(|pool| known[*pool]).collect(),
        }
    }
}

/// Hours and minutes, as in `2:05`.
pub fn clock(time: Duration) -> String {
    let minutes = (time.as_secs() + 30) / 60;
    format!("{}:{:02}", minutes / 60, minutes % 60)
}

/// The same in hours.
pub fn hours(time: Duration) -> f64 {
    time.as_secs_f64() / 3600.0
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::paper;
    use super::super::table::{Sizes, WeightsPlace};
    use super::*;

    fn schedule(gpus: u32, gpu_hours: Option<f64>) -> Schedule {
        Schedule::of(&paper(gpus), LaunchLimits { gpus, gpus_per_node: 8, gpu_hours })
    }

    #[test]
    fn the_matrix_is_over_soon_after_no_order_could_be_sooner() {
        let told = |gpus: u32| {
            let Schedule { over_at, bound, rows, gpus_max, .. } = schedule(gpus, None);
            assert!(over_at >= bound && over_at < bound.mul_f64(1.15), "{gpus} GPUs: {over_at:?}, {bound:?}");
            assert!(rows.len() == 31 && gpus_max <= gpus);
            format!("{:.2}", hours(bound))
        };
        // By hand: the three on two nodes one after the other, and the others beside them or after.
        assert_eq!([16, 24, 32, 64].map(told), ["6.61", "5.19", "3.30", "2.08"]);
        let nothing =
            Schedule::of(&LaunchPlan::default(), LaunchLimits { gpus: 8, gpus_per_node: 8, gpu_hours: None });
        assert_eq!(nothing, Schedule::default());
    }

    #[test]
    fn with_shared_weights_the_matrix_is_over_within_the_hour_and_takes_a_third_of_the_gpu_hours() {
        let (plan, sizes) = (paper(64), Sizes::read(None).unwrap());
        let limits = LaunchLimits { gpus: 64, gpus_per_node: 8, gpu_hours: None };
        let shared = plan.with_weights(WeightsPlace::SharedVolume, &sizes);
        let (afar, here) = (Schedule::of(&plan, limits), Schedule::of(&shared, limits));
        assert!(hours(here.over_at) < 1.0 && hours(afar.over_at) > 2.0, "{:?}", here.over_at);
        assert!(here.gpu_hours.total() < 0.4 * afar.gpu_hours.total(), "{:?}", here.gpu_hours);
        assert_eq!(shared.with_weights(WeightsPlace::Afar, &sizes), plan);
    }

    #[test]
    fn a_budget_leaves_out_what_it_has_no_hours_for() {
        let plan = paper(64);
        let some = schedule(64, Some(60.0));
        // Beside these, each server is there for ten seconds until it has ended.
        let foreseen = some.gpu_hours.load + some.gpu_hours.work;
        assert!(!some.over_budget.is_empty() && foreseen <= 60.0, "{:?}", some.gpu_hours);
        assert_eq!(some.rows.len() + some.over_budget.len(), plan.served.len());
    }

    #[test]
    fn times_are_told_to_the_minute() {
        assert_eq!(clock(Duration::from_secs(7_529)), "2:05");
        assert_eq!(clock(Duration::from_secs(29)), "0:00");
    }
}
