//! Judges with a given error rate, judges whose replies fit nothing, and judges that no server has.

use std::collections::BTreeMap;

use domain::Outcome;
use rustix::process::Signal;
use vllm_sim::{FaultKind, FaultRule, FaultWhen};

use super::{configuration, pack, rows, view, with_judge_at, with_skill};
use crate::harness::server::MODEL;
use crate::harness::{Data, Server, free_port};

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

/// Runs a pipeline on this configuration; its name.
fn truth(data: &Data, configuration: &str) -> String {
    let file = data.write("right.toml", configuration);
    view(&data.kgfleet(&["run", file.to_str().unwrap(), "--json"]).expect(0)).run.to_string()
}

/// Judges the answers of a pipeline by other judges; the name of the new pipeline.
fn judged_again(data: &Data, truth: &str, configuration: &str, code: i32) -> String {
    let file = data.write("erring.toml", configuration);
    let judged = data.kgfleet(&["rejudge", truth, "--with", file.to_str().unwrap(), "--json"]).expect(code);
    view(&judged).run.to_string()
}

/// Asserts that `found` of `all` are as many as expected at this rate, within exact binomial bounds.
fn expect_rate(what: &str, found: usize, all: usize, rate: f64) {
    let (below, above) = tails(all, found, rate);
    assert!(
        below > UNLIKELY && above > UNLIKELY,
        "{what}: {found} of {all}, where a share of {rate} is expected"
    );
}

/// A chat model errs in half of the replies that are not right; the other half fits nothing, and of these as many are
/// mended by the follow-up as first replies are right. Gives the shares of wrong verdicts and of none.
fn rates_of_chat(skill: f64) -> (f64, f64) {
    let wrong = 1.0 - skill;
    (wrong / 2.0, wrong / 2.0 * (1.0 - skill))
}

/// Compares what a stage of the second pipeline said with the right words of the first one.
fn expect_errors(data: &Data, [truth, erring]: [&str; 2], stage: &str, (errs, silent): (f64, f64)) {
    let (truth, said) = (said(data, truth, stage), said(data, erring, stage));
    let both: Vec<_> = truth.iter().filter_map(|(prompt, right)| Some((right, said.get(prompt)?))).collect();
    let count = |holds: fn(&Option<String>, &Option<String>) -> bool| {
        both.iter().filter(|(right, said)| holds(right, said)).count()
    };
    let wrong = count(|right, said| said.is_some() && said != right);
    let none = count(|_, said| said.is_none());
    assert!(both.len() >= 20, "{stage}: {} questions", both.len());
    expect_rate(&format!("{stage}, wrong"), wrong, both.len(), errs);
    expect_rate(&format!("{stage}, without a verdict"), none, both.len(), silent);
}

#[test]
fn judges_of_known_error_rates_err_as_often_as_that() {
    let data = Data::new();
    let pack = pack(&data, QUESTIONS, 1);
    let truth = truth(&data, &configuration(&pack, QUESTIONS, &[0.5], 1.0));
    // Some replies fit nothing twice: these answers have no score, and the command says so by its code.
    let erring = judged_again(&data, &truth, &configuration(&pack, QUESTIONS, &[0.5], SKILL), 1);
    // A classifier takes one class for another one, and always says one.
    for (stage, rates) in
        [("abstain", rates_of_chat(SKILL)), ("nli", (1.0 - SKILL, 0.0)), ("llm", rates_of_chat(SKILL))]
    {
        expect_errors(&data, [&truth, &erring], stage, rates);
    }
}

#[test]
fn an_expert_of_known_error_rate_errs_as_often_as_that() {
    let data = Data::new();
    let pack = pack(&data, QUESTIONS, 1);
    // A classifier that often takes what is stated for contradicted leaves many facts to the expert.
    let right = with_skill(&configuration(&pack, QUESTIONS, &[0.9], 1.0), "classifier", 0.4);
    let truth = truth(&data, &right);
    let erring = judged_again(&data, &truth, &with_skill(&right, "expert", SKILL), 1);
    expect_errors(&data, [&truth, &erring], "expert", rates_of_chat(SKILL));
    // Of one model's answers, each that lost a verdict is in no number; the others differ by the expert's errors alone.
    let row = |pipeline: &str| rows(&data, pipeline, "halu")[0].clone();
    let (before, after) = (row(&truth), row(&erring));
    assert_eq!(before["not scored"].as_u64(), Some(0));
    assert!(
        after["not scored"].as_u64() > Some(0)
            && after["Halu_DOK %"].as_f64() > before["Halu_DOK %"].as_f64()
    );
}

#[test]
fn an_embedder_of_known_error_rate_loses_as_many_answers_as_that() {
    let data = Data::new();
    let pack = pack(&data, QUESTIONS, 1);
    let right = configuration(&pack, QUESTIONS, &[0.7], 1.0);
    let truth = truth(&data, &right);
    let erring = judged_again(&data, &truth, &with_skill(&right, "embedder", SKILL), 0);
    // How many answers are about their entities, and how many about other ones.
    let answers = |pipeline: &str| {
        let row = rows(&data, pipeline, "halu-answers")[0].clone();
        let share = |column: &str| row[column].as_f64().unwrap() / 100.0 * QUESTIONS as f64;
        [share("aligned %"), share("other entity %")].map(|number| number.round() as usize)
    };
    let ([aligned, other], [aligned_now, other_now]) = (answers(&truth), answers(&erring));
    assert!(aligned >= 50 && aligned + other == aligned_now + other_now);
    assert!(other_now >= other, "an answer about another entity is no nearer to the description by chance");
    // A pair is judged rightly if the vectors of both of its texts are.
    expect_rate("similarity, lost", aligned - aligned_now, aligned, 1.0 - SKILL * SKILL);
}

#[test]
fn a_judge_that_answers_rubbish_leaves_answers_without_a_score() {
    let data = Data::new();
    let server = Server::start();
    let text = configuration(&pack(&data, 10, 1), 10, &[0.9, 0.1], 1.0);
    let file = data.write("rubbish.toml", with_judge_at(&text, "abstention", MODEL, &server.url()));
    let finished = data.kgfleet(&["run", file.to_str().unwrap()]).expect(1);
    let name = finished.stderr.lines().find_map(|line| line.strip_prefix("benchmark ")).unwrap().to_owned();
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
    let name = finished.stderr.lines().find_map(|line| line.strip_prefix("benchmark ")).unwrap().to_owned();
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
fn an_interrupt_ends_a_benchmark_whose_judge_is_away() {
    let data = Data::new();
    let url = format!("http://127.0.0.1:{}/v1", free_port());
    let text = configuration(&pack(&data, 6, 1), 6, &[1.0], 1.0);
    let file = data.write("away.toml", with_judge_at(&text, "abstention", "away", &url));
    let mut running = data.start(&["run", file.to_str().unwrap()]);
    running.until_it_says("waiting for");
    running.signal(Signal::INT);
    // Calls to an unreachable server are retried for many minutes: nobody waits for that.
    running.finish().expect(130).says(&["interrupted", "kgfleet resume"]);
}

#[test]
fn a_retry_does_not_change_what_was_judged() {
    let data = Data::new();
    let right = configuration(&pack(&data, 20, 1), 20, &[0.9], 1.0);
    // A writer that often writes no sentence: the plain statement stands in its place.
    let text = with_skill(&right, "writer", 0.2);
    let file = data.write("writer.toml", with_skill(&text, "classifier", 0.6));
    let run = data.kgfleet(&["run", file.to_str().unwrap(), "--json"]);
    let name = view(&run).run.to_string();
    let asked = || ["nli", "llm", "expert"].map(|stage| said(&data, &name, stage).len());
    let (judged, before) = (asked(), rows(&data, &name, "halu-verdicts"));
    assert!(before.iter().any(|row| row["outcome"] == "aligned"), "{before:?}");
    data.kgfleet(&["retry", &name]);
    data.kgfleet(&["resume", &name]);
    assert_eq!((asked(), rows(&data, &name, "halu-verdicts")), (judged, before));
}

#[test]
fn a_retry_leaves_what_a_writer_failed_at_as_it_was_judged() {
    let data = Data::new();
    // Some, because a server that refuses everybody is waited for.
    let some = FaultWhen::Probability(0.25);
    let refuses = FaultRule::new(some, FaultKind::Status { code: 400, retry_after_s: None });
    let refusing = Server::with_faults(vec![refuses]);
    let (address, url) = (refusing.address(), refusing.url());
    let right = configuration(&pack(&data, 20, 1), 20, &[0.9], 1.0);
    let file = data.write("refused.toml", with_judge_at(&right, "writer", MODEL, &url));
    let run = data.kgfleet(&["run", file.to_str().unwrap(), "--json"]);
    let name = view(&run).run.to_string();
    let written_and_failed = || {
        let (runs, writers) = (data.runs(), format!("{name}.facts."));
        let of_writer = runs.iter().filter(|run| run.name().starts_with(&writers));
        let entries = of_writer.flat_map(|run| run.records().into_values());
        let is_written: Vec<bool> =
            entries.map(|entry| matches!(entry.record.outcome, Outcome::Scored { .. })).collect();
        (is_written.iter().filter(|is| **is).count(), is_written.iter().filter(|is| !**is).count())
    };
    let asked = || ["nli", "llm", "expert"].map(|stage| said(&data, &name, stage).len());
    let (judged, before) = (asked(), rows(&data, &name, "halu-verdicts"));
    assert!(before.iter().any(|row| row["outcome"] == "aligned"), "{before:?}");
    let (written, failed) = written_and_failed();
    assert!(written > 0 && failed > 0, "the writer failed at some facts: {failed} beside {written}");
    // Now it would write something else.
    drop(refusing);
    let _writing = Server::at(address);
    data.kgfleet(&["retry", &name]);
    data.kgfleet(&["resume", &name]);
    assert_eq!(written_and_failed(), (written, failed), "what stands in for its sentences was judged");
    assert_eq!((asked(), rows(&data, &name, "halu-verdicts")), (judged, before));
}

#[test]
fn a_wording_of_ones_own_is_asked_in_and_named() {
    let data = Data::new();
    let pack = pack(&data, 6, 1);
    // Of a model that knows little, for facts that are stated go no further than the classifier.
    let text = configuration(&pack, 6, &[0.3], 1.0);
    let file = data.write("own.toml", &text);
    let own = view(&data.kgfleet(&["run", file.to_str().unwrap(), "--json"]).expect(0)).run.to_string();
    let first = "Own words. {{fact}}\n{{answer}}\nReply with one of these words: EXPLICITLY STATED, NOT MENTIONED, CONTRADICTED";
    let worded = format!("{text}[wordings.llm]\nfirst = \"\"\"{first}\"\"\"\n");
    let file = data.write("worded.toml", &worded);
    let judged = data.kgfleet(&["rejudge", &own, "--with", file.to_str().unwrap(), "--json"]).expect(0);
    let name = view(&judged).run.to_string();
    let (before, after) = (said(&data, &own, "llm"), said(&data, &name, "llm"));
    assert!(!before.is_empty() && before.keys().all(|prompt| !prompt.starts_with("Own words.")));
    assert!(after.len() == before.len() && after.keys().all(|prompt| prompt.starts_with("Own words.")));
    assert!(said(&data, &name, "nli").is_empty(), "nobody else is asked again");
    data.kgfleet(&["table", &name])
        .expect(0)
        .prints(&["Wordings: questions ", "(the program's, but for llm)"]);
    for (from, to, told) in [
        ("{{fact}}", "", "lacks the placeholder `fact`"),
        ("{{fact}}", "{{fact}}{{x}}", "`x`, which nothing fills"),
        ("wordings.llm", "wordings.nli", "asks in no words"),
        ("wordings.llm", "wordings.lml", "is no stage of"),
        ("seed = 1", "seed = 1\nedition = 3", "has the editions 1 to 2"),
    ] {
        let file = data.write("wrong.toml", worded.replacen(from, to, 1));
        data.kgfleet(&["run", file.to_str().unwrap()]).expect(2).says(&[told]);
    }
}

#[test]
fn the_second_edition_asks_in_its_own_words() {
    let data = Data::new();
    let text = configuration(&pack(&data, 6, 1), 6, &[0.9], 1.0);
    let file = data.write("second.toml", text.replace("seed = 1\n", "seed = 1\nedition = 2\n"));
    let name = view(&data.kgfleet(&["run", file.to_str().unwrap(), "--json"]).expect(0)).run.to_string();
    let asked = said(&data, &name, "abstain");
    assert!(!asked.is_empty() && asked.keys().all(|prompt| prompt.contains("tries in earnest")));
    data.kgfleet(&["table", &name]).expect(0).prints(&["Wordings: questions ", "(the program's)"]);
}

#[test]
fn every_question_of_an_assessment_is_asked_unless_somebody_says_how_many() {
    let data = Data::new();
    let text = configuration(&pack(&data, 25, 1), 25, &[0.9], 1.0).replace("iterations = 25\n", "");
    let file = data.write("all.toml", &text);
    // More than the twenty iterations that other benchmarks have by default.
    let run = data.kgfleet(&["run", file.to_str().unwrap(), "--json"]).expect(0);
    assert_eq!(rows(&data, view(&run).run.as_str(), "halu")[0]["scored"].as_u64(), Some(25));
}

#[test]
fn one_judge_alone_is_asked_about_the_same_answers() {
    let data = Data::new();
    let text = configuration(&pack(&data, 8, 1), 8, &[0.7], 1.0);
    let file = data.write("halu.toml", &text);
    let name = view(&data.kgfleet(&["run", file.to_str().unwrap(), "--json"]).expect(0)).run.to_string();
    let (models, _) = text.split_once("[judges.").unwrap();
    let judge = |role: &str, label: &str| {
        format!("[judges.{role}]\nlabel = \"{label}\"\nconnector = \"simulated\"\nskill = 1.0\n")
    };
    let judges = ["writer-1", "abstention-1", "baseline"]
        .map(|label| judge(label.trim_end_matches("-1"), label))
        .concat();
    let alone = models.replace("\"kghalubench\"", "\"kghalubench-baseline\"");
    let file = data.write("alone.toml", format!("{alone}{judges}"));
    let judged = data.kgfleet(&["rejudge", &name, "--with", file.to_str().unwrap(), "--json"]).expect(0);
    let baseline = view(&judged).run.to_string();
    assert!(said(&data, &baseline, "abstain").is_empty(), "that verdict is taken over");
    let sheet = data.path().join("sheet.csv");
    let sheet = sheet.to_str().unwrap();
    data.kgfleet(&["halu", "sample", &name, "--count", "20", "--out", sheet]).expect(0);
    let drawn = std::fs::read_to_string(sheet).unwrap();
    let said = drawn.lines().filter_map(|line| {
        let (id, rest) = line.split_once(',')?;
        let verdict = if rest.starts_with("Does") { "stated" } else { "same" };
        (id.starts_with('h') && id.len() == 17).then(|| format!("{id},{verdict}\n"))
    });
    std::fs::write(sheet, format!("id,verdict\n{}", said.collect::<String>())).unwrap();
    let told =
        data.kgfleet(&["halu", "agreement", &name, sheet, "--baseline", &baseline, "--format", "json"]);
    let told = told.expect(0).json();
    for stage in ["one judge: entity", "one judge: facts"] {
        let row = told["rows"].as_array().unwrap().iter().find(|row| row["stage"] == stage);
        assert!(row.is_some_and(|row| row["rows"].as_u64() > Some(0)), "{told}");
    }
    data.kgfleet(&["halu", "agreement", &name, sheet, "--baseline", &name])
        .expect(2)
        .says(&["is of kind", "kghalubench-baseline"]);
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
    let judged =
        data.kgfleet(&["rejudge", &of_parts, "--with", strict.to_str().unwrap(), "--json"]).expect(0);
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

#[test]
fn a_pack_that_holds_no_assessment_is_refused_before_anything_is_asked() {
    let data = Data::new();
    let text = configuration("core", 2, &[0.9], 1.0).replace("KGHalu-*", "RdfFriendCount-turtle-1");
    let file = data.write("core.toml", text);
    let refused = data.kgfleet(&["run", file.to_str().unwrap()]).expect(2);
    refused.says(&["RdfFriendCount-turtle-1", "no assessment", "kgfleet halu generate"]);
    assert!(data.runs().is_empty());
}

#[test]
fn the_configuration_with_the_judges_of_the_paper_can_be_planned() {
    let data = Data::new();
    let ready = include_str!("../../../../task-data/configurations/halu-paper.toml");
    let file = data.write("paper.toml", ready.replace("halu.kgpack", &pack(&data, 150, 1)));
    let planned = data.kgfleet(&["plan", file.to_str().unwrap()]).expect(0);
    planned.prints(&["Meta-Llama-3.1-8B-Instruct", "150"]);
}
