//! The queue in one SQLite file, for a machine without Redis. Every operation is one transaction, on disk before it
//! returns (write-ahead log, `synchronous = FULL`), so a killed process leaves what it was told and nothing else.

mod units;

use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use domain::{DialogueKey, ModelLabel, RunId, WorkerId};
use rusqlite::{Connection, ErrorCode, OptionalExtension, Row, Transaction, TransactionBehavior, params};

use crate::commit::{Commit, Committed, Verdict};
use crate::error::{Error, Result};
use crate::limits::{MAX_RATE_BUCKETS, MAX_WORKERS, at_most};
use crate::local::{LocalQueue, millis};
use crate::run::{ModelCounts, Parked, RunRef, RunSpec, RunState, RunStatus};
use crate::unit::{
    Added, DeadLetter, Fence, Lease, LeaseRequest, NewUnit, Reap, Reaped, Renewal, Struck, Transition, UnitId,
};
use crate::worker::{Orders, Rate, RateReply, WorkerEntry};

/// Version of `schema.sql`.
const SCHEMA_VERSION: i64 = 1;
/// How long an operation waits for another process that is writing.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// The queue in its file.
pub(crate) struct SqliteQueue {
    file: Connection,
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        let message = format!("SQLite: {error}");
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => {
                Self::Full { message: format!("{message}; free some space on its disk") }
            }
            Some(
                ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::SystemIoFailure
                | ErrorCode::OutOfMemory
                | ErrorCode::FileLockingProtocolFailed,
            ) => Self::Unavailable { message },
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => {
                Self::Unfit { message }
            }
            _ => Self::Corrupt { message },
        }
    }
}

impl SqliteQueue {
    pub(crate) fn open(file: &Path) -> Result<Self> {
        let mut connection = Connection::open(file)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.set_prepared_statement_cache_capacity(64);
        // Immediate, so that of two processes which create the file only one does.
        let creation = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        match creation.query_row("PRAGMA user_version", [], |row| row.get(0))? {
            0 => creation.execute_batch(include_str!("schema.sql"))?,
            SCHEMA_VERSION => {}
            other => {
                let file = file.display();
                let message =
                    format!("{file} has version {other} of the queue, this program knows {SCHEMA_VERSION}");
                return Err(Error::Unfit { message });
            }
        }
        creation.commit()?;
        Ok(Self { file: connection })
    }

    /// Does the work as a whole or not at all.
    fn transact<T>(&mut self, work: impl FnOnce(&Transaction<'_>) -> Result<T>) -> Result<T> {
        let transaction = self.file.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let done = work(&transaction)?;
        transaction.commit()?;
        Ok(done)
    }

    /// The same, in the generation of the caller, with the run as it is.
    fn transact_at<T>(
        &mut self,
        at: &RunRef,
        work: impl FnOnce(&Transaction<'_>, RunStatus) -> Result<T>,
    ) -> Result<T> {
        self.transact(|file| {
            let run = status(file, &at.run)?.ok_or_else(|| Error::RunGone { run: at.run.clone() })?;
            let current = run.at.generation;
            if current != at.generation {
                return Err(Error::StaleGeneration { run: at.run.clone(), given: at.generation, current });
            }
            work(file, run)
        })
    }
}

const RUN_COLUMNS: &str =
    "SELECT run, generation, plan_hash, state, next_unit, lease_ms, max_strikes FROM runs";

fn read_status(row: &Row<'_>) -> rusqlite::Result<(RunStatus, String)> {
    let status = RunStatus {
        at: RunRef { run: RunId::new(row.get::<_, String>(0)?), generation: row.get(1)? },
        plan_hash: row.get(2)?,
        state: RunState::Active,
        next_unit: UnitId(row.get(4)?),
        lease_for: Duration::from_millis(row.get(5)?),
        max_strikes: row.get(6)?,
    };
    Ok((status, row.get(3)?))
}

fn with_state((status, state): (RunStatus, String)) -> Result<RunStatus> {
    Ok(RunStatus { state: RunState::parse(&state)?, ..status })
}

fn status(file: &Connection, run: &RunId) -> Result<Option<RunStatus>> {
    let mut query = file.prepare_cached(&format!("{RUN_COLUMNS} WHERE run = ?"))?;
    query.query_row([run.as_str()], read_status).optional()?.map(with_state).transpose()
}

/// Makes the model known to the run.
fn know(file: &Connection, run: &RunId, model: &ModelLabel) -> Result<()> {
    let sql = "INSERT INTO models (run, model) VALUES (?, ?) ON CONFLICT DO NOTHING";
    file.prepare_cached(sql)?.execute([run.as_str(), model.as_str()])?;
    Ok(())
}

fn count_records(
    file: &Connection,
    at: &RunRef,
    model: &ModelLabel,
    record: Committed,
    by: i64,
) -> Result<()> {
    let sql = if record.scored {
        "UPDATE models SET scored = scored + ?3 WHERE run = ?1 AND model = ?2"
    } else {
        "UPDATE models SET failed = failed + ?3 WHERE run = ?1 AND model = ?2"
    };
    file.prepare_cached(sql)?.execute(params![at.run.as_str(), model.as_str(), by])?;
    Ok(())
}

fn standing(file: &Connection, at: &RunRef, key: &DialogueKey) -> Result<Option<Committed>> {
    let sql = "SELECT scored, ticket FROM records WHERE run = ? AND model = ? AND task = ? AND iteration = ?";
    let key = params![at.run.as_str(), key.model.as_str(), key.task.as_str(), key.iteration];
    let read = |row: &Row<'_>| Ok(Committed { scored: row.get(0)?, ticket: row.get(1)? });
    Ok(file.prepare_cached(sql)?.query_row(key, read).optional()?)
}

fn drop_expired_workers(file: &Connection, now_ms: u64) -> Result<()> {
    file.prepare_cached("DELETE FROM workers WHERE expires_ms <= ?")?.execute([now_ms])?;
    Ok(())
}

fn count(file: &Connection, sql: &str) -> Result<usize> {
    Ok(file.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}

impl LocalQueue for SqliteQueue {
    fn create_run(&mut self, now_ms: u64, spec: &RunSpec) -> Result<RunStatus> {
        self.transact(|file| {
            if let Some(run) = status(file, &spec.run)? {
                spec.check_joins(&run.plan_hash)?;
                return Ok(run);
            }
            let run = RunStatus {
                at: RunRef { run: spec.run.clone(), generation: now_ms.max(spec.generation_floor + 1) },
                plan_hash: spec.plan_hash.clone(),
                state: RunState::Active,
                next_unit: UnitId(0),
                lease_for: spec.lease_for,
                max_strikes: spec.max_strikes,
            };
            let sql =
                "INSERT INTO runs (run, generation, plan_hash, state, lease_ms, max_strikes, last_ticket)
                       VALUES (?, ?, ?, ?, ?, ?, ?)";
            file.prepare_cached(sql)?.execute(params![
                spec.run.as_str(),
                run.at.generation,
                spec.plan_hash,
                run.state.as_str(),
                millis(spec.lease_for),
                spec.max_strikes,
                spec.ticket_floor,
            ])?;
            Ok(run)
        })
    }

    fn run(&mut self, run: &RunId) -> Result<Option<RunStatus>> {
        status(&self.file, run)
    }

    fn runs(&mut self) -> Result<Vec<RunStatus>> {
        let mut query = self.file.prepare_cached(&format!("{RUN_COLUMNS} ORDER BY run"))?;
        let rows = query.query_map([], read_status)?;
        rows.map(|row| with_state(row?)).collect()
    }

    fn set_state(&mut self, at: &RunRef, to: RunState) -> Result<RunState> {
        self.transact_at(at, |file, run| {
            let from = run.state;
            if !from.may_become(to) {
                return Err(Error::IllegalState { run: at.run.clone(), from, to });
            }
            let sql = "UPDATE runs SET state = ? WHERE run = ?";
            file.prepare_cached(sql)?.execute([to.as_str(), at.run.as_str()])?;
            Ok(from)
        })
    }

    fn forget_run(&mut self, run: &RunId) -> Result<bool> {
        self.transact(|file| Ok(file.execute("DELETE FROM runs WHERE run = ?", [run.as_str()])? > 0))
    }

    fn add_units(&mut self, at: &RunRef, first: UnitId, units: &[NewUnit]) -> Result<Added> {
        self.transact_at(at, |file, run| units::add(file, &run, first, units))
    }

    fn lease(&mut self, now_ms: u64, at: &RunRef, ask: &LeaseRequest) -> Result<Vec<Lease>> {
        self.transact_at(at, |file, run| units::lease(file, now_ms, &run, ask))
    }

    fn renew(
        &mut self,
        now_ms: u64,
        at: &RunRef,
        worker: &WorkerId,
        models: &[ModelLabel],
        held: &[Fence],
    ) -> Result<Renewal> {
        self.transact_at(at, |file, run| units::renew(file, now_ms, &run, worker, models, held))
    }

    fn release(&mut self, at: &RunRef, fences: &[Fence]) -> Result<Vec<Transition>> {
        self.transact_at(at, |file, _| units::end_leases(file, at, fences, "UPDATE units SET place = 0"))
    }

    fn strike(&mut self, now_ms: u64, at: &RunRef, fence: &Fence, cause: &str) -> Result<Struck> {
        self.transact_at(at, |file, run| {
            if !units::holds(file, at, fence)? {
                return Ok(Struck::Stale);
            }
            let dead = units::strike(file, now_ms, &run, fence.unit, cause)?;
            Ok(if dead { Struck::Dead } else { Struck::Requeued })
        })
    }

    fn finish(&mut self, at: &RunRef, fences: &[Fence]) -> Result<Vec<Transition>> {
        self.transact_at(at, |file, _| units::end_leases(file, at, fences, "DELETE FROM units"))
    }

    fn reap(&mut self, now_ms: u64, at: &RunRef, whose: &Reap) -> Result<Reaped> {
        self.transact_at(at, |file, run| units::reap(file, now_ms, &run, whose))
    }

    fn tickets(&mut self, now_ms: u64, at: &RunRef, count: u32) -> Result<Range<u64>> {
        self.transact_at(at, |file, _| {
            let sql = "UPDATE runs SET last_ticket = max(last_ticket + 1, ?2) + ?3 - 1 WHERE run = ?1
                       RETURNING last_ticket";
            let parameters = params![at.run.as_str(), now_ms * 1_000, count];
            let last: u64 = file.prepare_cached(sql)?.query_row(parameters, |row| row.get(0))?;
            Ok(last + 1 - u64::from(count)..last + 1)
        })
    }

    fn commit(&mut self, at: &RunRef, commits: &[Commit]) -> Result<Vec<Verdict>> {
        self.transact_at(at, |file, _| {
            let commit = |Commit { key, record }: &Commit| {
                let verdict = Verdict::over(standing(file, at, key)?, *record);
                know(file, &at.run, &key.model)?;
                if let Verdict::Supersedes(loser) = verdict {
                    count_records(file, at, &key.model, loser, -1)?;
                }
                if verdict.counts() {
                    count_records(file, at, &key.model, *record, 1)?;
                    let sql = "INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?, ?, ?)";
                    file.prepare_cached(sql)?.execute(params![
                        at.run.as_str(),
                        key.model.as_str(),
                        key.task.as_str(),
                        key.iteration,
                        record.scored,
                        record.ticket,
                    ])?;
                }
                Ok(verdict)
            };
            commits.iter().map(commit).collect()
        })
    }

    fn committed(&mut self, at: &RunRef, keys: &[DialogueKey]) -> Result<Vec<Option<Committed>>> {
        self.transact_at(at, |file, _| keys.iter().map(|key| standing(file, at, key)).collect())
    }

    fn counts(&mut self, now_ms: u64, at: &RunRef) -> Result<Vec<ModelCounts>> {
        self.transact_at(at, |file, _| {
            let sql = "SELECT model, added, scored, failed, parked_until, parked_reason,
                              count(*) FILTER (WHERE place = 0), count(*) FILTER (WHERE place = 1),
                              count(*) FILTER (WHERE place = 2),
                              coalesce(sum(dialogues) FILTER (WHERE place < 2), 0)
                       FROM models LEFT JOIN units USING (run, model)
                       WHERE run = ? GROUP BY model ORDER BY model";
            let mut query = file.prepare_cached(sql)?;
            let rows = query.query_map([at.run.as_str()], |row| {
                let (added, until_ms): (u64, u64) = (row.get(1)?, row.get(4)?);
                let reason: String = row.get(5)?;
                let (pending, leased, dead) = (row.get(6)?, row.get(7)?, row.get(8)?);
                Ok(ModelCounts {
                    model: ModelLabel::new(row.get::<_, String>(0)?),
                    added,
                    pending,
                    leased,
                    dead,
                    done: added - pending - leased - dead,
                    backlog_dialogues: row.get(9)?,
                    scored: row.get(2)?,
                    failed: row.get(3)?,
                    parked: (until_ms > now_ms).then_some(Parked { reason, until_ms }),
                })
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    fn dead_letters(&mut self, at: &RunRef, after: Option<UnitId>, limit: u32) -> Result<Vec<DeadLetter>> {
        let lowest = after.map_or(0, |after| after.0 + 1);
        self.transact_at(at, |file, _| units::dead_letters(file, at, lowest, limit))
    }

    fn dead_letter(&mut self, at: &RunRef, unit: UnitId) -> Result<Option<DeadLetter>> {
        let found = self.transact_at(at, |file, _| units::dead_letters(file, at, unit.0, 1))?;
        Ok(found.into_iter().find(|letter| letter.unit == unit))
    }

    fn requeue(&mut self, at: &RunRef, ids: &[UnitId]) -> Result<u64> {
        self.transact_at(at, |file, _| units::requeue(file, at, ids))
    }

    fn park(&mut self, at: &RunRef, model: &ModelLabel, until_ms: u64, reason: &str) -> Result<()> {
        self.transact_at(at, |file, _| {
            know(file, &at.run, model)?;
            let sql = "UPDATE models SET parked_until = ?, parked_reason = ? WHERE run = ? AND model = ?";
            file.prepare_cached(sql)?.execute(params![until_ms, reason, at.run.as_str(), model.as_str()])?;
            Ok(())
        })
    }

    fn unpark(&mut self, at: &RunRef, model: &ModelLabel) -> Result<()> {
        self.transact_at(at, |file, _| {
            let sql = "UPDATE models SET parked_until = 0, parked_reason = '' WHERE run = ? AND model = ?";
            file.prepare_cached(sql)?.execute([at.run.as_str(), model.as_str()])?;
            Ok(())
        })
    }

    fn heartbeat(&mut self, now_ms: u64, worker: &WorkerId, info: &[u8], ttl: Duration) -> Result<Orders> {
        self.transact(|file| {
            drop_expired_workers(file, now_ms)?;
            let sql = "INSERT INTO workers (worker, info, seen_ms, expires_ms) VALUES (?, ?, ?, ?)
                       ON CONFLICT DO UPDATE SET info = excluded.info, seen_ms = excluded.seen_ms,
                                                 expires_ms = excluded.expires_ms
                       RETURNING draining";
            let parameters = params![worker.as_str(), info, now_ms, now_ms + millis(ttl)];
            let drain = file.prepare_cached(sql)?.query_row(parameters, |row| row.get(0))?;
            // Too many: the transaction ends here and takes the registration back.
            at_most("registered workers", MAX_WORKERS, count(file, "SELECT count(*) FROM workers")?)?;
            Ok(Orders { drain })
        })
    }

    fn workers(&mut self, now_ms: u64) -> Result<Vec<WorkerEntry>> {
        let sql = "SELECT worker, info, seen_ms, draining FROM workers WHERE expires_ms > ? ORDER BY worker";
        let mut query = self.file.prepare_cached(sql)?;
        let rows = query.query_map([now_ms], |row| {
            let worker = WorkerId::new(row.get::<_, String>(0)?);
            Ok(WorkerEntry { worker, info: row.get(1)?, seen_ms: row.get(2)?, draining: row.get(3)? })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    fn drain_worker(&mut self, now_ms: u64, worker: &WorkerId) -> Result<bool> {
        self.transact(|file| {
            let sql = "UPDATE workers SET draining = 1 WHERE worker = ? AND expires_ms > ?";
            Ok(file.prepare_cached(sql)?.execute(params![worker.as_str(), now_ms])? > 0)
        })
    }

    fn deregister(&mut self, worker: &WorkerId) -> Result<()> {
        self.transact(|file| {
            file.prepare_cached("DELETE FROM workers WHERE worker = ?")?.execute([worker.as_str()])?;
            Ok(())
        })
    }

    fn take_rate(&mut self, now_ms: u64, bucket: &str, rate: Rate, permits: u32) -> Result<RateReply> {
        self.transact(|file| {
            let now_us = now_ms * 1_000;
            // A full bucket is the same as one that was never used.
            file.prepare_cached("DELETE FROM rates WHERE full_at_us <= ?")?.execute([now_us])?;
            let mut query = file.prepare_cached("SELECT full_at_us FROM rates WHERE bucket = ?")?;
            let full_at_us = query.query_row([bucket], |row| row.get(0)).optional()?.unwrap_or(0);
            let (reply, full_at_us) = rate.take(full_at_us, now_us, permits);
            let sql = "INSERT OR REPLACE INTO rates VALUES (?, ?)";
            file.prepare_cached(sql)?.execute(params![bucket, full_at_us])?;
            at_most("rate buckets in use", MAX_RATE_BUCKETS, count(file, "SELECT count(*) FROM rates")?)?;
            Ok(reply)
        })
    }
}
