//! Judges that err as often as they are told, that answer rubbish, that nobody serves.

use std::collections::BTreeMap;

use domain::Outcome;
use queue::testing::free_port;

use super::{configuration, pack, rows, view, with_judge_at};
use crate::harness::server::MODEL;
use crate::harness::{Data, Server};

/// Questions of the assessment.
const QUESTIONS: usize = 100;

/// How often judges are right.
const SKILL: f64 = 0.8;

/// Chance below which a number of errors is not believed, on each side.
const UNLIKELY: f64 = 1e-4;

/// What a stage said to each prompt: the choice, or nothing.
fn said(data: &Data, pipeline: &str, stage: &str) -> BTreeMap<String, Option<String>> {
    let mut said = BTreeMap::new();
    let of_stage = format!("{pipeline}.{stage}.");
    for run in data.runs().iter().filter(|run| run.name().starts_with(&of_stage)) {
        for entry in run.records().into_values() {
            let choice = match &entry.record.outcome {
                Outcome::Scored { infos, .. } => infos["choice"].as_str().map(str::to_owned),
                _ => None,
            };
            said.insert(entry.record.rounds[0].prompt.text.clone(), choice);
        }
    }
    said
}

/// P(X <= k) and P(X >= k) of a binomial X.
fn tails(n: usize, k: usize, p: f64) -> (f64, f64) {
    let mut probability = (1.0 - p).powi(n as i32);
    let (mut below, mut above) = (0.0, 0.0);
    for x in 0..=n {
        if x <= k {
            below += probability;
        }
        if x >= k {
            above += probability;
        }
        probability *= (n - x) as f64 / (x + 1) as f64 * p / (1.0 - p);
    }
    (below, above)
}

#[test]
fn the_tails_of_ten_coins() {
    let (below, above) = tails(10, 3, 0.5);
    assert!((below - 176.0 / 1024.0).abs() < 1e-12 && (above - 968.0 / 1024.0).abs() < 1e-12);
}

#[test]
fn judges_of_known_error_rates_err_as_often_as_that() {
    let data = Data::new();
    let pack = pack(&data, QUESTIONS, 1);
    let right = data.write("right.toml", configuration(&pack, QUESTIONS, &[0.5], 1.0));
    let truth = view(&data.kgfleet(&["run", right.to_str().unwrap(), "--json"]).expect(0)).run.to_string();
    let erring = data.write("erring.toml", configuration(&pack, QUESTIONS, &[0.5], SKILL));
    // Some replies fit nothing twice: these answers have no score, and the command says so by its code.
    let erring = data.kgfleet(&["judge", &truth, "--with", erring.to_str().unwrap(), "--json"]).expect(1);
    let erring = view(&erring).run.to_string();

    // A chat model errs in half of the replies that are not right; the other half fits nothing, and of these as many are
    // mended by the follow-up as first replies are right. A classifier takes one class for another one.
    let wrong = 1.0 - SKILL;
    let chat = (wrong / 2.0, wrong / 2.0 * (1.0 - SKILL));
    for (stage, (errs, silent)) in [("abstain", chat), ("nli", (wrong, 0.0)), ("llm", chat)] {
        let (truth, said) = (said(&data, &truth, stage), said(&data, &erring, stage));
        let both: Vec<_> =
            truth.iter().filter_map(|(prompt, right)| Some((right, said.get(prompt)?))).collect();
        let count = |holds: fn(&Option<String>, &Option<String>) -> bool| {
            both.iter().filter(|(right, said)| holds(right, said)).count()
        };
        let wrong = count(|right, said| said.is_some() && said != right);
        let none = count(|_, said| said.is_none());
        assert!(both.len() >= 20, "{stage}: {} questions", both.len());
        for (what, found, expected) in [("wrong", wrong, errs), ("without a verdict", none, silent)] {
            let (below, above) = tails(both.len(), found, expected);
            assert!(
                below > UNLIKELY && above > UNLIKELY,
                "{stage}: {found} of {} {what}, where {expected} are expected",
                both.len()
            );
        }
    }
}

#[test]
fn a_judge_that_answers_rubbish_leaves_answers_without_a_score() {
    let data = Data::new();
    let server = Server::start();
    let text = configuration(&pack(&data, 10, 1), 10, &[0.9, 0.1], 1.0);
    let file = data.write("rubbish.toml", with_judge_at(&text, "abstention", MODEL, &server.url()));
    let finished = data.kgfleet(&["run", file.to_str().unwrap()]).expect(1);
    let name = finished.stderr.lines().find_map(|line| line.strip_prefix("pipeline ")).unwrap().to_owned();
    finished.prints(&["In no number: 20 abstain (judge-unparseable)"]).says(&["kgfleet retry"]);
    for row in rows(&data, &name, "halu") {
        assert_eq!((row["scored"].as_u64(), row["not scored"].as_u64()), (Some(0), Some(10)), "{row}");
        for column in ["Wa %", "accuracy %", "abstained %", "Halu_BOK %", "Halu_DOK %"] {
            assert!(row[column].is_null(), "{row}");
        }
    }
    let sheet = data.path().join("sheet.csv");
    let sheet = sheet.to_str().unwrap();
    data.kgfleet(&["halu", "sample", &name, "--out", sheet]).expect(2).says(&["no scored answer"]);
    let out = data.path().join("weights.toml");
    let calibrated = data.kgfleet(&["halu", "calibrate", &name, "--out", out.to_str().unwrap()]).expect(2);
    calibrated.says(&["0 scored answers are too few"]);
    assert!(!out.exists());
}

#[test]
fn a_judge_that_nobody_serves_is_named_and_nothing_is_half_scored() {
    let data = Data::new();
    let url = format!("http://127.0.0.1:{}/v1", free_port());
    let text = configuration(&pack(&data, 6, 1), 6, &[1.0], 1.0);
    let file = data.write("away.toml", with_judge_at(&text, "entailment", "away", &url));
    // Facts that the classifier finds entailed are decided; an answer with one that is not waits as a whole.
    let file = file.to_str().unwrap();
    let finished = data.kgfleet(&["run", file, "--no-wait"]);
    let name = finished.stderr.lines().find_map(|line| line.strip_prefix("pipeline ")).unwrap().to_owned();
    let rows = rows(&data, &name, "halu");
    let (scored, not) = (rows[0]["scored"].as_u64().unwrap(), rows[0]["not scored"].as_u64().unwrap());
    assert_eq!(scored + not, 6);
    if not > 0 {
        finished.expect(3).says(&["could not be asked", "`away`", &url, "kgfleet resume"]);
        let told = data.kgfleet(&["table", &name]).expect(0);
        told.prints(&["is not finished", &format!("In no number: {not} waiting for verdicts")]);
    }
}

#[test]
fn settings_of_a_configuration_decide_and_what_was_asked_before_is_not_asked_again() {
    let data = Data::new();
    let text = configuration(&pack(&data, 10, 1), 10, &[0.9], 1.0);
    // Simulated overviews have some hundred characters: the classifier is asked about several parts of each.
    let parts = data.write("parts.toml", format!("{text}[settings]\nclassifier_window = 120\n"));
    let run = data.kgfleet(&["run", parts.to_str().unwrap(), "--json"]).expect(0);
    let of_parts = view(&run).run.to_string();
    let asked = said(&data, &of_parts, "nli");
    assert!(asked.len() > 30 && asked.keys().all(|prompt| prompt.len() < 400), "{}", asked.len());
    // With the highest threshold more overviews are about other entities.
    let settings = "[settings]\nclassifier_window = 120\nsimilarity_threshold = 1.0\n";
    let strict = data.write("strict.toml", format!("{text}{settings}"));
    let judged = data.kgfleet(&["judge", &of_parts, "--with", strict.to_str().unwrap(), "--json"]).expect(0);
    let strict = view(&judged).run.to_string();
    let bok = |pipeline: &str| rows(&data, pipeline, "halu")[0]["Halu_BOK %"].as_f64().unwrap();
    assert!(bok(&strict) > bok(&of_parts), "{} and {}", bok(&strict), bok(&of_parts));
    let again = ["abstain", "similarity", "nli", "llm"].map(|stage| said(&data, &strict, stage).len());
    assert_eq!(again, [0; 4]);
    let unknown = data.write("unknown.toml", format!("{text}[settings]\nthreshold = 1.0\n"));
    data.kgfleet(&["run", unknown.to_str().unwrap()])
        .expect(2)
        .says(&["settings.threshold", "similarity_threshold"]);
}
