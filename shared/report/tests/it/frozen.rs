//! Statistics against what scipy gives for the same random samples. `testdata/frozen.py` made them.

use report::stats::{SampleSummary, TaskValues, ValueRange, estimate, holm, samples, welch, wilcoxon};
use serde_json::Value;

/// What `testdata/intervals.py` made.
const INTERVALS: &str = include_str!("../../testdata/intervals.json");

const FROZEN: &str = include_str!("../../testdata/scipy.json");

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
        let all = SampleSummary::of(a.iter().copied()).unwrap();
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
        if case.get("wilcoxon").is_some() {
            paired_cases += 1;
            let test = wilcoxon(&differences).unwrap();
            near(test.w, numbers(&case["wilcoxon"])[0], "wilcoxon", at);
            near(test.p, numbers(&case["wilcoxon"])[1], "wilcoxon p", at);
        }
        near(samples::cliffs_delta(&a, &b).unwrap(), case["cliff"].as_f64().unwrap(), "cliff", at);
        for (ours, theirs) in holm(numbers(&case["holm"][0]).into_iter().map(Some))
            .into_iter()
            .flatten()
            .zip(numbers(&case["holm"][1]))
        {
            near(ours, theirs, "holm", at);
        }
    }
    assert!(paired_cases > 80, "{paired_cases}");
}

#[test]
fn intervals_of_tasks_equal_those_of_numpy() {
    let frozen: Value = serde_json::from_str(INTERVALS).unwrap();
    for (at, case) in frozen.as_array().unwrap().iter().enumerate() {
        let strata: Vec<TaskValues> = case["tasks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|task| {
                let cases = numbers(&task[1]).into_iter().map(|case| case as u32);
                let values = cases.zip(numbers(&task[2])).collect();
                TaskValues { weight: task[0].as_f64().unwrap(), values }
            })
            .collect();
        let found = estimate(&strata, ValueRange { low: case["low"].as_f64().unwrap(), high: 1.0 }).unwrap();
        let ours = [found.mean, found.interval.low, found.interval.high, found.p];
        for (ours, theirs) in ours.into_iter().zip(numbers(&case["expected"])) {
            assert!((ours - theirs).abs() < 1e-9, "case {at}: {ours} is not {theirs}");
        }
    }
}
