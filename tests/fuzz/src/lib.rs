//! The fuzz targets, as plain functions: every parser of input from outside. None may panic, hang, or take more memory
//! than its input explains, and each checks what must hold for what it parsed. A target is added to [`TARGETS`] and
//! wrapped in `fuzz/`.
//!
//! `fuzz/` wraps them for libFuzzer and contains the corpus; the tests of this crate replay it on every change.

mod declared;
mod documents;
mod logs;

pub use declared::{shapes, task_file};
pub use documents::{evaluator_protocol, fences, result_files, sparql, sse, turtle, wire};
pub use logs::log_frames;

/// A fuzz target.
pub type Target = fn(&[u8]);

/// All targets by name.
pub const TARGETS: [(&str, Target); 10] = [
    ("log_frames", log_frames),
    ("wire", wire),
    ("result_files", result_files),
    ("sse", sse),
    ("fences", fences),
    ("evaluator_protocol", evaluator_protocol),
    ("turtle", turtle),
    ("sparql", sparql),
    ("shapes", shapes),
    ("task_file", task_file),
];
