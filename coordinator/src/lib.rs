//! The coordinating half of a run: what is to be asked, in which order, by whom.
//!
//! Reading order: [`configuration`] is what a user writes, [`plan`] cuts it into dialogues and units.

pub mod configuration;
pub mod plan;
