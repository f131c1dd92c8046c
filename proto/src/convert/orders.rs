//! What a worker is to do.

use domain::exchange::Orders;

use super::{ConversionError, all, every};
use crate::wire;

impl From<Orders> for wire::Orders {
    fn from(orders: Orders) -> Self {
        Self {
            grants: every(orders.grants),
            lost: every(orders.lost),
            noted: orders.noted,
            drain: orders.drain,
            superseded: orders.superseded.map(Into::into),
        }
    }
}

impl TryFrom<wire::Orders> for Orders {
    type Error = ConversionError;

    fn try_from(orders: wire::Orders) -> Result<Self, ConversionError> {
        Ok(Self {
            grants: all(orders.grants)?,
            lost: all(orders.lost)?,
            noted: orders.noted,
            drain: orders.drain,
            superseded: orders.superseded.map(TryInto::try_into).transpose()?,
        })
    }
}
