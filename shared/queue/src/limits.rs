//! Every limit of the queue, with its unit, and the checks that enforce it before a call reaches a store. All stores
//! refuse the same input with the same message, because they all use these checks.

use std::time::Duration;

use domain::text::label_problem;
use domain::{InstanceId, ModelLabel, RunId, WorkerId};

use crate::error::{Error, Result};
use crate::run::RunSpec;
use crate::unit::{Fence, LeaseRequest, NewUnit, UnitId};
use crate::worker::{Claim, RateLimit};

/// Bytes of a run's or worker's name, or of a rate bucket's. Labels have [their own limit](domain::text::LABEL_BYTES_MAX).
pub const NAME_BYTES_MAX: usize = 256;
/// Bytes of one unit's payload. Payloads name dialogues; they do not contain prompts.
pub const PAYLOAD_BYTES_MAX: usize = 64 * 1024;
/// Highest unit id and generation: the largest number that is exact in Lua, whose numbers are doubles.
pub const NUMBER_MAX: u64 = (1 << 53) - 1;
pub const DIALOGUES_PER_UNIT_MAX: u32 = 1_000;
/// Units of one `add_units` call: about 1 MB of Redis traffic at usual payloads.
pub const UNITS_PER_ADD_MAX: usize = 1_000;
/// Units of one `lease` call.
pub const UNITS_PER_LEASE_MAX: u32 = 256;
/// Models named in one call.
pub const MODELS_PER_CALL_MAX: usize = 256;
/// Fences, or unit ids, of one call.
pub const FENCES_PER_CALL_MAX: usize = 4_096;
/// Leases taken over per model in one `reap` call, so that no call holds the server for long.
pub const REAPED_PER_MODEL_MAX: usize = 256;
pub const DEAD_LETTERS_PER_PAGE_MAX: u32 = 256;
/// Maximum of [`RunSpec::max_strikes`].
pub const STRIKES_MAX: u32 = 100;
/// Bytes kept of the cause of a death or the reason of a parking; the rest is cut.
pub const CAUSE_BYTES_MAX: usize = 1_024;
/// Workers registered at a time.
pub const WORKERS_MAX: usize = 10_000;
/// Workers of one identity registered at a time: whoever has one token does not take the places of all others.
pub const WORKERS_PER_IDENTITY_MAX: usize = 4_000;
/// Earlier processes that a worker may name as its predecessors.
pub const PREDECESSORS_MAX: usize = 16;
/// Bytes of a worker's status.
pub const WORKER_INFO_BYTES_MAX: usize = 16 * 1024;
/// Releases of which something is known of their pools at a time.
pub const RELEASES_MAX: usize = 16;
/// Bytes that are kept of the pools of one release.
pub const POOLS_INFO_BYTES_MAX: usize = 512 * 1024;
/// Rate buckets in use at a time in the memory store; in Redis each expires by itself.
pub const RATE_BUCKETS_MAX: usize = 1_024;
/// Calls per minute of one rate bucket.
pub const RATE_PER_MINUTE_MAX: u32 = 6_000_000;
/// Shortest lease. With a shorter one, a renewal's round trip would take longer than the lease.
pub const MIN_LEASE: Duration = Duration::from_millis(50);
/// Longest lease, parking and time to live of a worker's registration, or of what is said of pools.
pub const DURATION_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// Refuses `got` above `limit`.
pub(crate) fn at_most(what: &'static str, limit: usize, got: usize) -> Result<()> {
    if got > limit {
        return Err(Error::Invalid { what, why: format!("at most {limit} are allowed, {got} were given") });
    }
    Ok(())
}

fn within(what: &'static str, low: Duration, high: Duration, got: Duration) -> Result<()> {
    if got < low || got > high {
        return Err(Error::Invalid { what, why: format!("{low:?} to {high:?} is allowed, not {got:?}") });
    }
    Ok(())
}

/// Checks a name that becomes part of a key: not empty, bounded, without control characters.
pub(crate) fn check_name(what: &'static str, name: &str) -> Result<()> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control) {
        let why = format!(
            "`{}` is not 1 to {NAME_BYTES_MAX} bytes without control characters",
            name.escape_debug()
        );
        return Err(Error::Invalid { what, why });
    }
    Ok(())
}

/// A run's name is the hash tag of its Redis keys, so it must not contain a brace: `{` or `}` would end the tag early
/// and spread the run over several cluster nodes, where no script is atomic.
pub(crate) fn check_run(run: &RunId) -> Result<()> {
    check_name("run id", run.as_str())?;
    if run.as_str().contains(['{', '}']) {
        return Err(Error::Invalid { what: "run id", why: format!("`{run}` contains a brace") });
    }
    Ok(())
}

pub(crate) fn check_worker(worker: &WorkerId) -> Result<()> {
    check_name("worker id", worker.as_str())
}

pub(crate) fn check_model(model: &ModelLabel) -> Result<()> {
    // A label that can be planned can be queued.
    label_problem(model.as_str()).map_or(Ok(()), |why| Err(Error::Invalid { what: "model label", why }))
}

pub(crate) fn check_models(models: &[ModelLabel]) -> Result<()> {
    at_most("models of a call", MODELS_PER_CALL_MAX, models.len())?;
    models.iter().try_for_each(check_model)
}

pub(crate) fn check_spec(spec: &RunSpec) -> Result<()> {
    check_run(&spec.run)?;
    check_name("plan hash", &spec.plan_hash)?;
    check_number("generation", spec.generation)?;
    within("lease duration", MIN_LEASE, DURATION_MAX, spec.lease_for)?;
    if spec.max_strikes == 0 || spec.max_strikes > STRIKES_MAX {
        let why = format!("1 to {STRIKES_MAX} is allowed, not {}", spec.max_strikes);
        return Err(Error::Invalid { what: "strikes", why });
    }
    Ok(())
}

pub(crate) fn check_units(units: &[NewUnit]) -> Result<()> {
    at_most("units of a call", UNITS_PER_ADD_MAX, units.len())?;
    for unit in units {
        check_model(&unit.model)?;
        at_most("bytes of a payload", PAYLOAD_BYTES_MAX, unit.payload.len())?;
        at_most("dialogues of a unit", DIALOGUES_PER_UNIT_MAX as usize, unit.dialogues as usize)?;
        if unit.dialogues == 0 {
            return Err(Error::Invalid {
                what: "dialogues of a unit",
                why: "a unit holds at least one".into(),
            });
        }
    }
    Ok(())
}

pub(crate) fn check_lease(ask: &LeaseRequest) -> Result<()> {
    check_worker(&ask.worker)?;
    check_models(&ask.models)?;
    at_most("units of a lease call", UNITS_PER_LEASE_MAX as usize, ask.max_units as usize)
}

pub(crate) fn check_fences(fences: &[Fence]) -> Result<()> {
    at_most("fences of a call", FENCES_PER_CALL_MAX, fences.len())?;
    fences.iter().try_for_each(|fence| {
        check_model(&fence.model)?;
        check_number("unit id", fence.unit.0)
    })
}

pub(crate) fn check_unit_ids(units: &[UnitId]) -> Result<()> {
    at_most("units of a call", FENCES_PER_CALL_MAX, units.len())?;
    units.iter().try_for_each(|unit| check_number("unit id", unit.0))
}

fn check_number(what: &'static str, number: u64) -> Result<()> {
    if number > NUMBER_MAX {
        return Err(Error::Invalid { what, why: format!("at most {NUMBER_MAX} is allowed, not {number}") });
    }
    Ok(())
}

pub(crate) fn check_page(limit: u32) -> Result<()> {
    at_most("dead letters of a page", DEAD_LETTERS_PER_PAGE_MAX as usize, limit as usize)
}

pub(crate) fn check_parking(model: &ModelLabel, parked_for: Duration) -> Result<()> {
    check_model(model)?;
    within("parking", Duration::from_millis(1), DURATION_MAX, parked_for)
}

/// The id of a worker's process; the empty one is allowed.
pub(crate) fn check_instance(instance: &InstanceId) -> Result<()> {
    if instance.as_str().is_empty() { Ok(()) } else { check_name("instance id", instance.as_str()) }
}

pub(crate) fn check_heartbeat(worker: &WorkerId, claim: &Claim, info: &[u8], ttl: Duration) -> Result<()> {
    check_worker(worker)?;
    check_instance(&claim.instance)?;
    at_most("predecessors of a worker", PREDECESSORS_MAX, claim.predecessors.len())?;
    claim.predecessors.iter().try_for_each(check_instance)?;
    if !claim.identity.is_empty() {
        check_name("identity", &claim.identity)?;
    }
    at_most("bytes of a worker's info", WORKER_INFO_BYTES_MAX, info.len())?;
    within("time to live of a registration", MIN_LEASE, DURATION_MAX, ttl)
}

pub(crate) fn check_pools(release: &str, info: &[u8], ttl: Duration) -> Result<()> {
    check_name("release", release)?;
    at_most("bytes about pools", POOLS_INFO_BYTES_MAX, info.len())?;
    within("time to live of what is said of pools", MIN_LEASE, DURATION_MAX, ttl)
}

pub(crate) fn check_rate(bucket: &str, rate: RateLimit, permits: u32) -> Result<()> {
    check_name("rate bucket", bucket)?;
    if rate.per_minute == 0 || rate.per_minute > RATE_PER_MINUTE_MAX {
        let why = format!("1 to {RATE_PER_MINUTE_MAX} is allowed, not {}", rate.per_minute);
        return Err(Error::Invalid { what: "calls per minute", why });
    }
    if permits == 0 || permits > rate.burst {
        let why = format!("1 to the burst of {} can ever be granted, not {permits}", rate.burst);
        return Err(Error::Invalid { what: "permits of a call", why });
    }
    Ok(())
}

/// The error for one worker more than [`WORKERS_MAX`].
pub(crate) fn workers_full() -> Error {
    Error::WorkersFull { why: format!("{WORKERS_MAX} are registered") }
}

/// The error for one worker more than [`WORKERS_PER_IDENTITY_MAX`].
pub(crate) fn identity_full() -> Error {
    Error::WorkersFull { why: format!("{WORKERS_PER_IDENTITY_MAX} of the same identity are registered") }
}

/// Cuts the text at a character boundary to [`CAUSE_BYTES_MAX`].
pub(crate) fn shorten(text: &str) -> &str {
    let mut end = text.len().min(CAUSE_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_cut_between_characters() {
        let long = "é".repeat(CAUSE_BYTES_MAX);
        assert_eq!(shorten(&long).len(), CAUSE_BYTES_MAX);
        assert_eq!(shorten("short"), "short");
        assert_eq!(shorten(&format!("x{long}")).len(), CAUSE_BYTES_MAX - 1);
    }

    #[test]
    fn a_brace_in_a_run_id_is_refused_with_its_reason() {
        let refused = check_run(&RunId::new("a}b")).unwrap_err().to_string();
        assert!(refused.contains("run id") && refused.contains("brace"), "{refused}");
        check_run(&RunId::new("2026-11-21-quick")).unwrap();
    }
}
