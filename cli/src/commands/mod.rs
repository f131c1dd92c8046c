//! One file per verb.

pub mod reevaluate;
