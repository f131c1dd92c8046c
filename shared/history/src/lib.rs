//! What happened to units and records, and whether it was right.
//!
//! [`event`] says what coordinators note, [`observed`] notes what a queue was asked and what it answered, [`file`] keeps
//! the notes beside the runs, and [`check`] holds them against the record log: a pure function, which finds records that
//! were acknowledged and lost, dialogues that count twice, stale fences that were honoured, units that two workers had at
//! once, and winners that changed.

pub mod check;
pub mod event;
pub mod file;
pub mod observed;

pub use check::{CheckReport, Finding, FindingKind, Kept, check};
pub use event::{Event, LeaseEnding, Noted, Winners};
pub use file::{EventLog, Events};
pub use observed::Observed;
