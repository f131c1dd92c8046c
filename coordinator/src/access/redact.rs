//! What callers see who may not read protected texts.

use domain::control::{BenchmarkView, ExportItem, WorkerView};
use domain::redaction;
use domain::{FailureCause, Record, RunId};
use results::RunManifest;

use crate::errors::{Result, internal};

/// An item of an export without protected texts. `protected` is set from the manifest of a run, which comes before its
/// records.
///
/// Items that cannot be parsed are not passed on.
pub(crate) fn item(item: ExportItem, protected: &mut bool) -> Result<ExportItem> {
    match item {
        // Documents have no texts.
        documents @ ExportItem::Documents(_) => Ok(documents),
        ExportItem::Manifest(json) => {
            let manifest: RunManifest = serde_json::from_str(&json).map_err(internal)?;
            *protected = manifest.protected;
            Ok(ExportItem::Manifest(json))
        }
        ExportItem::Record(json) if *protected => {
            let mut record: Record = serde_json::from_str(&json).map_err(internal)?;
            redaction::redact(&mut record);
            Ok(ExportItem::Record(serde_json::to_string(&record).map_err(internal)?.into()))
        }
        record @ ExportItem::Record(_) => Ok(record),
    }
}

/// A view without the words of servers, who may repeat what they were asked. Counts, causes and our own words stay.
pub(crate) fn view(view: &mut BenchmarkView) {
    for refusal in &mut view.refusals {
        redaction::redact_text(&mut refusal.message);
    }
    for model in &mut view.models {
        model.parked.iter_mut().for_each(reason);
        model.blocked.iter_mut().for_each(reason);
    }
    for pool in &mut view.pools {
        pool.last_failure.iter_mut().chain(&mut pool.not_starting).for_each(redaction::redact_text);
    }
}

/// Whether a view has words of servers at all.
pub(crate) fn has_words(view: &BenchmarkView) -> bool {
    !view.refusals.is_empty()
        || view.models.iter().any(|model| model.parked.is_some() || model.blocked.is_some())
        || view.pools.iter().any(|pool| pool.last_failure.is_some() || pool.not_starting.is_some())
}

/// A worker without what servers said to it about runs with protected exercises.
pub(crate) fn worker(view: &mut WorkerView, is_protected: impl Fn(&RunId) -> bool) {
    if !view.status.not_asked.iter().any(|known| is_protected(&known.run)) {
        return;
    }
    let mut status = (*view.status).clone();
    status
        .not_asked
        .iter_mut()
        .filter(|known| is_protected(&known.run))
        .for_each(|known| reason(&mut known.reason));
    view.status = status.into();
}

/// Takes from the reason why a model is not asked what follows its cause. A reason without a cause is in our own words, but
/// for one that says no more than that the model is parked.
fn reason(text: &mut String) {
    let after = |word: &str| text.find(word).map(|at| at + word.len());
    let causes = FailureCause::ALL.into_iter().filter_map(|cause| after(&format!("{}: ", cause.as_str())));
    let Some(end) = causes.min().or_else(|| after("parked: ")) else { return };
    let mut said = text.split_off(end);
    redaction::redact_text(&mut said);
    text.push_str(&said);
}
