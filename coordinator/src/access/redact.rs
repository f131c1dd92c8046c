//! Exports for callers who may not read protected texts.

use domain::Record;
use domain::control::ExportItem;
use results::RunManifest;
use results::export::jsonl;

use crate::benchmarks::copy::PipelineCopy;
use crate::errors::{Result, internal};

/// An item of an export without protected texts. `protected` is set from the run's manifest, which comes
/// first.
///
/// Items that cannot be parsed are not passed on.
pub(crate) fn item(item: ExportItem, protected: &mut bool) -> Result<ExportItem> {
    match item {
        // A pipeline, which has no texts.
        ExportItem::Manifest(json) if PipelineCopy::read(&json).is_some() => Ok(ExportItem::Manifest(json)),
        ExportItem::Manifest(json) => {
            let manifest: RunManifest = serde_json::from_str(&json).map_err(internal)?;
            *protected = manifest.protected;
            Ok(ExportItem::Manifest(json))
        }
        ExportItem::Record { ticket, json } if *protected => {
            let mut record: Record = serde_json::from_str(&json).map_err(internal)?;
            jsonl::redact(&mut record);
            let json = serde_json::to_string(&record).map_err(internal)?.into();
            Ok(ExportItem::Record { ticket, json })
        }
        record @ ExportItem::Record { .. } => Ok(record),
    }
}
