//! What every command needs: arguments, output, exit codes.

pub mod arguments;
pub mod exit_code;
pub mod output;
pub mod runtime;
pub mod screen;
pub mod serving;
pub mod view;
