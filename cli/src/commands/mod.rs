//! One file per command, or per family of small ones.

pub mod bundle;
pub mod compare;
pub mod fleet;
pub mod halu;
pub mod inputs;
pub mod launch;
pub mod moving;
pub mod pack;
pub mod pictures;
pub mod plan;
pub mod reevaluate;
pub mod rejudge;
pub mod report;
pub mod run;
pub mod runs;
pub mod simulate;
pub mod table;
pub mod verify;
