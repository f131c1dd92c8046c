//! A unit with deaths of workers on its account.

use domain::WorkerId;
use domain::control::{DeadLetterView, StrikeView};

use super::time::{timestamp_from_wire, timestamp_to_wire};
use super::{ConversionError, all, every, required};
use crate::wire;

impl From<DeadLetterView> for wire::DeadLetter {
    fn from(view: DeadLetterView) -> Self {
        Self {
            unit: view.unit,
            dialogues: every(view.dialogues),
            strikes: every(view.strikes),
            suspect: view.suspect,
        }
    }
}

impl TryFrom<wire::DeadLetter> for DeadLetterView {
    type Error = ConversionError;

    fn try_from(letter: wire::DeadLetter) -> Result<Self, ConversionError> {
        Ok(Self {
            unit: letter.unit,
            dialogues: all(letter.dialogues)?,
            strikes: all(letter.strikes)?,
            suspect: letter.suspect,
        })
    }
}

impl From<StrikeView> for wire::Strike {
    fn from(view: StrikeView) -> Self {
        Self {
            worker: view.worker.to_string(),
            attempt: view.attempt,
            cause: view.cause,
            at: Some(timestamp_to_wire(view.at)),
        }
    }
}

impl TryFrom<wire::Strike> for StrikeView {
    type Error = ConversionError;

    fn try_from(strike: wire::Strike) -> Result<Self, ConversionError> {
        Ok(Self {
            worker: WorkerId::new(required("Strike.worker", strike.worker)?),
            attempt: strike.attempt,
            cause: strike.cause,
            at: timestamp_from_wire("Strike.at", strike.at)?,
        })
    }
}
