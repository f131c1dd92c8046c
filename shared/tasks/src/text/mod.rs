//! Text rules of Python's standard library that the published scores depend on, each in its own module.

pub mod difflib;
pub mod fences;
pub mod python;
pub mod unified_diff;
