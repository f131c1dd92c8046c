//! A run to start. Its pack follows in chunks, see [`pack`](crate::pack).

use super::ConversionError;
use crate::wire;

impl From<&domain::control::Submission> for wire::SubmissionHead {
    fn from(submission: &domain::control::Submission) -> Self {
        Self {
            configuration_json: submission.configuration.to_string(),
            with_pack: submission.pack.is_some(),
            extends: String::new(),
        }
    }
}

/// The configuration of a submission.
pub(crate) fn configuration_from_wire(
    head: &wire::SubmissionHead,
) -> Result<serde_json::Value, ConversionError> {
    serde_json::from_str(&head.configuration_json).map_err(|e| ConversionError::Unreadable {
        field: "SubmissionHead.configuration_json",
        reason: e.to_string(),
    })
}
