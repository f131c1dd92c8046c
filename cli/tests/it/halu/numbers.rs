//! The results: numbers, weights, and agreement of people with judges.

use super::{rows, view};
use crate::harness::Data;

#[test]
fn the_quick_configuration_ends_in_numbers_that_follow_the_skill_of_the_models() {
    let data = Data::new();
    let finished = data.kgfleet(&["run", "halu-quick", "--json"]).expect(0);
    let view = view(&finished);
    let mean = |task: &str, model: &str| {
        let cell = view.cells.iter().find(|cell| cell.task.as_str() == task && cell.model.as_str() == model);
        cell.and_then(|cell| cell.mean).unwrap_or_else(|| panic!("no {task} of {model}: {finished}"))
    };
    for (better, worse) in [("sim-strong", "sim-middling"), ("sim-middling", "sim-weak")] {
        assert!(mean("= accuracy", better) > mean("= accuracy", worse), "{finished}");
    }
    assert!(mean("= abstention", "sim-weak") > 0.0 && mean("= halu-bok", "sim-weak") > 0.0, "{finished}");
    assert!(mean("= halu-dok", "sim-weak") > mean("= halu-dok", "sim-strong"), "{finished}");

    // The table that is read from the records says the same as the view of the coordinator.
    let name = view.run.as_str();
    let table = rows(&data, name, "halu");
    assert_eq!(table.len(), 3);
    for name in ["latest", &name[..name.len() - 2]] {
        assert_eq!(rows(&data, name, "halu"), table, "{name}");
    }
    for row in &table {
        let model = row["model"].as_str().unwrap();
        for (column, task) in [
            ("accuracy %", "= accuracy"),
            ("abstained %", "= abstention"),
            ("Halu_BOK %", "= halu-bok"),
            ("Halu_DOK %", "= halu-dok"),
        ] {
            let (shown, expected) = (row[column].as_f64().unwrap(), 100.0 * mean(task, model));
            assert!((shown - expected).abs() < 1e-9, "{column} of {model}: {shown} and {expected}");
        }
        assert_eq!((row["scored"].as_u64(), row["not scored"].as_u64()), (Some(30), Some(0)));
    }
    the_tables_follow_from_the_verdicts(&data, name);
    // Facts are decided by somebody, each once.
    let stages = rows(&data, name, "halu-stages");
    let shares: f64 = stages.iter().filter_map(|row| row["share %"].as_f64()).sum();
    assert!((shares - 100.0).abs() < 1e-9, "{stages:?}");

    // The same at the end of a run that finds everything done.
    data.kgfleet(&["run", "halu-quick"]).expect(0).prints(&[
        "Halu_BOK %",
        "sim-strong",
        "Wa: accuracy weighted",
    ]);
    let page = data.path().join("report.html");
    let plots = data.path().join("plots");
    let (file, folder) = (page.to_str().unwrap(), plots.to_str().unwrap());
    data.kgfleet(&["report", name, "--out", file, "--plots", folder]).expect(0);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("Halu_DOK") && page.contains("Deciding stages") && page.contains("sim-weak"));
    assert_eq!(std::fs::read_dir(plots).unwrap().count(), 7);
    weights_are_learnt_and_used(&data, name);
    people_check_judges(&data, name);
    // What is asked of others is refused.
    data.kgfleet(&["table", name, "--show", "preferences"]).expect(2).says(&["halu-answers"]);
    let run = format!("{name}.ask.sim-weak.1");
    data.kgfleet(&["table", &run, "--show", "halu"]).expect(2).says(&["none is named"]);
    data.kgfleet(&["table", name, &run]).expect(2).says(&[&run, "is no pipeline"]);
    data.kgfleet(&["halu", "sample", &run, "--out", "x.csv"]).expect(2).says(&["there is no pipeline"]);
}

/// A script that knows nothing but the table of verdicts comes to the numbers of all others.
pub(super) fn the_tables_follow_from_the_verdicts(data: &Data, name: &str) {
    let folder = data.path().join("tables");
    std::fs::create_dir(&folder).unwrap();
    for show in ["halu-verdicts", "halu", "halu-answers", "halu-stages", "halu-rates", "halu-groups"] {
        let out = folder.join(format!("{show}.csv"));
        let out = out.to_str().unwrap();
        data.kgfleet(&["table", name, "--show", show, "--format", "csv", "--out", out]).expect(0);
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/halu/recompute.py");
    let told = std::process::Command::new("python3").arg(script).arg(&folder).output().unwrap();
    let (said, wrong) = (String::from_utf8_lossy(&told.stdout), String::from_utf8_lossy(&told.stderr));
    assert!(told.status.success(), "{said}{wrong}");
    assert!(said.contains("numbers are equal"), "{said}");
}

fn weights_are_learnt_and_used(data: &Data, name: &str) {
    let weights = data.path().join("weights.toml");
    let file = weights.to_str().unwrap();
    let learnt = data.kgfleet(&["halu", "calibrate", "latest", "--out", file, "--json"]).expect(0).json();
    // Answers about new entities check what was learnt.
    let count = |name: &str| learnt[name].as_u64().unwrap();
    assert_eq!(count("learnt_from") + count("checked_with"), 90);
    assert!(count("learnt_from").is_multiple_of(3) && learnt["untaught"].is_object(), "{learnt}");
    let written = std::fs::read_to_string(&weights).unwrap();
    assert!(written.starts_with("version = 2") && written.contains("mean_difficulty"), "{written}");
    let told = data.kgfleet(&["table", name, "--weights", file]).expect(0);
    told.prints(&[learnt["weights"].as_str().unwrap(), "3 models of halu-quick"]);
    std::fs::write(&weights, "source = 3").unwrap();
    data.kgfleet(&["table", name, "--weights", file]).expect(2).says(&["weights.toml", "source"]);
    data.kgfleet(&["report", name, "--weights", "nowhere.toml"]).expect(3).says(&["nowhere.toml"]);
}

fn people_check_judges(data: &Data, name: &str) {
    let sheet = data.path().join("sheet.csv");
    let file = sheet.to_str().unwrap();
    let draw = || data.kgfleet(&["halu", "sample", name, "--count", "60", "--out", file]).expect(0);
    draw();
    let drawn = std::fs::read_to_string(&sheet).unwrap();
    draw();
    assert_eq!(drawn, std::fs::read_to_string(&sheet).unwrap(), "the same seed draws the same sheet");
    assert!(!drawn.contains("sim-weak"), "whose answer it is must not be told");
    data.kgfleet(&["halu", "agreement", name, file]).expect(2).says(&["60 rows have no verdict", "no row"]);
    // Somebody who finds that every fact is stated and every answer is about its entity.
    let said = drawn.lines().filter_map(|line| {
        let (id, rest) = line.split_once(',')?;
        let verdict = if rest.starts_with("Does") { "stated" } else { "same" };
        (id.starts_with('h') && id.len() == 17).then(|| format!("{id},{verdict}\n"))
    });
    let said: Vec<String> = said.collect();
    assert_eq!(said.len(), 60);
    std::fs::write(&sheet, format!("id,verdict\n{}", said.concat())).unwrap();
    let agreement = data.kgfleet(&["halu", "agreement", name, file, "--format", "json"]).expect(0).json();
    let line = |stage: &str, threshold: Option<f64>| {
        let rows = agreement["rows"].as_array().unwrap();
        let found = rows.iter().find(|row| row["stage"] == stage && row["threshold"].as_f64() == threshold);
        found.unwrap_or_else(|| panic!("no {stage} in {agreement}")).clone()
    };
    // What this person finds stated is as often so for the filters as facts were not wrong.
    let all = line("all filters", None);
    assert_eq!(all["precision"].as_f64(), Some(1.0));
    assert!(all["recall"].as_f64().unwrap() < 1.0 && all["kappa"].as_f64() == Some(0.0), "{all}");
    assert_eq!(line("abstain", None)["recall"], serde_json::Value::Null);
    // Whatever the similarity calls the same entity, this person does too.
    assert_eq!(line("similarity", Some(0.7))["precision"].as_f64(), Some(1.0));
    // A second person, who says the same of half of the rows, is compared with the first.
    let half = data.path().join("half.csv");
    std::fs::write(&half, format!("id,verdict\n{}", said[..30].concat())).unwrap();
    let half = half.to_str().unwrap();
    let two = data.kgfleet(&["halu", "agreement", name, file, half, "--format", "json"]).expect(0).json();
    let people = two["rows"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["stage"].as_str().unwrap().starts_with("people"));
    let people: Vec<_> = people.collect();
    assert!(!people.is_empty() && people.iter().all(|row| row["agreement"].as_f64() == Some(1.0)), "{two}");
    assert!(people.iter().map(|row| row["rows"].as_u64().unwrap()).sum::<u64>() >= 30, "{two}");
    let broken = format!("id,verdict\n{}h0,same\n\u{202e},same\n", said[0]);
    std::fs::write(&sheet, broken).unwrap();
    let told = data.kgfleet(&["halu", "agreement", name, file]).expect(4);
    assert!(!told.stderr.contains('\u{202e}'));
    told.says(&["line 3: `h0` is no item", "line 4"]);
}
