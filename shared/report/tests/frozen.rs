//! Statistics against what scipy gives for the same random samples. `testdata/frozen.py` made them.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use report::stats::{Summary, effect, holm, paired_t, welch, wilcoxon};
use serde_json::Value;

const FROZEN: &str = include_str!("../testdata/scipy.json");

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

fn near(ours: f64, theirs: f64, what: &str, at: usize) {
    let scale = theirs.abs().max(1e-3);
    assert!((ours - theirs).abs() <= 1e-9 * scale, "case {at}, {what}: {ours} is not {theirs}");
}

#[test]
fn statistics_equal_those_of_scipy() {
    let frozen: Value = serde_json::from_str(FROZEN).unwrap();
    let cases = frozen["cases"].as_array().unwrap();
    assert!(cases.len() >= 100);
    let mut paired_cases = 0;
    for (at, case) in cases.iter().enumerate() {
        let (a, b) = (numbers(&case["a"]), numbers(&case["b"]));
        let all = Summary::of(a.iter().copied()).unwrap();
        let ours = [all.mean, all.sd.unwrap(), all.population_sd, all.q1, all.median, all.q3];
        for (ours, theirs) in ours.into_iter().zip(numbers(&case["summary"])) {
            near(ours, theirs, "summary", at);
        }
        let test = welch(&a, &b).unwrap();
        let ours = [test.t, test.df, test.p, test.interval.0, test.interval.1];
        for (ours, theirs) in ours.into_iter().zip(numbers(&case["welch"])) {
            near(ours, theirs, "welch", at);
        }
        let differences: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a - b).collect();
        if let Some(paired) = case.get("paired") {
            paired_cases += 1;
            let test = paired_t(&differences).unwrap();
            near(test.t, numbers(paired)[0], "paired t", at);
            near(test.p, numbers(paired)[1], "paired p", at);
            let test = wilcoxon(&differences).unwrap();
            near(test.w, numbers(&case["wilcoxon"])[0], "wilcoxon", at);
            near(test.p, numbers(&case["wilcoxon"])[1], "wilcoxon p", at);
        }
        near(effect::cliffs_delta(&a, &b).unwrap(), case["cliff"].as_f64().unwrap(), "cliff", at);
        for (ours, theirs) in holm(&numbers(&case["holm"][0])).into_iter().zip(numbers(&case["holm"][1])) {
            near(ours, theirs, "holm", at);
        }
    }
    assert!(paired_cases > 80, "{paired_cases}");
}
