//! One piece of an export.

use domain::control::ExportItem;

use super::ConversionError;
use super::on_wire::OnWire;
use crate::wire;
use crate::wire::export_item::Item;

impl From<ExportItem> for wire::ExportItem {
    fn from(item: ExportItem) -> Self {
        let item = match item {
            ExportItem::Documents(json) => Item::DocumentsJson(json.to_wire()),
            ExportItem::Manifest(json) => Item::ManifestJson(json.to_wire()),
            ExportItem::Record { ticket, json } => {
                Item::Record(wire::ExportedRecord { ticket, json: json.to_wire() })
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
            Some(Item::DocumentsJson(json)) => {
                Ok(Self::Documents(OnWire::from_wire("ExportItem.documents_json", json)?))
            }
            Some(Item::ManifestJson(json)) => {
                Ok(Self::Manifest(OnWire::from_wire("ExportItem.manifest_json", json)?))
            }
            Some(Item::Record(wire::ExportedRecord { ticket, json })) => {
                Ok(Self::Record { ticket, json: OnWire::from_wire("ExportedRecord.json", json)? })
            }
        }
    }
}
