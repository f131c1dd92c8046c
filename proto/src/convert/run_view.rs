//! A run, its models and its cells as people see them.

use domain::control::{CellView, HistoryEntry, ModelView, Pace, RefusalView, RunView};
use domain::{FailureCause, Mean, ModelLabel, RunId, TaskLabel};

use super::failure_cause::{cause_from_wire, cause_to_wire};
use super::run_phase::{phase_from_wire, phase_to_wire};
use super::time::{timestamp_from_wire, timestamp_to_wire};
use super::{ConversionError, all, every, required};
use crate::wire;

impl From<RunView> for wire::RunView {
    fn from(view: RunView) -> Self {
        Self {
            run: view.run.to_string(),
            name: view.name,
            phase: phase_to_wire(view.phase),
            created_at: Some(timestamp_to_wire(view.created_at)),
            generation: view.generation,
            planned: view.planned,
            scored: view.scored,
            failed: view.failed,
            failures: every(view.failures),
            rate: view.rate,
            eta_s: view.eta_s,
            trouble: view.trouble,
            models: every(view.models),
            cells: every(view.cells),
            tokens_per_second: view.tokens_per_second,
            refusals: every(view.refusals),
            notes: view.notes,
            history: every(view.history),
        }
    }
}

impl TryFrom<wire::RunView> for RunView {
    type Error = ConversionError;

    fn try_from(view: wire::RunView) -> Result<Self, ConversionError> {
        Ok(Self {
            run: RunId::new(required("RunView.run", view.run)?),
            name: view.name,
            phase: phase_from_wire("RunView.phase", view.phase)?,
            created_at: timestamp_from_wire("RunView.created_at", view.created_at)?,
            generation: view.generation,
            planned: view.planned,
            scored: view.scored,
            failed: view.failed,
            failures: all(view.failures)?,
            rate: view.rate,
            eta_s: view.eta_s,
            trouble: view.trouble,
            models: all(view.models)?,
            cells: all(view.cells)?,
            tokens_per_second: view.tokens_per_second,
            refusals: all(view.refusals)?,
            notes: view.notes,
            history: all(view.history)?,
        })
    }
}

impl From<HistoryEntry> for wire::HistoryEntry {
    fn from(HistoryEntry { at, who, what }: HistoryEntry) -> Self {
        Self { at: Some(timestamp_to_wire(at)), who, what }
    }
}

impl TryFrom<wire::HistoryEntry> for HistoryEntry {
    type Error = ConversionError;

    fn try_from(entry: wire::HistoryEntry) -> Result<Self, ConversionError> {
        let at = timestamp_from_wire("HistoryEntry.at", entry.at)?;
        Ok(Self { at, who: entry.who, what: entry.what })
    }
}

impl From<(FailureCause, u64)> for wire::FailureCount {
    fn from((cause, dialogues): (FailureCause, u64)) -> Self {
        Self { cause: cause_to_wire(cause), dialogues }
    }
}

impl TryFrom<wire::FailureCount> for (FailureCause, u64) {
    type Error = ConversionError;

    fn try_from(count: wire::FailureCount) -> Result<Self, ConversionError> {
        Ok((cause_from_wire("FailureCount.cause", count.cause)?, count.dialogues))
    }
}

impl From<ModelView> for wire::ModelView {
    fn from(view: ModelView) -> Self {
        Self {
            model: view.model.to_string(),
            planned: view.planned,
            scored: view.scored,
            failed: view.failed,
            units_pending: view.units_pending,
            units_leased: view.units_leased,
            units_dead: view.units_dead,
            units_suspect: view.units_suspect,
            workers: view.workers,
            parked: view.parked,
            pace: Some(view.pace.into()),
            blocked: view.blocked,
            mean: Some(view.mean.into()),
        }
    }
}

impl TryFrom<wire::ModelView> for ModelView {
    type Error = ConversionError;

    fn try_from(view: wire::ModelView) -> Result<Self, ConversionError> {
        Ok(Self {
            model: ModelLabel::new(required("ModelView.model", view.model)?),
            planned: view.planned,
            scored: view.scored,
            failed: view.failed,
            units_pending: view.units_pending,
            units_leased: view.units_leased,
            units_dead: view.units_dead,
            units_suspect: view.units_suspect,
            workers: view.workers,
            parked: view.parked,
            pace: view.pace.map(Into::into).unwrap_or_default(),
            blocked: view.blocked,
            mean: view.mean.map(Into::into).unwrap_or_default(),
        })
    }
}

impl From<CellView> for wire::CellView {
    fn from(view: CellView) -> Self {
        Self {
            task: view.task.to_string(),
            model: view.model.to_string(),
            scored: view.scored,
            failed: view.failed,
            mean: view.mean,
            planned: view.planned,
            missing: view.missing,
        }
    }
}

impl TryFrom<wire::CellView> for CellView {
    type Error = ConversionError;

    fn try_from(view: wire::CellView) -> Result<Self, ConversionError> {
        Ok(Self {
            task: TaskLabel::new(required("CellView.task", view.task)?),
            model: ModelLabel::new(required("CellView.model", view.model)?),
            scored: view.scored,
            failed: view.failed,
            mean: view.mean,
            planned: view.planned,
            missing: view.missing,
        })
    }
}

impl From<Pace> for wire::Pace {
    fn from(pace: Pace) -> Self {
        Self { rate: pace.rate, tokens_per_second: pace.tokens_per_second, eta_s: pace.eta_s }
    }
}

impl From<wire::Pace> for Pace {
    fn from(pace: wire::Pace) -> Self {
        Self { rate: pace.rate, tokens_per_second: pace.tokens_per_second, eta_s: pace.eta_s }
    }
}

impl From<Mean> for wire::Mean {
    fn from(mean: Mean) -> Self {
        Self { value: mean.value, covered: mean.covered, planned: mean.planned }
    }
}

impl From<wire::Mean> for Mean {
    fn from(mean: wire::Mean) -> Self {
        Self { value: mean.value, covered: mean.covered, planned: mean.planned }
    }
}

impl From<RefusalView> for wire::Refusal {
    fn from(refusal: RefusalView) -> Self {
        Self {
            model: refusal.model.to_string(),
            cause: cause_to_wire(refusal.cause),
            message: refusal.message,
            dialogues: refusal.dialogues,
        }
    }
}

impl TryFrom<wire::Refusal> for RefusalView {
    type Error = ConversionError;

    fn try_from(refusal: wire::Refusal) -> Result<Self, ConversionError> {
        Ok(Self {
            model: ModelLabel::new(required("Refusal.model", refusal.model)?),
            cause: cause_from_wire("Refusal.cause", refusal.cause)?,
            message: refusal.message,
            dialogues: refusal.dialogues,
        })
    }
}
