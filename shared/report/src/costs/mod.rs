//! What models cost: a table of prices, and the money that tokens and GPU hours come to.
//!
//! Pure: the text of the table in, money out. [`Prices::shipped`] is the table that comes with the program. A model without a
//! price costs an unknown amount, which is never shown as nothing; so does a model of whose dialogues no server counted tokens.

mod money;
mod prices;

pub use money::Money;
pub use prices::{GpuPrice, InvalidPrices, Prices, TokenPrice};
