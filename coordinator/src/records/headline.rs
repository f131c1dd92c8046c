//! What tables keep of an outcome.

use domain::FailureCause;
use results::log::OutcomeHead;
use tasks::TaskClass;

/// The headline score, which scores may lack, or why there are none.
pub(crate) fn outcome(head: &OutcomeHead, class: TaskClass) -> Result<Option<f64>, FailureCause> {
    match head {
        OutcomeHead::Scored(scores) => Ok(class.headline_of(scores)),
        OutcomeHead::Unscored { cause, .. } | OutcomeHead::Failed { cause, .. } => Err(*cause),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_missing_headline_is_no_zero_and_a_failure_keeps_its_cause() {
        let class = TaskClass::resolve("RdfFriendCount", "4.4").unwrap();
        let scored =
            |scores: serde_json::Value| OutcomeHead::Scored(scores.as_object().cloned().unwrap_or_default());
        assert_eq!(outcome(&scored(json!({"f1": 0.25})), class), Ok(Some(0.25)));
        assert_eq!(outcome(&scored(json!({"recall": 1})), class), Ok(None));
        let failed = OutcomeHead::Failed { cause: FailureCause::Timeout, message: String::new() };
        assert_eq!(outcome(&failed, class), Err(FailureCause::Timeout));
    }
}
