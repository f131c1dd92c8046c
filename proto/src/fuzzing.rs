//! Reads arbitrary bytes as every message: called by the fuzz target of the wire and by the property tests.

use domain::exchange::{Delivery, Orders, RateBudget, Registered, Registration, Report, RunMaterial};
use prost::Message;

use crate::wire;

/// Reads bytes as every message; returns as how many they could be read.
///
/// # Panics
/// A message that was read is another one after it was written and read again.
pub fn read_as_anything(bytes: &[u8]) -> usize {
    one_way::<(RateBudget, u32), wire::RateRequest>(bytes)
        + one_way::<RunMaterial, wire::RunMaterial>(bytes)
        + both_ways::<Registration, wire::Registration>(bytes)
        + both_ways::<Registered, wire::Registered>(bytes)
        + both_ways::<Report, wire::Report>(bytes)
        + both_ways::<Orders, wire::Orders>(bytes)
        + both_ways::<Delivery, wire::Delivery>(bytes)
}

fn read<D: TryFrom<W>, W: Message + Default>(bytes: &[u8]) -> Option<D> {
    W::decode(bytes).ok().and_then(|message| D::try_from(message).ok())
}

fn one_way<D: TryFrom<W>, W: Message + Default>(bytes: &[u8]) -> usize {
    usize::from(read::<D, W>(bytes).is_some())
}

fn both_ways<D, W>(bytes: &[u8]) -> usize
where
    D: Clone + std::fmt::Debug + TryFrom<W>,
    W: Message + Default + From<D>,
{
    let Some(value) = read::<D, W>(bytes) else { return 0 };
    let again = read::<D, W>(&W::from(value.clone()).encode_to_vec());
    // As text: a number that is none does not equal itself.
    assert_eq!(format!("{again:?}"), format!("{:?}", Some(value)));
    1
}
