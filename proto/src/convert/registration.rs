//! A worker's registration and the answer to it.

use domain::exchange::{NameTaken, Registered, Registration};
use domain::{InstanceId, WorkerId};

use super::time::{duration_from_wire, duration_to_wire};
use super::{ConversionError, required};
use crate::wire;

impl From<Registration> for wire::Registration {
    fn from(registration: Registration) -> Self {
        Self {
            worker: registration.worker.to_string(),
            instance: registration.instance.to_string(),
            predecessors: registration.predecessors.iter().map(ToString::to_string).collect(),
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
            instance: InstanceId::new(registration.instance),
            predecessors: registration.predecessors.into_iter().map(InstanceId::new).collect(),
            kgfleet: registration.kgfleet,
            host: registration.host,
        })
    }
}

impl From<Registered> for wire::Registered {
    fn from(registered: Registered) -> Self {
        Self {
            kgfleet: registered.kgfleet,
            report_every: Some(duration_to_wire(registered.report_every)),
            taken: registered.taken.map(Into::into),
        }
    }
}

impl TryFrom<wire::Registered> for Registered {
    type Error = ConversionError;

    fn try_from(registered: wire::Registered) -> Result<Self, ConversionError> {
        Ok(Self {
            kgfleet: registered.kgfleet,
            report_every: duration_from_wire("Registered.report_every", registered.report_every)?,
            taken: registered.taken.map(TryInto::try_into).transpose()?,
        })
    }
}

impl From<NameTaken> for wire::NameTaken {
    fn from(taken: NameTaken) -> Self {
        Self {
            instance: taken.instance.to_string(),
            host: taken.host,
            silent_for: Some(duration_to_wire(taken.silent_for)),
            free_in: Some(duration_to_wire(taken.free_in)),
        }
    }
}

impl TryFrom<wire::NameTaken> for NameTaken {
    type Error = ConversionError;

    fn try_from(taken: wire::NameTaken) -> Result<Self, ConversionError> {
        Ok(Self {
            instance: InstanceId::new(taken.instance),
            host: taken.host,
            silent_for: duration_from_wire("NameTaken.silent_for", taken.silent_for)?,
            free_in: duration_from_wire("NameTaken.free_in", taken.free_in)?,
        })
    }
}
