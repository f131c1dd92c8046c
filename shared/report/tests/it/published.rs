//! Numbers from the published files of six models: format preferences equal to the published table cell by cell, and
//! combined scores equal to those that were worked out from the same files with other means.

use harness::Conformance;
use report::Dialogues;
use report::analysis::cells::{statistics, totals};
use report::analysis::compare::compare as compare_models;
use report::analysis::scheme;
use report::input::read_documents;
use report::views::combined::{combined, rank, test};
use report::views::groups::{TaskGroup, compare};
use report::views::preferences;
use results::llmkgbench::discover;
use serde_json::Value;

/// Published dialogues: six models on 26 tasks, 20 each.
const DIALOGUES: usize = 3_120;

fn published(proof: &str) -> Option<(Dialogues, Conformance)> {
    let data = Conformance::for_proof(proof)?;
    let found = discover(&[data.path("v3")], Some(&data.password));
    let documents: Vec<_> = found.into_iter().map(Result::unwrap).collect();
    let mut all = Dialogues::default();
    let reading = read_documents(&mut all, &documents, None, &|_| Err(String::new()));
    assert_eq!(reading.file_errors, Vec::<String>::new());
    assert_eq!(reading.record_errors, Vec::<String>::new());
    assert_eq!((all.len(), all.tasks.len(), all.columns.len()), (DIALOGUES, 26, 6));
    Some((all, data))
}

#[test]
fn format_preferences_equal_the_published_table() {
    let Some((all, data)) = published("format_preferences_equal_the_published_table") else { return };
    let text = std::fs::read_to_string(data.path("modelPreferences.csv")).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let heading = lines.next().unwrap();
    let pairs = preferences::pairs(&all);
    assert_eq!(pairs.iter().map(|pair| pair.name.as_str()).collect::<Vec<_>>(), heading[1..]);
    let ours = preferences::preferences(&all, &pairs);
    let mut cells = 0;
    for line in lines {
        let Some(found) = ours.iter().find(|found| all.columns[found.column].name == line[0]) else {
            continue;
        };
        for (at, theirs) in line[1..].iter().enumerate() {
            let comparison = found.pairs[at].as_ref().unwrap();
            assert_eq!(comparison.preference.as_str(), *theirs, "{} on {}", line[0], pairs[at].name);
            cells += 1;
        }
    }
    assert_eq!(cells, 36, "six models on six pairs of tasks");
    // The column that the journal article added.
    for (name, over_all) in [
        ("Claude 3.5 Haiku", "TTL"),
        ("Gemini 1.5 Flash", "TTL"),
        ("Gemini 2.0 Flash Exp", "-"),
        ("GPT3.5 2024/01", "-"),
        ("GPT4o 2024/11", "-"),
        ("GPTo1-mini 2024/09", "-"),
    ] {
        let found = ours.iter().find(|found| all.columns[found.column].name == name).unwrap();
        let all = found.all.as_ref().unwrap();
        let found = (all.preference.as_str().trim_matches('*'), all.samples.n);
        assert_eq!(found, (over_all, (120, 120)), "{name}");
    }
}

#[test]
#[allow(clippy::approx_constant, reason = "a deviation, which only looks like 1/π")]
fn combined_scores_equal_those_worked_out_from_the_files() {
    let Some((all, _)) = published("combined_scores_equal_those_worked_out_from_the_files") else { return };
    // Mean and deviation of the readings a, b and c.
    let expected = [
        ("Claude 3.5 Haiku", [(0.860, 0.296), (0.941, 0.203), (0.941, 0.203)]),
        ("GPT4o 2024/11", [(0.850, 0.298), (0.928, 0.214), (0.920, 0.218)]),
        ("Gemini 1.5 Flash", [(0.857, 0.302), (0.927, 0.230), (0.890, 0.289)]),
        ("GPTo1-mini 2024/09", [(0.829, 0.318), (0.891, 0.268), (0.890, 0.269)]),
        ("Gemini 2.0 Flash Exp", [(0.792, 0.344), (0.850, 0.310), (0.852, 0.307)]),
        ("GPT3.5 2024/01", [(0.778, 0.352), (0.828, 0.326), (0.776, 0.359)]),
    ];
    let schemes = scheme::bundled();
    let mut wrong = Vec::new();
    for (place, name) in ["sparql-a", "sparql-b", "sparql-c"].into_iter().enumerate() {
        let scheme = scheme::named(&schemes, name).unwrap();
        let ours = combined(&all, &scheme);
        for (model, readings) in expected {
            let found = ours.iter().find(|found| all.columns[found.column].name == model).unwrap();
            let (mean, sd) = readings[place];
            let ours = format!("{:.3} {:.3}", found.mean.unwrap(), found.sd.unwrap());
            if ours != format!("{mean:.3} {sd:.3}") {
                wrong.push(format!("{name} {model}: {ours} instead of {mean:.3} {sd:.3} of {}", found.n));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    // With reading b, as the specification of the published data gives them: 400 values a model.
    let scheme = scheme::named(&schemes, "sparql-b").unwrap();
    let ours = combined(&all, &scheme);
    assert!(ours.iter().all(|found| found.n == 400));
    let means: Vec<f64> = ours.iter().map(|found| found.mean.unwrap()).collect();
    let ranked = rank(&means, |best, at| test(&scheme, &ours[best], &ours[at]));
    let p = |name: &str| {
        let rank = ranked.iter().find(|rank| all.columns[ours[rank.item].column].name == name).unwrap();
        rank.p
    };
    let near = |name: &str, expected: f64, unit: f64| {
        let p = p(name).unwrap();
        assert!((p - expected).abs() <= unit / 2.0, "{name}: {p} is not {expected}");
    };
    assert_eq!(p("Claude 3.5 Haiku"), None, "it is the best one");
    near("Gemini 1.5 Flash", 0.39, 0.01);
    near("GPTo1-mini 2024/09", 0.0035, 0.0001);
}

/// What `testdata/published.py` made of the same files, with numpy and scipy alone.
const FROZEN: &str = include_str!("../../testdata/published.json");

#[test]
fn intervals_differences_and_gates_equal_those_of_numpy() {
    let Some((all, _)) = published("intervals_differences_and_gates_equal_those_of_numpy") else { return };
    let frozen: Value = serde_json::from_str(FROZEN).unwrap();
    let near = |ours: &[f64], theirs: &Value, what: &str| {
        for (ours, theirs) in ours.iter().zip(theirs.as_array().unwrap()) {
            let theirs = theirs.as_f64().unwrap();
            assert!((ours - theirs).abs() < 1e-9, "{what}: {ours} is not {theirs}");
        }
    };
    let column = |model: &Value| {
        all.columns.iter().position(|column| column.model == model.as_str().unwrap()).unwrap()
    };
    let mut cells = 0;
    for (model, expected) in frozen["models"].as_object().unwrap() {
        let id = column(&Value::from(model.as_str()));
        let total = &totals(&all)[id];
        let interval = total.interval().unwrap();
        near(&[total.mean.unwrap(), interval.low, interval.high], &expected["all"], model);
        for cell in statistics(&all).iter().filter(|cell| cell.column == id) {
            let interval = cell.interval.unwrap();
            let task = &all.tasks[cell.task].label;
            let ours = [cell.summary.unwrap().mean, interval.low, interval.high];
            near(&ours, &expected["tasks"][task], &format!("{model} on {task}"));
            cells += 1;
        }
    }
    assert_eq!(cells, 6 * 26);
    let gate = frozen["gate"].as_f64().unwrap();
    let pairs = frozen["pairs"].as_array().unwrap();
    assert_eq!(pairs.len(), 15);
    let mut failing = 0;
    for pair in pairs {
        let (a, b) = (column(&pair["first"]), column(&pair["second"]));
        for (a, b, direction, sign) in [(a, b, "forth", 1.0), (b, a, "back", -1.0)] {
            let found = compare_models(&all, a, b).all;
            let estimate = found.estimate.unwrap();
            let (low, high) = (estimate.interval.low, estimate.interval.high);
            let (low, high) = if sign < 0.0 { (-high, -low) } else { (low, high) };
            let ours =
                [sign * found.difference.unwrap(), low, high, estimate.p, sign * found.effect.unwrap()];
            near(&ours, &pair["expected"], direction);
            let holds = estimate.interval.high >= -gate;
            assert_eq!(holds, pair["holds"][direction], "{pair}");
            failing += u32::from(!holds);
        }
    }
    assert_eq!(failing, 12, "of fifteen pairs, twelve differ by more than the gate");
}

/// Expected is what `scipy.stats.ttest_ind(a, b, equal_var=False)` gives for the same values.
#[test]
fn groups_of_tasks_differ_as_scipy_finds() {
    let Some((all, _)) = published("groups_of_tasks_differ_as_scipy_finds") else { return };
    let columns: Vec<usize> = (0..all.columns.len()).collect();
    let test = |a: &str, b: &str, score| {
        let (a, b) = (TaskGroup::parse(a).unwrap(), TaskGroup::parse(b).unwrap());
        let found = compare(&all, &columns, (&a, &b), score);
        (found.n, found.test.unwrap())
    };
    let near = |ours: f64, theirs: f64| {
        assert!((ours - theirs).abs() <= 1e-9 * theirs.abs(), "{ours} is not {theirs}");
    };
    let (n, found) = test("graph=*-subgraph", "schema=*-schema,*-subschema", Some("mean.f1measure"));
    assert_eq!(n, (120, 240));
    near(found.t, 36.184_511_532_066_89);
    near(found.df, 356.701_192_129_878_9);
    let (n, found) = test("Turtle=*-turtle*", "JSON-LD=*-jsonld*", None);
    assert_eq!(n, (1080, 720));
    near(found.t, -3.263_554_073_645_481);
    near(found.p, 0.001_124_305_074_507_799_2);
}
