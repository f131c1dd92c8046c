//! What every command needs: arguments, environment, output, exit codes.

pub mod arguments;
pub mod environment;
pub mod exit_code;
pub mod output;
pub mod pager;
pub mod runtime;
pub mod screen;
pub mod serving;
pub mod view;
