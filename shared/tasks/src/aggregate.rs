//! Combines the scores of several rounds: `mean`, `max`, `meanExt`.
//!
//! A key that some rounds lack counts as 0 there; a key that all rounds lack is left out. `meanExt` repeats the
//! last round up to the maximum number of answers, so that a dialogue that stopped early keeps its final value.

use domain::Scores;
use serde_json::Value;

/// The three aggregates.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Aggregates {
    /// Mean over the actual rounds.
    pub mean: Scores,
    /// Best round.
    pub max: Scores,
    /// Mean over the maximum number of rounds.
    pub mean_extended: Scores,
}

/// Aggregates `keys` over the scores of the rounds. Sums run from the first round to the last in double
/// precision and are divided once, which fixes every bit of the result.
pub fn aggregate(rounds: &[&Scores], keys: &[&str], rounds_max: usize) -> Aggregates {
    let mut aggregates = Aggregates::default();
    for &key in keys {
        if rounds.iter().all(|scores| !scores.contains_key(key)) {
            continue;
        }
        let mut values: Vec<f64> =
            rounds.iter().map(|scores| scores.get(key).and_then(Value::as_f64).unwrap_or(0.0)).collect();
        aggregates.mean.insert(key.into(), mean(&values).into());
        aggregates.max.insert(key.into(), largest(rounds, key));
        if let Some(&last) = values.last() {
            values.resize(values.len().max(rounds_max), last);
        }
        aggregates.mean_extended.insert(key.into(), mean(&values).into());
    }
    aggregates
}

/// The largest score, the first of equals, with its number type: a count stays an integer. A missing score is 0.0.
fn largest(rounds: &[&Scores], key: &str) -> Value {
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    let scores = rounds.iter().map(|scores| scores.get(key).cloned().unwrap_or_else(|| 0.0.into()));
    scores.reduce(|best, next| if number(&next) > number(&best) { next } else { best }).unwrap_or_default()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn rounds(values: &[Value]) -> Vec<Scores> {
        values.iter().map(|value| value.as_object().unwrap().clone()).collect()
    }

    fn aggregated(values: &[Value], keys: &[&str]) -> Aggregates {
        let rounds = rounds(values);
        aggregate(&rounds.iter().collect::<Vec<_>>(), keys, 3)
    }

    #[test]
    fn an_early_stop_keeps_its_last_value_in_mean_ext() {
        let sums = aggregated(&[json!({"combined": 0.2}), json!({"combined": 1.0})], &["combined"]);
        assert_eq!(sums.mean["combined"], 0.6);
        assert_eq!(sums.max["combined"], 1.0);
        assert_eq!(sums.mean_extended["combined"], 0.733_333_333_333_333_4);
    }

    #[test]
    fn the_largest_score_keeps_its_type_as_in_parsable_syntax_1() {
        let sums =
            aggregated(&[json!({"parsableSyntax": 0}), json!({"parsableSyntax": 1})], &["parsableSyntax"]);
        assert_eq!(sums.max["parsableSyntax"].to_string(), "1");
        assert_eq!(sums.mean["parsableSyntax"].to_string(), "0.5");
        let sums = aggregated(&[json!({"f1": 0.0}), json!({"f1": 1.0}), json!({})], &["f1"]);
        assert_eq!(sums.max["f1"].to_string(), "1.0");
        let sums = aggregated(&[json!({}), json!({"f1": 0.0})], &["f1"]);
        assert_eq!(sums.max["f1"].to_string(), "0.0");
    }

    #[test]
    fn missing_keys_count_as_zero_and_absent_keys_are_left_out() {
        let sums = aggregated(
            &[
                json!({"answerParse": 0.0, "combined": 0.0}),
                json!({"answerParse": 0.0, "combined": 0.0}),
                json!({"answerParse": 1.0, "f1measure": 0.0, "combined": 0.2}),
            ],
            &["answerParse", "f1measure", "combined", "precision"],
        );
        assert_eq!(sums.mean["answerParse"], 1.0 / 3.0);
        assert_eq!(sums.mean["f1measure"], 0.0);
        assert_eq!(sums.mean["combined"], 0.2 / 3.0);
        assert!(!sums.mean.contains_key("precision"));
    }

    #[test]
    fn sums_keep_the_rounding_of_left_to_right_addition() {
        let round = json!({"combined": 0.2});
        let sums = aggregated(&[round.clone(), round.clone(), round], &["combined"]);
        assert_eq!(sums.mean["combined"], 0.200_000_000_000_000_04);
    }

    proptest! {
        #[test]
        fn mean_lies_between_extremes(values in proptest::collection::vec(0.0..1.0_f64, 1..4)) {
            let maps: Vec<Value> = values.iter().map(|value| json!({"k": value})).collect();
            let sums = aggregated(&maps, &["k"]);
            let mean = sums.mean["k"].as_f64().unwrap();
            let max = sums.max["k"].as_f64().unwrap();
            prop_assert!(mean <= max + 1e-12);
            prop_assert!(values.iter().all(|value| *value <= max));
        }
    }
}
