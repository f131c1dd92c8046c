//! The score that stands for a dialogue in tables.

use domain::{FailureCause, Scores};
use results::log::OutcomeHead;
use tasks::TaskClass;

/// The headline score of a task of this class; `None` where the scores have none.
pub fn headline(scores: &Scores, class: TaskClass) -> Option<f64> {
    let (first, rest) = class.headline.split_first()?;
    rest.iter().try_fold(scores.get(*first)?, |value, key| value.get(key))?.as_f64()
}

/// What tables keep of an outcome: the headline score, which scores may lack, or why there are none.
pub(crate) fn outcome(head: &OutcomeHead, class: TaskClass) -> Result<Option<f64>, FailureCause> {
    match head {
        OutcomeHead::Scored(scores) => Ok(headline(scores, class)),
        OutcomeHead::Unscored { cause, .. } | OutcomeHead::Failed { cause, .. } => Err(*cause),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_headline_is_found_where_the_class_has_it() {
        let scored =
            |scores: serde_json::Value| OutcomeHead::Scored(scores.as_object().cloned().unwrap_or_default());
        let class = |name, version| TaskClass::resolve(name, version).unwrap();
        let (count, fix) = (class("RdfFriendCount", "4.4"), class("RdfSyntaxFixList", "0.3"));
        let flat = scored(json!({"f1": 0.25}));
        assert_eq!(outcome(&flat, count), Ok(Some(0.25)));
        let nested = scored(json!({"max": {"combined": 0.75}}));
        assert_eq!(outcome(&nested, fix), Ok(Some(0.75)));
        assert_eq!(outcome(&nested, count), Ok(None), "missing, not zero");
        let failed = OutcomeHead::Failed { cause: FailureCause::Timeout, message: String::new() };
        assert_eq!(outcome(&failed, count), Err(FailureCause::Timeout));
    }
}
