//! The ranges of sampling values. Most servers refuse other values; some accept them and do something else.

use std::ops::RangeInclusive;

use domain::Sampling;

/// The values that reasoning models accept.
const REASONING_EFFORTS: [&str; 3] = ["low", "medium", "high"];

/// The first field that is out of range, and the problem.
pub(crate) fn problem(sampling: &Sampling) -> Option<(&'static str, String)> {
    let ranges: [(&'static str, Option<f64>, RangeInclusive<f64>); 5] = [
        ("temperature", sampling.temperature, 0.0..=2.0),
        ("top_p", sampling.top_p, 0.0..=1.0),
        ("min_p", sampling.min_p, 0.0..=1.0),
        ("presence_penalty", sampling.presence_penalty, -2.0..=2.0),
        ("frequency_penalty", sampling.frequency_penalty, -2.0..=2.0),
    ];
    for (name, given, range) in ranges {
        // NaN is in no range.
        if let Some(given) = given.filter(|given| !range.contains(given)) {
            let (least, most) = range.into_inner();
            return Some((name, format!("is {given}; it must be between {least} and {most}")));
        }
    }
    if let Some(given) = sampling.repetition_penalty.filter(|given| !(given.is_finite() && *given > 0.0)) {
        return Some(("repetition_penalty", format!("is {given}; it must be above 0, and 1 is neutral")));
    }
    if sampling.max_tokens == Some(0) {
        return Some(("max_tokens", "is 0; an answer needs at least 1 token".to_owned()));
    }
    if sampling.stop.iter().any(String::is_empty) {
        return Some(("stop", "holds an empty text, which would end every answer at once".to_owned()));
    }
    let effort = sampling.reasoning_effort.as_deref();
    if let Some(given) = effort.filter(|given| !REASONING_EFFORTS.contains(given)) {
        let known = REASONING_EFFORTS.join(", ");
        return Some(("reasoning_effort", format!("is `{given}`; it must be one of {known}")));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(json: serde_json::Value) -> Option<(&'static str, String)> {
        problem(&serde_json::from_value(json).unwrap())
    }

    #[test]
    fn every_field_has_its_range() {
        for fine in [
            serde_json::json!({}),
            serde_json::json!({"temperature": 0, "top_p": 1, "min_p": 0, "presence_penalty": -2}),
            serde_json::json!({"temperature": 2, "frequency_penalty": 2, "repetition_penalty": 1.1, "max_tokens": 1}),
            serde_json::json!({"stop": ["\n"], "reasoning_effort": "high"}),
        ] {
            assert_eq!(of(fine.clone()), None, "{fine}");
        }
        for (name, wrong) in [
            ("temperature", serde_json::json!({"temperature": 2.1})),
            ("temperature", serde_json::json!({"temperature": -0.1})),
            ("top_p", serde_json::json!({"top_p": 7})),
            ("min_p", serde_json::json!({"min_p": -1})),
            ("presence_penalty", serde_json::json!({"presence_penalty": -9})),
            ("frequency_penalty", serde_json::json!({"frequency_penalty": 3})),
            ("repetition_penalty", serde_json::json!({"repetition_penalty": 0})),
            ("max_tokens", serde_json::json!({"max_tokens": 0})),
            ("stop", serde_json::json!({"stop": ["a", ""]})),
            ("reasoning_effort", serde_json::json!({"reasoning_effort": "extreme"})),
        ] {
            let (field, words) = of(wrong.clone()).unwrap_or_else(|| panic!("{wrong}"));
            assert_eq!(field, name);
            assert!(words.starts_with("is ") || words.starts_with("holds "), "{words}");
        }
        assert!(problem(&Sampling { temperature: Some(f64::NAN), ..Sampling::default() }).is_some());
    }
}
