//! Text rules of Python's standard library on which the published scores depend, each in its own module.

pub mod difflib;
pub mod fences;
pub mod python;
pub mod unified_diff;
