//! Imports and replays published result files. Set `KGFLEET_CONFORMANCE` to a folder with `v3/` and `graphs/`, and
//! `KGFLEET_CONFORMANCE_PASSWORD`, unless a README beside the data names the password that the publishers print. This
//! repository contains no text of these files, and failures name places, not texts.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;

use domain::Iteration;
use harness::Conformance;
use packs::Pack;
use packs::import::{GraphDocument, ImportSource};
use rdf::RdfFormat;
use results::llmkgbench::source::read_single;
use results::llmkgbench::{ResultRecord, discover};
use tasks::wording::recognise_follow_up;
use tasks::{CaseInput, Compat, Effort, ReadOnce, Replayed, Task, families};

/// The records of a file with their iterations, counted per task.
fn dialogues(path: &Path, password: &str) -> Vec<(Iteration, ResultRecord)> {
    let mut counts: HashMap<String, Iteration> = HashMap::new();
    let mut records = Vec::new();
    for document in discover(&[path.to_owned()], Some(password)) {
        let reading = document.unwrap().read(|read| {
            let record = read.unwrap().record;
            let count = counts.entry(record.task_label().to_owned()).or_default();
            records.push((*count, record));
            *count += 1;
            ControlFlow::Continue(())
        });
        reading.unwrap();
    }
    records
}

/// The prompts that the imported task sends, with the recorded answers, against those that were sent. Gives the number
/// of follow-ups compared; those with a message in another parser's words are passed over.
fn compare_prompts(
    task: &Task,
    iteration: Iteration,
    record: &ResultRecord,
    replayed: &Replayed,
    place: &str,
) -> usize {
    let prompts: Vec<&str> = record.prompts().collect();
    assert!(task.first_prompt(iteration, 0).unwrap().text == prompts[0], "{place}: another first prompt");
    let mut compared = 0;
    for (round, follow_up) in replayed.follow_ups.iter().enumerate() {
        let (Some(follow_up), Some(sent)) = (follow_up, prompts.get(round + 1)) else { break };
        let infos = &record.infos()[&round.to_string()];
        let recorded_message = infos.get("parseError").or_else(|| infos.get("syntaxError"));
        let same_message = follow_up
            .fields
            .get("message")
            .is_none_or(|message| recorded_message.is_some_and(|recorded| recorded == message.as_str()));
        if recognise_follow_up(sent) == Some(follow_up.kind) && same_message {
            let text = task.follow_up(follow_up).unwrap().text;
            assert!(text == *sent, "{place}: another {} follow-up after round {round}", follow_up.kind);
            compared += 1;
        }
    }
    compared
}

#[test]
fn published_models_replay_through_an_imported_pack() {
    let Some(data) = Conformance::for_proof("published_models_replay_through_an_imported_pack") else {
        return;
    };
    let password = &data.password;
    let (_, graph) = read_single(&data.path("graphs/beastiary_kg.rdf.zip"), None).unwrap();
    let graphs = [GraphDocument {
        name: "beastiary".into(),
        file: "beastiary_kg.rdf.zip".into(),
        format: RdfFormat::RdfXml,
        content: graph.into(),
    }];
    let paths = [data.path("v3")];
    let source = ImportSource { name: "published", paths: &paths, password: Some(password), graphs: &graphs };
    let imported = packs::import(&source).unwrap();
    let findings = &imported.report.findings;
    assert_eq!(findings.total(), 0, "{:?}", findings.first().map(ToString::to_string));
    assert_eq!(imported.report.tasks.len(), 26);
    assert_eq!(imported.report.tasks.iter().map(|task| task.dialogues).sum::<usize>(), 3_120);
    for task in &imported.report.tasks {
        println!("{}: {} of {} dialogues asked alike", task.task, task.asked_alike, task.dialogues);
        for line in &task.follow_ups {
            println!("{} {} {:?}: {} of {}", task.task, line.kind, line.origin, line.equal, line.recorded);
            assert_eq!(line.equal, line.recorded, "{}: {}", task.task, line.kind);
        }
    }

    // Sealing is tried with small packs: compressing the bestiary takes a minute in a build for tests.
    let pack = Pack::from_parts(imported.parts).unwrap();
    let graphs = pack.graphs().unwrap().build();
    let tasks = pack.build_selected(&graphs, |_| true).unwrap();
    assert_eq!(tasks.len(), 26);

    // The first file's prompts are those of the pack, so it can be compared to the letter.
    let first = discover(&paths, Some(password)).swap_remove(0).unwrap();
    let records = dialogues(first.path(), password);
    assert_eq!(records.len(), 520);
    let effort = Effort::full(pack.header().limits);
    let empty = serde_json::Map::new();
    let mut compared = 0;
    for (index, (iteration, record)) in records.iter().enumerate() {
        let task = tasks.iter().find(|task| task.label.as_str() == record.task_label()).unwrap();
        let input = CaseInput {
            class: record.task_id(),
            version: record.task_version(),
            parameters: record.task_parameter().unwrap_or(&empty),
            data: record.task_data().unwrap_or(&empty),
            first_prompt: record.prompts().next(),
            once: &ReadOnce::default(),
        };
        let of_record = families::exercise(&input, &graphs, Compat::PUBLISHED).unwrap();
        let theirs = tasks::replay(&*of_record, record.answers(), &effort);
        let ours = tasks::replay(&**task.case(*iteration).exercise(), record.answers(), &effort);
        let place = format!("{}: record {index}", first.name());
        assert!(ours == theirs, "{place}: another evaluation");
        compared += compare_prompts(task, *iteration, record, &ours, &place);
    }
    println!("520 dialogues judged alike, {compared} follow-ups compared to the letter");
    assert!(compared > 50, "the comparison of follow-ups has become empty: {compared}");
}
