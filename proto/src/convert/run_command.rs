//! What may be asked of a run.

use domain::RunId;
use domain::control::RunCommand;

use super::{ConversionError, enumerated, required};
use crate::wire;

impl From<(&RunId, RunCommand)> for wire::CommandRequest {
    fn from((run, command): (&RunId, RunCommand)) -> Self {
        let command = match command {
            RunCommand::Pause => wire::RunCommand::Pause,
            RunCommand::Resume => wire::RunCommand::Resume,
            RunCommand::Cancel => wire::RunCommand::Cancel,
        };
        Self { run: run.to_string(), command: command.into() }
    }
}

impl TryFrom<wire::CommandRequest> for (RunId, RunCommand) {
    type Error = ConversionError;

    fn try_from(request: wire::CommandRequest) -> Result<Self, ConversionError> {
        let field = "CommandRequest.command";
        let command = match enumerated(field, request.command)? {
            wire::RunCommand::Unspecified => return Err(ConversionError::Missing { field }),
            wire::RunCommand::Pause => RunCommand::Pause,
            wire::RunCommand::Resume => RunCommand::Resume,
            wire::RunCommand::Cancel => RunCommand::Cancel,
        };
        Ok((RunId::new(required("CommandRequest.run", request.run)?), command))
    }
}
