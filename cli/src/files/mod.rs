//! Files that commands read and write.

pub mod bundle_layout;
pub mod copy;
pub mod export;
pub mod inputs;
pub mod judged;
pub mod new_file;
pub mod prices;
pub mod tables;
