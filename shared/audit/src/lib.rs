//! The audit log: who did what at a coordinator, in files that outlive the runs they are about.
//!
//! An act is written and synced before it is done; one that cannot be written is not done. Calls that are only counted,
//! such as refused ones, stand in files of their own, so that a flood of them never pushes out an act.

mod entry;
mod log;
mod read;
mod repeats;
mod series;

pub use entry::{AuditEntry, Deed};
pub use log::{AuditError, AuditLog};
pub use read::{AuditReading, read_all};
pub use series::{FILE_BYTES_MAX, FILES_MAX};
