//! What every command needs: arguments, environment, output, exit codes, files that are replaced, and the completion of typed words (`completion`,
//! `shells`).

pub mod arguments;
pub mod completion;
pub mod environment;
pub mod exit_code;
pub mod output;
pub mod pager;
pub mod runtime;
pub mod screen;
pub mod shells;
pub mod view;
pub mod whole_file;
