//! Something that a worker can ask.

use domain::exchange::{Offer, Serves};

use super::on_wire::OnWire;
use super::{ConversionError, required};
use crate::wire;

impl From<Offer> for wire::Offer {
    fn from(offer: Offer) -> Self {
        let serves = match offer.serves {
            Serves::Model(name) => wire::offer::Serves::Model(name),
            Serves::Connector(connector) => wire::offer::Serves::Connector(connector.to_wire()),
        };
        Self { serves: Some(serves), room: offer.room }
    }
}

impl TryFrom<wire::Offer> for Offer {
    type Error = ConversionError;

    fn try_from(offer: wire::Offer) -> Result<Self, ConversionError> {
        let serves = match offer.serves {
            None => return Err(ConversionError::Missing { field: "Offer.serves" }),
            Some(wire::offer::Serves::Model(name)) => Serves::Model(required("Offer.model", name)?),
            Some(wire::offer::Serves::Connector(number)) => {
                Serves::Connector(OnWire::from_wire("Offer.connector", number)?)
            }
        };
        Ok(Self { serves, room: offer.room })
    }
}

message!(Offer => Offer);
