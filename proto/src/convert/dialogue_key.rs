//! What identifies a dialogue.

use domain::{DialogueKey, ModelLabel, TaskLabel};

use super::{ConversionError, required};
use crate::wire;

impl From<DialogueKey> for wire::DialogueKey {
    fn from(key: DialogueKey) -> Self {
        Self { model: key.model.to_string(), task: key.task.to_string(), iteration: key.iteration }
    }
}

impl TryFrom<wire::DialogueKey> for DialogueKey {
    type Error = ConversionError;

    fn try_from(key: wire::DialogueKey) -> Result<Self, ConversionError> {
        Ok(Self {
            model: ModelLabel::new(required("DialogueKey.model", key.model)?),
            task: TaskLabel::new(required("DialogueKey.task", key.task)?),
            iteration: key.iteration,
        })
    }
}
