//! Invariants of a queue. Tests check all of them on the memory model after every operation; the other stores are
//! tested against the model.

use std::collections::BTreeMap;

use crate::limits::{RATE_BUCKETS_MAX, WORKERS_MAX};
use crate::memory::{MemoryQueue, MemoryRun, UnitPlace};
use crate::unit::{FREE_DEATHS, UnitId};

/// A violated rule.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{id} ({rule}) does not hold: {found}")]
pub struct Broken {
    /// Id of the rule, `Q1`, `Q2`, …
    pub id: &'static str,
    /// The rule in one sentence.
    pub rule: &'static str,
    /// What was found.
    pub found: String,
}

/// The rules: id and sentence.
pub const RULES: [(&str, &str); 8] = [
    ("Q1", "every unit that was added and is not done is in exactly one place: pending, leased or dead"),
    ("Q2", "added = pending + leased + dead + done for every model, and ids are dense"),
    ("Q3", "a leased unit has been leased at least once, and more often than workers died with it"),
    ("Q4", "a unit is dead if and only if it has two deaths more than the strikes that its run allows"),
    ("Q5", "the counts of scored and failed dialogues are those of the records that count"),
    (
        "Q6",
        "generations, tickets, attempts and unit ids never fall, and a record that counts never gets worse",
    ),
    ("Q7", "workers and rate buckets stay within their limits"),
    ("Q8", "a worker that holds a suspect holds nothing else of the run"),
];

fn broken(index: usize, found: String) -> Broken {
    let (id, rule) = RULES[index];
    Broken { id, rule, found }
}

/// Checks the rules about a single state.
///
/// # Errors
/// The first rule that does not hold.
pub fn check(queue: &MemoryQueue) -> Result<(), Broken> {
    for run in queue.runs.values() {
        check_units(run)?;
        check_records(run)?;
    }
    if queue.workers.len() > WORKERS_MAX || queue.rates.len() > RATE_BUCKETS_MAX {
        return Err(broken(6, format!("{} workers, {} buckets", queue.workers.len(), queue.rates.len())));
    }
    Ok(())
}

fn check_units(run: &MemoryRun) -> Result<(), Broken> {
    for (id, unit) in &run.units {
        let model = run.models.get(&unit.content.model);
        let sets = model.map(|model| {
            let suspected = model.suspects.contains(&(unit.deaths.len(), *id));
            [model.pending.contains(id), suspected, model.leased.contains(id), model.dead.contains(id)]
        });
        let expected = match unit.place {
            UnitPlace::Pending => [!unit.is_suspect(), unit.is_suspect(), false, false],
            UnitPlace::Leased { .. } => [false, false, true, false],
            UnitPlace::Dead => [false, false, false, true],
        };
        if sets != Some(expected) {
            return Err(broken(0, format!("unit {id} is {:?}, and in {sets:?}", unit.place)));
        }
        let deaths = unit.deaths.len();
        if let UnitPlace::Leased { worker, .. } = &unit.place {
            if deaths >= unit.attempt as usize {
                return Err(broken(2, format!("unit {id}: attempt {}, {deaths} deaths", unit.attempt)));
            }
            let alone = run.alone.get(worker);
            if alone.is_some_and(|alone| alone != id) || (unit.is_suspect() && alone.is_none()) {
                return Err(broken(7, format!("{worker} holds unit {id}, and alone {alone:?}")));
            }
        }
        if (unit.place == UnitPlace::Dead) != (deaths > FREE_DEATHS + run.status.max_strikes as usize) {
            return Err(broken(3, format!("unit {id} is {:?} with {deaths} deaths", unit.place)));
        }
    }
    let leased =
        |id: &UnitId| run.units.get(id).is_some_and(|unit| matches!(unit.place, UnitPlace::Leased { .. }));
    if let Some((worker, id)) = run.alone.iter().find(|(_, id)| !leased(id)) {
        return Err(broken(7, format!("{worker} is kept for unit {id}, which it does not hold")));
    }
    let mut added = 0;
    for (label, model) in &run.models {
        let here =
            (model.pending.len() + model.suspects.len() + model.leased.len() + model.dead.len()) as u64;
        let known = run.units.values().filter(|unit| unit.content.model == *label).count() as u64;
        if here != known || here > model.added {
            return Err(broken(1, format!("{label}: {here} placed, {known} known, {} added", model.added)));
        }
        let open =
            run.units.values().filter(|unit| unit.content.model == *label && unit.place != UnitPlace::Dead);
        let backlog: u64 = open.map(|unit| u64::from(unit.content.dialogues)).sum();
        if backlog != model.backlog_dialogues {
            let kept = model.backlog_dialogues;
            return Err(broken(1, format!("{label}: {backlog} dialogues wait or are held, {kept} are kept")));
        }
        added += model.added;
    }
    if added != run.status.next_unit.0 {
        return Err(broken(1, format!("{added} added, next is {}", run.status.next_unit)));
    }
    Ok(())
}

fn check_records(run: &MemoryRun) -> Result<(), Broken> {
    let mut counted: BTreeMap<_, (u64, u64)> = BTreeMap::new();
    for (key, record) in run.committed.iter() {
        let (scored, failed) = counted.entry(key.model).or_default();
        *if record.scored { scored } else { failed } += 1;
    }
    for (label, model) in &run.models {
        let expected = counted.remove(label).unwrap_or_default();
        if (model.scored, model.failed) != expected {
            let found =
                format!("{label}: {} scored, {} failed, {expected:?} recorded", model.scored, model.failed);
            return Err(broken(4, found));
        }
    }
    if let Some((label, _)) = counted.first_key_value() {
        return Err(broken(4, format!("records of `{label}`, which the run does not know")));
    }
    Ok(())
}

/// Checks the rules about two successive states.
///
/// # Errors
/// The first rule that does not hold.
pub fn check_step(before: &MemoryQueue, after: &MemoryQueue) -> Result<(), Broken> {
    for (id, old) in &before.runs {
        let Some(new) = after.runs.get(id) else { continue };
        if new.status.at.generation != old.status.at.generation {
            if new.status.at.generation < old.status.at.generation {
                return Err(broken(5, format!("generation of `{id}` fell")));
            }
            continue;
        }
        if new.last_ticket < old.last_ticket || new.status.next_unit < old.status.next_unit {
            return Err(broken(5, format!("tickets or ids of `{id}` fell")));
        }
        for (unit, was) in &old.units {
            if new.units.get(unit).is_some_and(|is| is.attempt < was.attempt) {
                return Err(broken(5, format!("attempts of unit {unit} fell")));
            }
        }
        for (key, was) in old.committed.iter() {
            match new.committed.get(&key) {
                Some(is) if !was.beats(is) => {}
                other => return Err(broken(5, format!("{key} counted {was:?}, now {other:?}"))),
            }
        }
    }
    Ok(())
}
