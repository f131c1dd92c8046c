//! Converts arguments and answers of scripts.

use std::time::Duration;

use ::redis::{Script, ScriptInvocation};
use domain::{ModelLabel, RunId};

use super::keys;
use super::scripts::ScriptAnswer;
use crate::commit::Committed;
use crate::error::Result;
use crate::run::{RunRef, RunStatus, stored_state};
use crate::unit::{Death, Fence, Lease, Suspect, Transition, UnitId};

pub(super) const STATUS_FIELDS: &[&str] =
    &["generation", "plan_hash", "state", "next_unit", "lease_ms", "max_strikes"];

pub(super) fn read_status(run: &RunId, answer: &mut ScriptAnswer) -> Result<RunStatus> {
    Ok(RunStatus {
        at: RunRef { run: run.clone(), generation: answer.read()? },
        plan_hash: answer.read()?,
        state: stored_state(&answer.read::<String>()?)?,
        next_unit: UnitId(answer.read()?),
        lease_for: Duration::from_millis(answer.read()?),
        max_strikes: answer.read()?,
    })
}

/// A script call on a run, in the caller's generation.
pub(super) fn call<'s>(script: &'s Script, at: &RunRef) -> ScriptInvocation<'s> {
    let mut call = script.key(keys::run(&at.run));
    call.arg(at.generation);
    call
}

/// Adds the fences of this generation; others are stale anyway, and get 0 as answer.
pub(super) fn add_fences(call: &mut ScriptInvocation<'_>, at: &RunRef, fences: &[Fence]) {
    for fence in fences.iter().filter(|fence| fence.generation == at.generation) {
        call.arg(fence.model.as_str()).arg(fence.unit.0).arg(fence.attempt);
    }
}

pub(super) fn transitions(
    mut answer: ScriptAnswer,
    at: &RunRef,
    fences: &[Fence],
) -> Result<Vec<Transition>> {
    let transition = |fence: &Fence| {
        let held = fence.generation == at.generation && answer.read::<u8>()? == 1;
        Ok(if held { Transition::Applied } else { Transition::Stale })
    };
    fences.iter().map(transition).collect()
}

pub(super) fn read_lease(answer: &mut ScriptAnswer, at: &RunRef, deadline_ms: u64) -> Result<Lease> {
    let fence = Fence {
        generation: at.generation,
        model: ModelLabel::new(answer.read::<String>()?),
        unit: UnitId(answer.read()?),
        attempt: answer.read()?,
    };
    let (dialogues, payload, suspect) = (answer.read()?, answer.read()?, answer.read::<u8>()? == 1);
    Ok(Lease { fence, dialogues, payload, suspect, deadline_ms })
}

pub(super) fn write_record(record: Committed) -> String {
    format!("{}{}", if record.scored { 's' } else { 'f' }, record.ticket)
}

pub(super) fn read_record(answer: &mut ScriptAnswer) -> Result<Option<Committed>> {
    let text: String = answer.read()?;
    if text.is_empty() {
        return Ok(None);
    }
    let (kind, ticket) = text.split_at_checked(1).unwrap_or_default();
    match (kind, ticket.parse()) {
        ("s", Ok(ticket)) => Ok(Some(Committed { scored: true, ticket })),
        ("f", Ok(ticket)) => Ok(Some(Committed { scored: false, ticket })),
        _ => Err(answer.corrupt(&format!("has `{text}`, which is not a record"))),
    }
}

pub(super) fn read_suspect(answer: &mut ScriptAnswer) -> Result<Suspect> {
    let unit = UnitId(answer.read()?);
    let model = ModelLabel::new(answer.read::<String>()?);
    let (dialogues, payload) = (answer.read()?, answer.read()?);
    let lines: String = answer.read()?;
    let death = |line| {
        serde_json::from_str(line).map_err(|error| answer.corrupt(&format!("has a bad death: {error}")))
    };
    let deaths = lines.lines().map(death).collect::<Result<Vec<Death>>>()?;
    Ok(Suspect { unit, model, dialogues, payload, deaths, dead: answer.read::<u8>()? == 1 })
}
