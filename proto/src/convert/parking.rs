//! A model that cannot be asked for a while.

use domain::exchange::Parking;
use domain::{ModelLabel, RunId};

use super::time::{duration_from_wire, duration_to_wire};
use super::{ConversionError, required};
use crate::wire;

impl From<Parking> for wire::Parking {
    fn from(parking: Parking) -> Self {
        Self {
            run: parking.run.to_string(),
            model: parking.model.to_string(),
            parked_for: Some(duration_to_wire(parking.parked_for)),
            reason: parking.reason,
        }
    }
}

impl TryFrom<wire::Parking> for Parking {
    type Error = ConversionError;

    fn try_from(parking: wire::Parking) -> Result<Self, ConversionError> {
        Ok(Self {
            run: RunId::new(required("Parking.run", parking.run)?),
            model: ModelLabel::new(required("Parking.model", parking.model)?),
            parked_for: duration_from_wire("Parking.parked_for", parking.parked_for)?,
            reason: parking.reason,
        })
    }
}
