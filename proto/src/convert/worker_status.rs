//! What a worker tells people about itself.

use domain::exchange::WorkerStatus;
use domain::reach::{KeyReach, Place, REACH_MAX, Reach};

use super::connector::{connector_from_wire, connector_to_wire};
use super::{ConversionError, required};
use crate::wire;

impl From<WorkerStatus> for wire::WorkerStatus {
    fn from(status: WorkerStatus) -> Self {
        Self {
            kgfleet: status.kgfleet,
            host: status.host,
            serves: status.serves,
            in_flight: status.in_flight,
            limit: status.limit,
            dialogues: status.dialogues,
            unacknowledged: status.unacknowledged,
            parked_records: status.parked_records,
            trouble: status.trouble,
            reach: status.reach.map(Into::into),
            lacks: status.lacks,
            sandbox: status.sandbox,
        }
    }
}

impl TryFrom<wire::WorkerStatus> for WorkerStatus {
    type Error = ConversionError;

    fn try_from(status: wire::WorkerStatus) -> Result<Self, ConversionError> {
        Ok(Self {
            kgfleet: status.kgfleet,
            host: status.host,
            serves: status.serves,
            in_flight: status.in_flight,
            limit: status.limit,
            dialogues: status.dialogues,
            unacknowledged: status.unacknowledged,
            parked_records: status.parked_records,
            trouble: status.trouble,
            reach: status.reach.map(Reach::try_from).transpose()?,
            lacks: status.lacks,
            sandbox: status.sandbox,
        })
    }
}

impl From<Reach> for wire::Reach {
    fn from(reach: Reach) -> Self {
        let key = |key: KeyReach| wire::KeyReach {
            name: key.name,
            connector: connector_to_wire(key.connector),
            places: texts(&key.places),
        };
        Self { keys: reach.keys.into_iter().map(key).collect(), places: texts(&reach.places) }
    }
}

impl TryFrom<wire::Reach> for Reach {
    type Error = ConversionError;

    fn try_from(reach: wire::Reach) -> Result<Self, ConversionError> {
        let key = |key: wire::KeyReach| {
            Ok(KeyReach {
                name: required("KeyReach.name", key.name)?,
                connector: connector_from_wire("KeyReach.connector", key.connector)?,
                places: places("KeyReach.places", &key.places)?,
            })
        };
        let keys = reach.keys.into_iter().take(REACH_MAX).map(key).collect::<Result<_, _>>()?;
        Ok(Self { keys, places: places("Reach.places", &reach.places)? })
    }
}

fn texts(places: &[Place]) -> Vec<String> {
    places.iter().map(ToString::to_string).collect()
}

fn places(field: &'static str, texts: &[String]) -> Result<Vec<Place>, ConversionError> {
    let place =
        |text: &String| Place::parse(text).map_err(|reason| ConversionError::Unreadable { field, reason });
    texts.iter().take(REACH_MAX).map(place).collect()
}
