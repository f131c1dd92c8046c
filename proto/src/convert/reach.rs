//! What a worker may contact.

use domain::reach::{KeyReach, Place, REACH_MAX, Reach};

use super::on_wire::OnWire;
use super::{ConversionError, required};
use crate::wire;

/// At most [`REACH_MAX`] keys, and as many places of each, are read.
impl OnWire<wire::Reach> for Reach {
    fn to_wire(self) -> wire::Reach {
        let key = |key: KeyReach| wire::KeyReach {
            name: key.name,
            connector: key.connector.to_wire(),
            places: texts(&key.places),
        };
        wire::Reach { keys: self.keys.into_iter().map(key).collect(), places: texts(&self.places) }
    }

    fn from_wire(_: &'static str, reach: wire::Reach) -> Result<Self, ConversionError> {
        let key = |key: wire::KeyReach| {
            Ok(KeyReach {
                name: required("KeyReach.name", key.name)?,
                connector: OnWire::from_wire("KeyReach.connector", key.connector)?,
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
