//! Files that commands read and write.

pub mod compared;
pub mod exercises;
pub mod export;
pub mod inputs;
pub mod judged;
pub mod tables;
