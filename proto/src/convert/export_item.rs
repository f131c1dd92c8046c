//! One piece of an export.

use domain::control::ExportItem;

use super::{ConversionError, bytes, text};
use crate::wire;
use crate::wire::export_item::Item;

impl From<ExportItem> for wire::ExportItem {
    fn from(item: ExportItem) -> Self {
        let item = match item {
            ExportItem::Manifest(json) => Item::ManifestJson(bytes(&json)),
            ExportItem::Record { ticket, json } => {
                Item::Record(wire::ExportedRecord { ticket, json: bytes(&json) })
            }
        };
        Self { item: Some(item) }
    }
}

impl TryFrom<wire::ExportItem> for ExportItem {
    type Error = ConversionError;

    fn try_from(item: wire::ExportItem) -> Result<Self, ConversionError> {
        match item.item {
            None => Err(ConversionError::Missing { field: "ExportItem.item" }),
            Some(Item::ManifestJson(json)) => Ok(Self::Manifest(text("ExportItem.manifest_json", &json)?)),
            Some(Item::Record(record)) => {
                Ok(Self::Record { ticket: record.ticket, json: text("ExportedRecord.json", &record.json)? })
            }
        }
    }
}
