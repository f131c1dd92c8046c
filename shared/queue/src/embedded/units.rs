//! Units and leases as rows. Every function works within the caller's transaction.

use std::collections::BTreeSet;

use domain::{ModelLabel, WorkerId};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::know;
use crate::error::{Error, Result};
use crate::limits::MAX_REAPED_PER_MODEL;
use crate::local::millis;
use crate::run::{RunRef, RunState, RunStatus};
use crate::unit::{
    Added, DeadLetter, Fence, Lease, LeaseRequest, NewUnit, Reap, Reaped, Renewal, Strike, Transition, UnitId,
};

pub(super) fn add(file: &Connection, run: &RunStatus, first: UnitId, units: &[NewUnit]) -> Result<Added> {
    let mut next = run.next_unit;
    if first != next {
        return Ok(Added { applied: false, next });
    }
    let id = run.at.run.as_str();
    for unit in units {
        know(file, &run.at.run, &unit.model)?;
        let model = unit.model.as_str();
        file.prepare_cached("UPDATE models SET added = added + 1 WHERE run = ? AND model = ?")?
            .execute([id, model])?;
        file.prepare_cached(
            "INSERT INTO units (run, unit, model, dialogues, payload) VALUES (?, ?, ?, ?, ?)",
        )?
        .execute(params![id, next.0, model, unit.dialogues, unit.payload])?;
        next.0 += 1;
    }
    file.prepare_cached("UPDATE runs SET next_unit = ? WHERE run = ?")?.execute(params![next.0, id])?;
    Ok(Added { applied: true, next })
}

fn read_lease(
    row: &Row<'_>,
    run: &RunStatus,
    model: &ModelLabel,
    deadline_ms: u64,
) -> rusqlite::Result<Lease> {
    let fence = Fence {
        generation: run.at.generation,
        model: model.clone(),
        unit: UnitId(row.get(0)?),
        attempt: row.get(1)?,
    };
    Ok(Lease { fence, dialogues: row.get(2)?, payload: row.get(3)?, deadline_ms })
}

pub(super) fn lease(
    file: &Connection,
    now_ms: u64,
    run: &RunStatus,
    ask: &LeaseRequest,
) -> Result<Vec<Lease>> {
    let mut leases: Vec<Lease> = Vec::new();
    if run.state != RunState::Active {
        return Ok(leases);
    }
    let deadline_ms = now_ms + millis(run.lease_for);
    let id = run.at.run.as_str();
    for model in &ask.models {
        let parked = "SELECT 1 FROM models WHERE run = ? AND model = ? AND parked_until > ?";
        if file.prepare_cached(parked)?.exists(params![id, model.as_str(), now_ms])? {
            continue;
        }
        let room = (ask.max_units as usize).saturating_sub(leases.len());
        let sql = "UPDATE units SET place = 1, attempt = attempt + 1, worker = ?3, deadline_ms = ?4
                   WHERE run = ?1 AND unit IN (
                       SELECT unit FROM units WHERE run = ?1 AND model = ?2 AND place = 0 ORDER BY unit LIMIT ?5)
                   RETURNING unit, attempt, dialogues, payload";
        let mut query = file.prepare_cached(sql)?;
        let parameters = params![id, model.as_str(), ask.worker.as_str(), deadline_ms, room];
        let rows = query.query_map(parameters, |row| read_lease(row, run, model, deadline_ms))?;
        let mut of_model = rows.collect::<rusqlite::Result<Vec<_>>>()?;
        // RETURNING promises no order.
        of_model.sort_unstable_by_key(|lease| lease.fence.unit);
        leases.append(&mut of_model);
    }
    Ok(leases)
}

pub(super) fn renew(
    file: &Connection,
    now_ms: u64,
    run: &RunStatus,
    worker: &WorkerId,
    models: &[ModelLabel],
    held: &[Fence],
) -> Result<Renewal> {
    let deadline_ms = now_ms + millis(run.lease_for);
    let labels: BTreeSet<_> = models.iter().chain(held.iter().map(|fence| &fence.model)).collect();
    let mut leases: Vec<Lease> = Vec::new();
    for model in labels {
        let sql =
            "UPDATE units SET deadline_ms = ?4 WHERE run = ?1 AND model = ?2 AND place = 1 AND worker = ?3
                   RETURNING unit, attempt, dialogues, payload";
        let mut query = file.prepare_cached(sql)?;
        let parameters = params![run.at.run.as_str(), model.as_str(), worker.as_str(), deadline_ms];
        let rows = query.query_map(parameters, |row| read_lease(row, run, model, deadline_ms))?;
        leases.extend(rows.collect::<rusqlite::Result<Vec<_>>>()?);
    }
    leases.sort_unstable_by(|a, b| (&a.fence.model, a.fence.unit).cmp(&(&b.fence.model, b.fence.unit)));
    let renewed: BTreeSet<_> = leases.iter().map(|lease| lease.fence.clone()).collect();
    let lost = held.iter().filter(|fence| !renewed.contains(fence)).cloned().collect();
    let reported: BTreeSet<_> = held.iter().collect();
    leases.retain(|lease| !reported.contains(&lease.fence));
    Ok(Renewal { state: run.state, lost, unreported: leases, deadline_ms })
}

/// The condition under which a fence holds; parameters 1 to 4 are run, unit, model and attempt.
const HOLDS: &str = "WHERE run = ?1 AND unit = ?2 AND model = ?3 AND attempt = ?4 AND place = 1";

pub(super) fn holds(file: &Connection, at: &RunRef, fence: &Fence) -> Result<bool> {
    let parameters = params![at.run.as_str(), fence.unit.0, fence.model.as_str(), fence.attempt];
    let held = file.prepare_cached(&format!("SELECT 1 FROM units {HOLDS}"))?.exists(parameters)?;
    Ok(held && fence.generation == at.generation)
}

/// Ends the leases whose fences hold by `change`, an `UPDATE` or `DELETE` without its condition.
pub(super) fn end_leases(
    file: &Connection,
    at: &RunRef,
    fences: &[Fence],
    change: &'static str,
) -> Result<Vec<Transition>> {
    let mut change = file.prepare_cached(&format!("{change} {HOLDS}"))?;
    let mut end = |fence: &Fence| {
        if fence.generation != at.generation {
            return Ok(Transition::Stale);
        }
        let parameters = params![at.run.as_str(), fence.unit.0, fence.model.as_str(), fence.attempt];
        Ok(if change.execute(parameters)? > 0 { Transition::Applied } else { Transition::Stale })
    };
    fences.iter().map(&mut end).collect()
}

fn read_strikes(unit: UnitId, lines: &str) -> Result<Vec<Strike>> {
    let corrupt = |error| Error::Corrupt { message: format!("the strikes of unit {unit}: {error}") };
    lines.lines().map(|line| serde_json::from_str(line).map_err(corrupt)).collect()
}

/// Ends the lease on a unit with a strike; true if the unit is dead now.
pub(super) fn strike(
    file: &Connection,
    now_ms: u64,
    run: &RunStatus,
    unit: UnitId,
    cause: &str,
) -> Result<bool> {
    let sql = "SELECT worker, attempt, strikes FROM units WHERE run = ? AND unit = ?";
    let parameters = params![run.at.run.as_str(), unit.0];
    let (worker, attempt, mut lines): (String, u32, String) =
        file.prepare_cached(sql)?.query_row(parameters, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let strike = Strike { worker: WorkerId::new(worker), attempt, cause: cause.to_owned(), at_ms: now_ms };
    let line = serde_json::to_string(&strike)
        .map_err(|error| Error::Corrupt { message: format!("a strike that JSON cannot hold: {error}") })?;
    if !lines.is_empty() {
        lines.push('\n');
    }
    lines.push_str(&line);
    let dead = lines.lines().count() >= run.max_strikes as usize;
    let place = if dead { 2 } else { 0 };
    file.prepare_cached("UPDATE units SET place = ?, strikes = ? WHERE run = ? AND unit = ?")?
        .execute(params![place, lines, run.at.run.as_str(), unit.0])?;
    Ok(dead)
}

pub(super) fn reap(file: &Connection, now_ms: u64, run: &RunStatus, whose: &Reap) -> Result<Reaped> {
    let id = run.at.run.as_str();
    let mut models = file.prepare_cached("SELECT model FROM models WHERE run = ? ORDER BY model")?;
    let models = models.query_map([id], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
    let mut reaped = Reaped::default();
    for model in models {
        // One more than may be taken over tells whether more are left.
        let limit = MAX_REAPED_PER_MODEL + 1;
        let mut ids: Vec<u64> = match whose {
            Reap::Expired => {
                let sql =
                    "SELECT unit FROM units WHERE run = ? AND model = ? AND place = 1 AND deadline_ms <= ?
                           ORDER BY unit LIMIT ?";
                let mut query = file.prepare_cached(sql)?;
                let rows = query.query_map(params![id, model, now_ms, limit], |row| row.get(0))?;
                rows.collect::<rusqlite::Result<_>>()?
            }
            Reap::Worker(worker) => {
                let sql = "SELECT unit FROM units WHERE run = ? AND model = ? AND place = 1 AND worker = ?
                           ORDER BY unit LIMIT ?";
                let mut query = file.prepare_cached(sql)?;
                let rows = query.query_map(params![id, model, worker.as_str(), limit], |row| row.get(0))?;
                rows.collect::<rusqlite::Result<_>>()?
            }
        };
        reaped.more |= ids.len() > MAX_REAPED_PER_MODEL;
        ids.truncate(MAX_REAPED_PER_MODEL);
        for unit in ids.into_iter().map(UnitId) {
            let dead = strike(file, now_ms, run, unit, whose.cause())?;
            if dead { reaped.dead.push(unit) } else { reaped.requeued.push(unit) }
        }
    }
    Ok(reaped)
}

/// Dead letters from unit `lowest` on.
pub(super) fn dead_letters(
    file: &Connection,
    at: &RunRef,
    lowest: u64,
    limit: u32,
) -> Result<Vec<DeadLetter>> {
    let sql = "SELECT unit, model, dialogues, payload, strikes FROM units
               WHERE run = ? AND place = 2 AND unit >= ? ORDER BY unit LIMIT ?";
    let mut query = file.prepare_cached(sql)?;
    let rows = query.query_map(params![at.run.as_str(), lowest, limit], |row| {
        let letter = DeadLetter {
            unit: UnitId(row.get(0)?),
            model: ModelLabel::new(row.get::<_, String>(1)?),
            dialogues: row.get(2)?,
            payload: row.get(3)?,
            strikes: Vec::new(),
        };
        Ok((letter, row.get::<_, String>(4)?))
    })?;
    let letter = |row: rusqlite::Result<(DeadLetter, String)>| {
        let (letter, lines) = row?;
        Ok(DeadLetter { strikes: read_strikes(letter.unit, &lines)?, ..letter })
    };
    rows.map(letter).collect()
}

pub(super) fn requeue(file: &Connection, at: &RunRef, units: &[UnitId]) -> Result<u64> {
    let sql = "UPDATE units SET place = 0, strikes = '' WHERE run = ? AND unit = ? AND place = 2 RETURNING 1";
    let mut query = file.prepare_cached(sql)?;
    let mut requeued = 0;
    for unit in units {
        let found: Option<u64> =
            query.query_row(params![at.run.as_str(), unit.0], |row| row.get(0)).optional()?;
        requeued += found.unwrap_or(0);
    }
    Ok(requeued)
}
