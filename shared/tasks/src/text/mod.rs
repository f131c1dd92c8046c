//! Text rules of Python's standard library on which the published scores depend, each in its own module: similarity
//! ([`difflib`], [`unified_diff`]), code blocks as a regular expression finds them ([`fences`]), lines, words and white
//! space ([`python`]).
//!
//! These functions know no tasks and accept any text. Their results must stay those of CPython 3.11, because scores
//! depend on them; the tests compare with its values.

pub mod difflib;
pub mod fences;
pub mod python;
pub mod unified_diff;
