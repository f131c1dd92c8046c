//! Packs made from invented result files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::PromptKind;
use packs::import::{GraphDocument, ImportError, ImportSource, Imported, Problem, TemplateOrigin};
use packs::{Pack, seal_file};
use rdf::RdfFormat;
use results::password::Password;
use serde_json::{Map, Value, json};
use tasks::{Compat, Effort, EvaluationLimits, FollowUp, Task};

const ZOO: &str = "@prefix zoo: <http://example.org/zoo#> .\nzoo:heron a zoo:Bird .\nzoo:owl a zoo:Bird .\n";

/// The records of one model on two tasks of two cases, two repetitions each, with follow-ups.
fn records(model: &str) -> Vec<Value> {
    let mut records = Vec::new();
    for iteration in 0..4 {
        let uid = ["birds", "owls"][iteration % 2];
        let answer = format!("```sparql\nSELECT {model} {iteration}\n```");
        let query = format!("SELECT {model} {iteration}");
        records.push(record(
            model,
            "Text2SparqlExecEvalListOrganizational",
            "3.1.2",
            &json!({}),
            &json!({"uid": uid, "question": "Which?", "graphTurtle": ZOO,
                    "refSparql": "SELECT ?b WHERE { ?b a zoo:Bird }", "refResultSet": ["zoo:heron", "zoo:owl"]}),
            &json!({"0": {"parseError": format!("found '{iteration}'"), "sparql": query},
                    "1": {"parseError": "fine", "sparql": "SELECT ?x"}}),
            &[
                &format!("Which {uid} are there?"),
                &answer,
                &format!("There are syntax errors: found '{iteration}'!\nYou said\n{query}"),
                "```\nSELECT ?x\n```",
                "That gives an empty result.",
                "I give up.",
            ],
        ));
    }
    for iteration in 0..4 {
        let uid = ["dot", "prefix"][iteration % 2];
        records.push(record(
            model,
            "RdfSyntaxFixList",
            "0.3",
            &json!({"graphFormat": "turtle"}),
            &json!({"taskUid": uid, "graphFormat": "turtle", "task": ZOO.replacen('.', "", 1), "optimal": ZOO}),
            &json!({"0": {"syntaxError": format!("line {iteration}")}, "1": {"syntaxError": null}}),
            &[
                // Written anew for every question.
                &format!("Repair {uid}, please ({model}, {iteration})."),
                "```\nnonsense\n```",
                &format!("A syntax error was found. Message: line {iteration}"),
                "```\n# nothing\n```",
                "This is not the expected data.",
                "```\n# nothing\n```",
            ],
        ));
    }
    records
}

fn record(
    model: &str,
    class: &str,
    version: &str,
    parameters: &Value,
    data: &Value,
    infos: &Value,
    texts: &[&str],
) -> Value {
    let interactions: Vec<Value> = texts
        .iter()
        .enumerate()
        .map(|(index, text)| {
            let speaker = if index % 2 == 0 { "prompt" } else { "response" };
            json!([speaker, "2025-01-01T00:00:00", text])
        })
        .collect();
    json!({
        "modelId": format!("Test--{model}--{model}"),
        "taskInfo": {"taskId": class, "taskLabel": format!("{class}-mini"), "version": version,
                     "taskParameter": parameters, "condensedTaskData": data},
        "scores": {}, "info": infos, "interactions": interactions
    })
}

fn write(folder: &Path, model: &str, records: &[Value]) -> PathBuf {
    let path = folder.join(format!("{model}_result.json"));
    std::fs::write(&path, serde_json::to_vec(records).unwrap()).unwrap();
    path
}

fn import_of(paths: &[PathBuf], graphs: &[GraphDocument]) -> Result<Imported, ImportError> {
    packs::import(&ImportSource { name: "zoo", paths, password: None, graphs })
}

/// Imports files with these records, one file per model.
fn import_records(files: &[(&str, Vec<Value>)], graphs: &[GraphDocument]) -> Result<Imported, ImportError> {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> =
        files.iter().map(|(model, records)| write(folder.path(), model, records)).collect();
    import_of(&paths, graphs)
}

fn problems(imported: &Imported) -> Vec<Problem> {
    imported.report.findings.iter().map(|finding| finding.problem.clone()).collect()
}

fn fields(pairs: &[(&str, &str)]) -> tasks::Fields {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn follow_up(task: &Task, kind: PromptKind, values: &[(&str, &str)]) -> String {
    task.follow_up(&FollowUp { kind, fields: fields(values) }).unwrap().text
}

#[test]
fn an_imported_pack_asks_what_was_asked() {
    let folder = tempfile::tempdir().unwrap();
    let paths = [
        write(folder.path(), "a-model", &records("a-model")),
        write(folder.path(), "b-model", &records("b-model")),
    ];
    let imported = import_of(&paths, &[]).unwrap();
    assert_eq!(problems(&imported), []);

    let (sealed, password) = (folder.path().join("zoo.kgpack"), Password::new("ours"));
    seal_file(&imported.parts, &password, &sealed).unwrap();
    let pack = Pack::open(&sealed, &password).unwrap();
    let header = pack.header();
    assert!(header.protected);
    assert_eq!((header.compat, header.limits), (Compat::PUBLISHED, EvaluationLimits::compat()));
    assert!(header.provenance.contains("a-model_result.json (SHA-256 "), "{}", header.provenance);
    assert!(!header.provenance.contains(&folder.path().display().to_string()), "folders are private");

    let tasks = pack.build().unwrap();
    let [query, document] = tasks.as_slice() else { panic!("two tasks") };
    assert_eq!(query.label.as_str(), "Text2SparqlExecEvalListOrganizational-mini");
    let first = |task: &Task, iteration| task.first_prompt(iteration, 7).unwrap().text;
    assert_eq!(query.cases()[1].data.first_prompts.len(), 1, "equal prompts are kept once");
    assert_eq!(
        [0, 1, 2].map(|i| first(query, i)).join(" "),
        "Which birds are there? Which owls are there? Which birds are there?"
    );
    // Prompts that differ are those of the first file, one per repetition.
    for iteration in 0..4 {
        let uid = ["dot", "prefix"][iteration as usize % 2];
        assert_eq!(first(document, iteration), format!("Repair {uid}, please (a-model, {iteration})."));
    }
    assert_eq!(first(document, 4), first(document, 0), "and then again");

    assert_eq!(
        follow_up(query, PromptKind::Syntax, &[("message", "bah"), ("query", "ASK {{}}")]),
        "There are syntax errors: bah!\nYou said\nASK {{}}"
    );
    assert_eq!(follow_up(query, PromptKind::EmptyResult, &[("query", "x")]), "That gives an empty result.");
    assert_eq!(
        follow_up(document, PromptKind::Syntax, &[("message", "bah")]),
        "A syntax error was found. Message: bah"
    );
    let effort = Effort::full(header.limits);
    let replayed = tasks::replay(&**document.case(0).exercise(), ["no block"], &effort);
    let asked = replayed.follow_ups[0].as_ref().expect("an answer without a block is asked about");
    assert_eq!(asked.kind, PromptKind::Structure);
    assert!(document.follow_up(asked).is_ok(), "a kind that was never recorded has wording");
}

#[test]
fn the_report_tells_where_templates_come_from() {
    let imported = import_records(&[("a", records("a")), ("b", records("b"))], &[]).unwrap();
    let document = &imported.report.tasks[1];
    assert_eq!((document.cases, document.dialogues, document.first_prompts), (2, 8, 4));
    assert_eq!(document.asked_alike, 4, "the second model saw documents written anew");
    assert_eq!(imported.report.tasks[0].asked_alike, 8);
    let lines: Vec<_> = document
        .follow_ups
        .iter()
        .map(|line| (line.kind, line.origin.clone(), line.recorded, line.equal))
        .collect();
    assert_eq!(
        lines,
        [
            (PromptKind::Structure, TemplateOrigin::Own, 0, 0),
            (PromptKind::Syntax, TemplateOrigin::Learnt, 8, 8),
            (PromptKind::Content, TemplateOrigin::Learnt, 8, 8),
            (PromptKind::Formatting, TemplateOrigin::Own, 0, 0),
        ]
    );
    let json = serde_json::to_value(&imported.report).unwrap();
    assert_eq!(json["tasks"][1]["followUps"][0]["origin"], json!({"origin": "own"}));
}

#[test]
fn a_task_without_follow_ups_borrows_what_all_related_ones_say() {
    let mut records = records("a");
    // Another data set whose dialogues ended after one answer.
    for iteration in 0..2 {
        let mut quiet = records[iteration].clone();
        quiet["taskInfo"]["taskId"] = "Text2SparqlExecEvalListOrgaNumerical".into();
        quiet["taskInfo"]["taskLabel"] = "numerical".into();
        quiet["taskInfo"]["version"] = "4.0".into();
        quiet["interactions"].as_array_mut().unwrap().truncate(2);
        records.push(quiet);
    }
    let imported = import_records(&[("a", records.clone())], &[]).unwrap();
    let origin = |imported: &Imported| imported.report.tasks[2].follow_ups[0].origin.clone();
    let from = "Text2SparqlExecEvalListOrganizational-mini".into();
    assert_eq!(origin(&imported), TemplateOrigin::Borrowed { from });

    // Once related tasks disagree, nothing is taken from any of them.
    for iteration in 0..2 {
        let mut other = records[iteration].clone();
        other["taskInfo"]["taskLabel"] = "other".into();
        let text = other["interactions"][2][2].as_str().unwrap().replace("You said", "Your words:");
        other["interactions"][2][2] = text.into();
        records.push(other);
    }
    assert_eq!(origin(&import_records(&[("a", records)], &[]).unwrap()), TemplateOrigin::Own);
}

#[test]
fn what_does_not_fit_is_named_with_its_file_and_record() {
    let mut odd = records("b");
    odd[0]["interactions"][2][2] = "There are syntax errors, more I will not say.".into();
    odd[1]["interactions"][2][2] = "How are you today?".into();
    odd[2]["taskInfo"]["condensedTaskData"]["question"] = "Which, then?".into();
    odd[4]["taskInfo"]["version"] = "0.3-testing".into();
    odd.push(record("b", "Juggling", "1", &json!({}), &json!({}), &json!({}), &["?", "!"]));
    odd.push(json!("no record"));
    let imported = import_records(&[("a", records("a")), ("b", odd)], &[]).unwrap();
    let mut findings: Vec<(usize, Problem)> =
        imported.report.findings.iter().map(|f| (f.record.unwrap(), f.problem.clone())).collect();
    findings.sort_by_key(|(record, _)| *record);
    let [
        (0, Problem::FollowUpDiffers { round: 0, kind: PromptKind::Syntax }),
        (1, Problem::UnknownFollowUp { round: 0 }),
        (2, Problem::CaseDiffers { .. }),
        (4, Problem::OtherTask),
        (5, Problem::OutOfTurn { case, expected }),
        (8, Problem::Unusable { .. }),
        (9, Problem::Unreadable { .. }),
    ] = findings.as_slice()
    else {
        panic!("{findings:#?}")
    };
    assert_eq!((case.as_str(), expected.as_str()), ("prefix", "dot"));
    let text = imported.report.findings.first().unwrap().to_string();
    assert!(text.contains("b_result.json: record 2: Text2Sparql"), "{text}");
    assert!(!text.contains("then?"), "texts of exercises stay out: {text}");
    assert_eq!((imported.report.findings.not_imported(), imported.report.findings.doubts()), (3, 4));
}

#[test]
fn equal_files_make_equal_packs_wherever_they_are() {
    let hash = |records: Vec<Value>| {
        let imported = import_records(&[("a", records)], &[]).unwrap();
        Pack::from_parts(imported.parts).unwrap().hash().clone()
    };
    assert_eq!(hash(records("a")), hash(records("a")));
    assert_ne!(hash(records("a")), hash(records("b")));
}

#[test]
fn graphs_that_cases_name_are_part_of_the_pack() {
    let mut bestiary = records("a").swap_remove(0);
    bestiary["taskInfo"]["taskId"] = "Text2SparqlExecEvalListBeastiary".into();
    bestiary["taskInfo"]["taskLabel"] = "beasts".into();
    bestiary["taskInfo"]["version"] = "2.4.2".into();
    bestiary["taskInfo"]["condensedTaskData"].as_object_mut().unwrap().shift_remove("graphTurtle");
    let error = import_records(&[("a", vec![bestiary.clone()])], &[]).unwrap_err().to_string();
    assert!(error.contains("--graph beastiary=FILE"), "{error}");

    let graph = GraphDocument {
        name: "beastiary".into(),
        file: "zoo.ttl".into(),
        format: RdfFormat::Turtle,
        content: Arc::from(ZOO.as_bytes()),
    };
    let imported = import_records(&[("a", vec![bestiary])], &[graph]).unwrap();
    let pack = Pack::from_parts(imported.parts).unwrap();
    assert!(pack.header().provenance.contains("zoo.ttl (SHA-256 "));
    let tasks = pack.build().unwrap();
    let answer = "```\nPREFIX zoo: <http://example.org/zoo#> SELECT ?b WHERE { ?b a zoo:Bird }\n```";
    let effort = Effort::full(pack.header().limits);
    let replayed = tasks::replay(&**tasks[0].case(0).exercise(), [answer], &effort);
    let evaluation = replayed.evaluation;
    assert_eq!(evaluation.scores["max"]["combined"], 1.0, "{:?}", evaluation.infos);
    assert_eq!(replayed.follow_ups, [None], "the answer is right");
}

#[test]
fn cases_without_identifiers_are_told_apart_by_their_data_or_else_by_what_is_asked() {
    let static_case = |data: Value, prompt: &str| {
        let mut record =
            record("a", "FactExtractStatic", "1.1", &json!({}), &data, &json!({}), &[prompt, "!"]);
        record["taskInfo"].as_object_mut().unwrap().shift_remove("taskParameter");
        record
    };
    let same = vec![static_case(json!({"version": "1.1"}), "x"), static_case(json!({"version": "1.1"}), "y")];
    let imported = import_records(&[("a", same)], &[]).unwrap();
    assert_eq!((imported.report.tasks[0].cases, imported.report.tasks[0].first_prompts), (1, 2));
    let without = ["x", "y", "x"].map(|prompt| static_case(Value::Object(Map::new()), prompt)).to_vec();
    let imported = import_records(&[("a", without)], &[]).unwrap();
    assert_eq!((imported.report.tasks[0].cases, imported.report.tasks[0].first_prompts), (2, 2));
}

#[test]
fn nothing_to_import_says_why() {
    let error = import_of(&[PathBuf::from("no/such_result.json")], &[]).unwrap_err();
    assert!(matches!(&error, ImportError::Nothing(findings) if findings.total() == 1), "{error}");
    assert!(error.to_string().contains("no/such_result.json"), "{error}");
}
