//! Every metric of the conductor, stated anew after each round. Labels name pools, of which a chart has few, so the number of
//! series is bounded, and the series of a pool that is gone end with it.

use domain::pools::{ServerFault, ServerStage, UsageHours};
use jiff::Timestamp;
use service_kit::metric_table;
use service_kit::metrics::frame::{self, Frame};

use crate::rounds::{ConductorSettings, RoundOutcome};
use crate::start::StartFault;

metric_table! {
    /// All of them.
    pub const DEFINITIONS;

    POOL_SERVERS = gauge "kgfleet_pool_servers" Count ["pool", "serves", "state"] "Servers of a pool, by what they are doing.";
    POOL_WAITING_SECONDS = gauge "kgfleet_pool_waiting_seconds" Seconds ["pool", "serves", "why"] "How long a pool with work has waited for its first server; absent if it does not wait.";
    POOL_LOAD_SECONDS = gauge "kgfleet_pool_load_seconds" Seconds ["pool", "serves"] "How long a server of a pool is expected to load: as its last one did, else as the table says.";
    POOL_LOADING_SECONDS = gauge "kgfleet_pool_loading_seconds" Seconds ["pool", "serves"] "For how long the server of a pool has been loading that began first; absent if none is.";
    POOL_FAILURES = gauge "kgfleet_pool_failures" Count ["pool", "serves", "why"] "Servers of a pool that ended although their work was not done, by the reason, since its template was changed or somebody retried it.";
    POOL_NOT_STARTING = gauge "kgfleet_pool_not_starting" Count ["pool", "serves", "why"] "1 for a pool of which a server does not start, by the reason that Kubernetes gives, else 0.";
    POOL_GIVEN_UP = gauge "kgfleet_pool_given_up" Count ["pool", "serves"] "1 for a pool that gets no server any more before somebody changes its template or retries it, else 0.";
    POOL_GPU_HOURS = gauge "kgfleet_pool_gpu_hours" Count ["pool", "serves", "kind"] "GPU-hours of a pool's servers by what they were for: load, work, idle, and lost, of servers that never served.";
    GPU_HOURS = gauge "kgfleet_gpu_hours" Count [] "GPU-hours of all servers so far.";
    GPU_HOURS_PLANNED = gauge "kgfleet_gpu_hours_planned" Count [] "GPU-hours of all servers at the end, as far as that can be foreseen.";
    PLAN_END = gauge "kgfleet_plan_end_timestamp_seconds" Seconds [] "When the last server will end, as far as that can be foreseen, in seconds since 1970.";
    GPU_HOURS_BUDGET = gauge "kgfleet_gpu_hours_budget" Count [] "GPU-hours that may be used; absent without a budget.";
    CONDUCTOR_READY = gauge "kgfleet_conductor_ready" Count [] "1 while the conductor does its rounds completely, else 0.";
    POOL_GPUS = gauge "kgfleet_pool_gpus" Count ["state"] "GPUs that may be used at once, those of servers that have not ended, and those of lost nodes and left-over pods.";
}

/// States whether the last round was done completely.
pub(crate) fn ready(is_ready: bool) {
    let mut frame = Frame::default();
    frame.set(CONDUCTOR_READY, &[], f64::from(u8::from(is_ready)));
    frame::state("conductor", frame);
}

/// States what a round came to.
pub(crate) fn state(outcome: &RoundOutcome, settings: &ConductorSettings) {
    let now = Timestamp::now();
    let mut frame = Frame::default();
    let mut in_use = 0;
    for row in &outcome.rows {
        let pool = [("pool", row.pool.as_str()), ("serves", row.model.as_str())];
        for stage in ServerStage::ALL {
            let servers = f64::from(row.servers_at(stage));
            frame.set(POOL_SERVERS, &[pool[0], pool[1], ("state", stage.as_str())], servers);
        }
        in_use += row.servers_there() * row.gpus;
        if let Some(wait) = &row.wait {
            let seconds = now.duration_since(wait.since).as_secs_f64();
            frame.set(
                POOL_WAITING_SECONDS,
                &[pool[0], pool[1], ("why", wait.why.as_str())],
                seconds.max(0.0),
            );
        }
        frame.set(POOL_LOAD_SECONDS, &pool, row.load_s as f64);
        if let Some(seconds) = row.loading_s {
            frame.set(POOL_LOADING_SECONDS, &pool, seconds as f64);
        }
        for fault in ServerFault::ALL {
            let servers = outcome.faults.get(&(row.pool.clone(), fault)).copied().unwrap_or_default();
            frame.set(POOL_FAILURES, &[pool[0], pool[1], ("why", fault.as_str())], f64::from(servers));
        }
        for fault in StartFault::ALL {
            let is_it = outcome.not_starting.get(&row.pool) == Some(&fault);
            let labels = [pool[0], pool[1], ("why", fault.as_str())];
            frame.set(POOL_NOT_STARTING, &labels, f64::from(u8::from(is_it)));
        }
        frame.set(POOL_GIVEN_UP, &pool, f64::from(u8::from(row.is_given_up)));
        let UsageHours { load, work, idle, lost } = row.gpu_hours;
        for (kind, hours) in [("load", load), ("work", work), ("idle", idle), ("lost", lost)] {
            frame.set(POOL_GPU_HOURS, &[pool[0], pool[1], ("kind", kind)], hours);
        }
    }
    frame.set(GPU_HOURS, &[], outcome.gpu_hours);
    if let Some(forecast) = outcome.forecast {
        frame.set(GPU_HOURS_PLANNED, &[], forecast.gpu_hours);
        frame.set(PLAN_END, &[], forecast.ends_at.as_millisecond() as f64 / 1000.0);
    }
    if let Some(budget) = settings.limits.gpu_hours {
        frame.set(GPU_HOURS_BUDGET, &[], budget);
    }
    for (state, gpus) in [("limit", settings.limits.gpus), ("servers", in_use), ("out", outcome.gpus_out)] {
        frame.set(POOL_GPUS, &[("state", state)], f64::from(gpus));
    }
    frame::state("pools", frame);
}
