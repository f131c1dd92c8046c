//! Gauges: the present state, written as a whole once a round.

use std::collections::BTreeMap;

use domain::control::{CellView, Pace, RunPhase};
use metrics::gauge;
use queue::ModelCounts;
use service_kit::metrics::frame::{self, Frame};

use crate::benchmarks::reading::stage_of;
use crate::fleet::workers::RegisteredWorkers;
use crate::health::Health;
use crate::metrics::*;
use crate::plan::configuration::cap::CapReached;
use crate::records::run::Run;
use crate::runs::commit::RecordLogs;
use crate::views::{Views, progress};

/// The phases of runs that are not over.
const PHASES: [RunPhase; 3] = [RunPhase::Preparing, RunPhase::Active, RunPhase::Paused];

/// The health of the coordinator itself. Also written while the queue cannot be reached.
pub(crate) fn health(health: &Health, logs: &RecordLogs, is_ready: bool) {
    gauge!(BYTES_IN_FLIGHT).set(logs.bytes_in_flight() as f64);
    gauge!(COMMIT_LAG_SECONDS).set(logs.lag().as_secs_f64());
    gauge!(READY).set(f64::from(u8::from(is_ready)));
    for (part, is_in_trouble) in health.troubled_parts() {
        gauge!(TROUBLE, "part" => part).set(f64::from(u8::from(is_in_trouble)));
    }
}

impl Views {
    /// All other gauges.
    pub(crate) async fn state_gauges(&self) {
        if !service_kit::metrics::is_collecting() {
            return;
        }
        let workers = self.fleet.workers().await;
        if let Ok(RegisteredWorkers { members, .. }) = &workers {
            let troubled = members.iter().filter(|member| member.status.trouble.is_some()).count();
            gauge!(WORKERS).set(members.len() as f64);
            gauge!(WORKERS_IN_TROUBLE).set(troubled as f64);
            gauge!(WORKERS_DRAINING).set(members.iter().filter(|member| member.draining).count() as f64);
        }
        gauge!(WORKERS_LOST).set(self.fleet.lost().len() as f64);
        let workers = workers.unwrap_or_default();
        let Ok(snapshot) = self.fleet.backlog().await else { return };
        let mut frame = Frame::default();
        let mut models: BTreeMap<&str, [u64; 5]> = BTreeMap::new();
        // Newer runs first: where there is no room for all, they matter more.
        for of_run in snapshot.runs.iter().rev() {
            let counts: Vec<ModelCounts> =
                of_run.models.iter().filter_map(|model| model.counts.clone()).collect();
            for (spec, backlog) in of_run.run.models.iter().zip(&of_run.models) {
                let sums = models.entry(spec.label.as_str()).or_default();
                let Some(counts) = &backlog.counts else { continue };
                let suspects = counts.suspects_pending + counts.suspects_leased;
                let numbers =
                    [counts.pending, counts.leased, counts.dead, suspects, counts.backlog_dialogues];
                sums.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
            }
            self.state_run(&of_run.run, &counts, &workers, &mut frame);
        }
        for (serves, need) in self.fleet.need(&snapshot) {
            for (state, left) in [("now", need.now), ("held", need.held), ("later", need.later.into())] {
                frame.set(NEED, &[("serves", &serves), ("state", state)], left as f64);
            }
        }
        for (model, [pending, leased, dead, suspect, backlog]) in models {
            for (state, units) in
                [("pending", pending), ("leased", leased), ("dead", dead), ("suspect", suspect)]
            {
                frame.set(UNITS, &[("model", model), ("state", state)], units as f64);
            }
            frame.set(BACKLOG, &[("model", model)], backlog as f64);
        }
        frame::state("runs", frame);
        gauge!(RUNS).set(snapshot.runs.len() as f64);
    }

    fn state_run(&self, run: &Run, counts: &[ModelCounts], workers: &RegisteredWorkers, frame: &mut Frame) {
        let cells = run.table(|table| table.cells(&run.plan, &run.layout));
        let views = self.model_views(run, &cells, counts, workers);
        let Pace { rate, tokens_per_second, .. } = progress::of_run(&views);
        let capped = self.benchmarks.caps.reached(run).map(|_| CapReached::WORD);
        let id = run.id().as_str();
        let of_run = [("run", id)];
        let phases = PHASES.map(RunPhase::as_str);
        frame.one_of(RUN_PHASE, &of_run, "phase", &phases, self.phase_of(run).as_str());
        frame.set(RUN_TROUBLE, &of_run, f64::from(u8::from(run.trouble().is_some())));
        frame.set(RUN_CREATED, &of_run, run.manifest.created_at.as_millisecond() as f64 / 1000.0);
        frame.set(RUN_GENERATION, &of_run, run.at().map_or(0, |at| at.generation) as f64);
        if let Some(name) = stage_of(run.id()) {
            let place =
                [("run", id), ("pipeline", &name.pipeline), ("stage", &name.stage), ("model", &name.model)];
            frame.set(RUN_STAGE, &place, 1.0);
        }
        let (scored, failed) = run.table(|table| (table.scored(), table.failed()));
        for (state, dialogues) in
            [("planned", run.manifest.planned_dialogues), ("scored", scored), ("failed", failed)]
        {
            frame.set(RUN_DIALOGUES, &[("run", id), ("state", state)], dialogues as f64);
        }
        frame.set(RUN_RATE, &of_run, rate);
        frame.set(RUN_TOKEN_RATE, &of_run, tokens_per_second);
        if let Some(eta_s) = progress::time_left(&views) {
            frame.set(RUN_ETA, &of_run, eta_s);
        }
        for (view, spec) in views.iter().zip(&run.models) {
            let of_model = [("run", id), ("model", view.model.as_str())];
            let of_servers = [of_model[0], of_model[1], ("serves", spec.requested())];
            frame.set(RUN_MODEL_REMAINING, &of_servers, view.remaining() as f64);
            frame.set(RUN_MODEL_WORKERS, &of_model, view.workers as f64);
            for (state, dialogues) in [("scored", view.scored), ("failed", view.failed)] {
                frame.set(
                    RUN_MODEL_DIALOGUES,
                    &[of_model[0], of_model[1], ("state", state)],
                    dialogues as f64,
                );
            }
            if view.blocked.is_some() {
                let nobody = || workers.why_nobody(spec).map(|why| why.word());
                let otherwise = || view.parked.as_deref().map(parked_word).or_else(nobody);
                // Whoever came in between can ask it.
                if let Some(reason) = capped.or_else(otherwise) {
                    frame.set(RUN_MODEL_BLOCKED, &[of_model[0], of_model[1], ("reason", reason)], 1.0);
                }
            }
            if let Some(mean) = view.mean.value {
                frame.set(RUN_MODEL_SCORE, &of_model, mean);
            }
            if let Some(spent) = self.options.prices.spent(view.billed_as.as_deref(), &view.usage) {
                frame.set(RUN_MODEL_SPENT, &of_model, spent.amount);
            }
        }
        for CellView { task, model, scored, failed, planned, mean, .. } in &cells {
            let of_cell = [("run", id), ("model", model.as_str()), ("task", task.as_str())];
            if let Some(mean) = mean {
                frame.set(RUN_CELL_SCORE, &of_cell, *mean);
            }
            frame.set(RUN_CELL_DONE, &of_cell, (scored + failed) as f64 / (*planned).max(1) as f64);
        }
    }
}
