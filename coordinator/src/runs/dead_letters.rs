//! Dead letters: units over which workers died. Their dialogues end as failures, so that the run can finish; people may
//! look at them and give them another chance.

use std::sync::Arc;

use domain::caller::Caller;
use domain::control::{DeadLetterView, StrikeView};
use domain::exchange::{Delivery, Receipt};
use domain::{
    Attempt, FailureCause, ModelProvenance, Outcome, Provenance, Record, RecordId, RunId, TaskProvenance,
    WorkerId, machine, seed,
};
use jiff::Timestamp;
use queue::limits::{DEAD_LETTERS_PER_PAGE_MAX, FENCES_PER_CALL_MAX};
use queue::{Suspect, UnitId};

use crate::errors::{Result, internal, not_found};
use crate::options::DELIVERIES_PER_CALL_MAX;
use crate::plan::numbering::Slot;
use crate::queue::queued_unit::QueuedUnit;
use crate::records::run::Run;
use crate::runs::Runs;

/// The worker name in records of dead letters.
pub(crate) const COORDINATOR: &str = "coordinator";

impl Runs {
    pub(crate) async fn dead_letters(&self, id: &RunId, unit: Option<u64>) -> Result<Vec<DeadLetterView>> {
        let run = self.loaded.known(id).await?;
        let letters = match unit {
            None => [self.suspects(&run, true).await?, self.suspects(&run, false).await?].concat(),
            Some(unit) => {
                let letter = self
                    .queue
                    .call(&run, |queue, at| async move { queue.suspect(&at, UnitId(unit)).await })
                    .await?;
                vec![
                    letter
                        .ok_or_else(|| not_found(format!("no worker died with unit {unit} of run {id}")))?,
                ]
            }
        };
        letters.into_iter().map(|letter| view(&run, letter)).collect()
    }

    /// All dead letters of a run (`dead`), or all suspects.
    pub(crate) async fn suspects(&self, run: &Arc<Run>, dead: bool) -> Result<Vec<Suspect>> {
        let mut letters: Vec<Suspect> = Vec::new();
        loop {
            let after = letters.last().map(|letter| letter.unit);
            let page = self
                .queue
                .call(run, |queue, at| async move {
                    queue.suspects(&at, dead, after, DEAD_LETTERS_PER_PAGE_MAX).await
                })
                .await?;
            if page.is_empty() {
                return Ok(letters);
            }
            letters.extend(page);
        }
    }

    pub(crate) async fn requeue(&self, id: &RunId, units: &[u64]) -> Result<u64> {
        let run = self.loaded.known(id).await?;
        let units: Vec<UnitId> = match units {
            [] => self.suspects(&run, true).await?.into_iter().map(|letter| letter.unit).collect(),
            units => units.iter().copied().map(UnitId).collect(),
        };
        let mut requeued = 0;
        for units in units.chunks(FENCES_PER_CALL_MAX) {
            requeued +=
                self.queue.call(&run, |queue, at| async move { queue.requeue(&at, units).await }).await?;
        }
        if requeued > 0 {
            self.rework(&run).await?;
            tracing::info!(run = %id, requeued, "units get another chance");
        }
        Ok(requeued)
    }

    /// Writes failed records for the dialogues of dead letters that have none. A later record with scores wins over
    /// them, and so does an earlier failure.
    pub(crate) async fn record_dead(&self, run: &Arc<Run>) -> Result<()> {
        let mut deliveries = Vec::new();
        for letter in self.suspects(run, true).await? {
            let payload = QueuedUnit::read(&letter.payload)?;
            let Some(model) = run.layout.model(&letter.model) else { continue };
            let slots = payload.iterations.iter().filter_map(|i| run.layout.slot(model, payload.task, *i));
            // A retry that killed its workers is over too.
            let open: Vec<Slot> = run.asked(|table, retries| {
                let is_open = |slot: &Slot| {
                    let again = payload.asked.is_some_and(|asked| retries.is_pending(*slot, asked, table));
                    again || table.get(*slot).is_none()
                };
                slots.filter(is_open).collect()
            });
            for slot in open {
                let record = poisoned(run, slot, &letter);
                deliveries.push(Delivery::of(run.id().clone(), &record).map_err(internal)?);
            }
        }
        while !deliveries.is_empty() {
            let rest = deliveries.split_off(deliveries.len().min(DELIVERIES_PER_CALL_MAX));
            for receipt in
                self.logs.deliver(std::mem::replace(&mut deliveries, rest), &Caller::anyone()).await?
            {
                if let Receipt::Refused { reason } = receipt {
                    return Err(internal(format!("a record of a dead letter was refused: {reason}")));
                }
            }
        }
        Ok(())
    }
}

fn view(run: &Run, letter: Suspect) -> Result<DeadLetterView> {
    let payload = QueuedUnit::read(&letter.payload)?;
    let model = run.layout.model(&letter.model);
    let key = |iteration: &u32| run.key(model?, payload.task, *iteration);
    let strike = |death: queue::Death| StrikeView {
        worker: death.worker,
        attempt: death.attempt,
        cause: death.cause,
        at: i64::try_from(death.at_ms)
            .ok()
            .and_then(|ms| Timestamp::from_millisecond(ms).ok())
            .unwrap_or_default(),
    };
    Ok(DeadLetterView {
        run: run.id().clone(),
        unit: letter.unit.0,
        dialogues: payload.iterations.iter().filter_map(key).collect(),
        strikes: letter.deaths.into_iter().map(strike).collect(),
        suspect: !letter.dead,
    })
}

fn poisoned(run: &Run, slot: Slot, letter: &Suspect) -> Record {
    let key = run.layout.key(slot);
    let (model, task, iteration) = run.layout.place(slot);
    let (spec, kind, now) = (&run.models[model], &run.tasks[task], machine::now());
    let deaths: Vec<String> =
        letter.deaths.iter().map(|death| format!("{} ({})", death.worker, death.cause)).collect();
    let pack = run.manifest.packs.first();
    let case = kind.cases.get(iteration as usize % kind.cases.len().max(1));
    Record {
        attempt: Attempt {
            id: RecordId::random(),
            generation: run.at().map_or(0, |at| at.generation),
            number: letter.deaths.last().map_or(1, |death| death.attempt),
            worker: WorkerId::new(COORDINATOR),
        },
        started_at: now,
        ended_at: now,
        system: None,
        rounds: Vec::new(),
        outcome: Outcome::Failed {
            cause: FailureCause::Poisoned,
            message: format!(
                "unit {} became a dead letter after its workers died: {}",
                letter.unit,
                deaths.join(", ")
            ),
        },
        failed_calls: Vec::new(),
        provenance: Provenance {
            kgfleet: env!("CARGO_PKG_VERSION").to_owned(),
            task: TaskProvenance {
                class: kind.name.clone(),
                version: kind.version.clone(),
                case: case.cloned().unwrap_or_default(),
                pack: pack.map(|pack| pack.name.clone()).unwrap_or_default(),
                pack_hash: pack.map(|pack| pack.hash.clone()).unwrap_or_default(),
                scorer: env!("CARGO_PKG_VERSION").to_owned(),
            },
            model: ModelProvenance {
                connector: serde_json::to_value(spec.connector)
                    .ok()
                    .and_then(|name| name.as_str().map(str::to_owned))
                    .unwrap_or_default(),
                requested: spec.requested().to_owned(),
                reported: None,
                system_fingerprint: None,
                endpoint: None,
                adapted: Vec::new(),
                max_tokens: None,
            },
            sampling: spec.sampling.clone(),
            seed: seed::dialogue_seed(run.manifest.seed, &key),
            about: run.manifest.about.clone(),
            made_at: None,
        },
        key,
    }
}
