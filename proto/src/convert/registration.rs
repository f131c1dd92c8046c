//! A worker's first words and the answer to them.

use domain::WorkerId;
use domain::exchange::{Registered, Registration};

use super::time::{duration_from_wire, duration_to_wire};
use super::{ConversionError, required};
use crate::wire;

impl From<Registration> for wire::Registration {
    fn from(registration: Registration) -> Self {
        Self {
            worker: registration.worker.to_string(),
            kgfleet: registration.kgfleet,
            host: registration.host,
        }
    }
}

impl TryFrom<wire::Registration> for Registration {
    type Error = ConversionError;

    fn try_from(registration: wire::Registration) -> Result<Self, ConversionError> {
        Ok(Self {
            worker: WorkerId::new(required("Registration.worker", registration.worker)?),
            kgfleet: registration.kgfleet,
            host: registration.host,
        })
    }
}

impl From<Registered> for wire::Registered {
    fn from(registered: Registered) -> Self {
        Self { kgfleet: registered.kgfleet, report_every: Some(duration_to_wire(registered.report_every)) }
    }
}

impl TryFrom<wire::Registered> for Registered {
    type Error = ConversionError;

    fn try_from(registered: wire::Registered) -> Result<Self, ConversionError> {
        Ok(Self {
            kgfleet: registered.kgfleet,
            report_every: duration_from_wire("Registered.report_every", registered.report_every)?,
        })
    }
}
