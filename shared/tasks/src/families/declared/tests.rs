//! Declared tasks from answer to score.

use serde_json::{Value, json};

use super::*;
use crate::dialogue::{Dialogue, Next};
use crate::exercise::{Compat, EvaluationLimits, EvaluationStage, Limit, ReadOnce};

const LAB: &str = "@prefix : <http://example.org/lab#> .\n\
    :Ada a :Person ; :worksOn :Loom , :Kiln ; :hours 12 . :Bo a :Person ; :worksOn :Loom ; :hours 30 .\n\
    :Cy a :Person ; :worksOn :Kiln ; :hours 20 . :Di a :Person ; :hours 8 .";

fn case(class: &str, parameters: Value, data: Value) -> Result<Box<dyn Exercise>, CaseError> {
    let (Value::Object(parameters), Value::Object(data)) = (parameters, data) else { panic!() };
    let input = CaseInput {
        class,
        version: VERSION,
        parameters: &parameters,
        data: &data,
        first_prompt: None,
        once: &ReadOnce::default(),
    };
    crate::families::exercise(&input, &GraphLibrary::default(), Compat::default())
}

fn queries(class: &str) -> Box<dyn Exercise> {
    let parameters = json!({
        "answer": {"take": "block", "as": "sparql"}, "readable": 0.2, "rounds": 2,
        "checks": [{"name": "rows", "weight": 1.0, "rule": {"kind": "rows", "compare": "rows"}}],
    });
    let rows = json!([["<http://example.org/lab#Cy>"], ["<http://example.org/lab#Di>"]]);
    let data = json!({"graphTurtle": LAB, "expected": {"rows": {"columns": 1, "rows": rows}}});
    case(class, parameters, data).unwrap()
}

/// A task with one check, and one case of it.
fn single(read_as: &str, rule: Value, expected: Value) -> Result<Box<dyn Exercise>, CaseError> {
    let parameters = json!({
        "answer": {"as": read_as}, "rounds": 1, "checks": [{"name": "it", "weight": 1.0, "rule": rule}],
    });
    case(ONE, parameters, json!({"expected": {"it": expected}}))
}

fn full() -> Effort {
    Effort::full(EvaluationLimits::default())
}

fn score(exercise: &dyn Exercise, answer: &str) -> f64 {
    exercise.judge(answer, &full()).scores["score"].as_f64().unwrap()
}

fn block(query: &str) -> String {
    format!("```sparql\n{query}\n```")
}

#[test]
fn a_query_is_judged_by_what_it_finds() {
    let case = queries(BEST);
    let right = "SELECT ?p { ?p a :Person FILTER NOT EXISTS { ?p :worksOn ?x . :Bo :worksOn ?x } }";
    // Ada and Bo work on the loom; those who do not are right.
    assert_eq!(score(&*case, &block(right)), 1.0);
    let more =
        "SELECT ?h ?p { ?p a :Person ; :hours ?h FILTER NOT EXISTS { ?p :worksOn ?x . :Bo :worksOn ?x } }";
    assert_eq!(score(&*case, &block(more)), 1.0);
    let slip = "SELECT ?p { ?p a :Person ; :worksOn ?x FILTER NOT EXISTS { :Bo :worksOn ?x } }";
    let verdict = case.judge(&block(slip), &full());
    assert_eq!(
        serde_json::to_string(&verdict.scores).unwrap(),
        r#"{"score":0.6000000000000001,"readable":1.0,"rows":0.5,"rows_precision":0.5,"rows_recall":0.5}"#
    );
    assert_eq!(verdict.follow_up, None, "a wrong result is no finding");
    let kinds = |answer: &str| case.judge(answer, &full()).follow_up.map(|follow_up| follow_up.kind);
    assert_eq!(kinds(&block("SELECT ?p {")), Some(PromptKind::Syntax));
    assert_eq!(kinds("Those who do not."), Some(PromptKind::Structure));
    assert_eq!(kinds(&block("SELECT ?p { ?p a :Cat }")), Some(PromptKind::EmptyResult));
    assert_eq!(score(&*case, &block("SELECT ?p {")), 0.0);
    assert_eq!(score(&*case, &block("SELECT ?p { ?p a :Cat }")), 0.2);
}

#[test]
fn the_rounds_end_when_nothing_is_found_wrong_or_they_are_used_up() {
    let case = queries(LAST);
    let mut dialogue = Dialogue::new(case.shots());
    dialogue.take(case.judge("no", &full()));
    let Next::FollowUp(asked) = dialogue.next() else { panic!() };
    assert_eq!(asked.fields["finding.message"], "The answer has no fenced code block.");
    dialogue.take(case.judge("still no", &full()));
    assert_eq!(dialogue.next(), Next::Done);
    let evaluation = dialogue.into_evaluation();
    let class = crate::TaskClass::resolve(LAST, VERSION).unwrap();
    assert_eq!(class.headline_of(&evaluation.scores), Some(0.0));
    assert_eq!(queries(ONE).shots(), Shots::Single);
}

/// A check with what it expects, an answer that is right by it and one that is wrong.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckRow {
    #[serde(rename = "as")]
    read_as: String,
    rule: Value,
    expected: Value,
    right: String,
    wrong: String,
    /// Whether it is over a graph, shapes or a document.
    #[serde(default)]
    document: bool,
}

fn checks() -> impl Iterator<Item = CheckRow> {
    include_str!("checks.jsonl").lines().map(|line| serde_json::from_str(line).expect(line))
}

fn checks_over_documents() -> impl Iterator<Item = CheckRow> {
    checks().filter(|row| row.document)
}

impl CheckRow {
    fn case(&self) -> Box<dyn Exercise> {
        single(&self.read_as, self.rule.clone(), self.expected.clone())
            .unwrap_or_else(|error| panic!("{}: {error}", self.rule))
    }
}

/// The check whether shapes tell graphs apart.
fn shapes() -> CheckRow {
    checks().find(|row| row.rule["kind"] == "shapes").unwrap()
}

#[test]
fn every_check_tells_right_answers_from_wrong_ones() {
    for row in checks() {
        let CheckRow { rule, right, wrong, .. } = &row;
        let case = row.case();
        assert_eq!(score(&*case, right), 1.0, "{rule}: {right} {:?}", case.judge(right, &full()));
        assert_eq!(score(&*case, wrong), 0.0, "{rule}: {wrong} {:?}", case.judge(wrong, &full()));
        let names = |answer: &str| case.judge(answer, &full()).scores.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(right), names("\0"), "an answer that cannot be read has the same scores");
        let hostile = ["", "...", "```", "[[[[", "{\"a\":", "\0", &"9".repeat(100_000), &"[".repeat(100_000)];
        for answer in hostile.into_iter().filter(|_| !row.document) {
            assert_eq!(score(&*case, answer), 0.0, "{rule}: {answer:.20}");
        }
    }
}

#[test]
fn gates_and_weights_make_one_score() {
    let checks = |gate: bool| {
        json!({
            "answer": {}, "rounds": 1, "readable": 0.5,
            "checks": [
                {"name": "form", "weight": 0.0, "gate": gate, "rule": {"kind": "pattern", "matches": "^[A-Z]"}},
                {"name": "a", "weight": 3.0, "rule": {"kind": "pattern", "matches": "a"}},
                {"name": "b", "weight": 1.0, "rule": {"kind": "pattern", "matches": "b"}},
            ],
        })
    };
    let (open, gated) =
        (case(ONE, checks(false), json!({})).unwrap(), case(ONE, checks(true), json!({})).unwrap());
    assert_eq!((score(&*open, "xa"), score(&*gated, "xa")), (0.875, 0.0));
    assert_eq!(score(&*gated, "Xb"), 0.625);
}

#[test]
fn limits_are_verdicts_that_name_themselves() {
    let case = queries(BEST);
    let answer = block("SELECT ?p { ?p a :Person }");
    let at = |stage| case.judge(&answer, &Effort { limits: EvaluationLimits::default(), stage });
    let unexecuted = at(EvaluationStage::WithoutExecution(Limit::CpuTime));
    assert_eq!(unexecuted.scores["score"], 0.2);
    assert_eq!(unexecuted.infos["rows_error"], Limit::CpuTime.message());
    let unparsed = at(EvaluationStage::WithoutParsing(Limit::Memory));
    assert_eq!(
        (&unparsed.scores["score"], &unparsed.infos["finding"]),
        (&json!(0.0), &json!(Limit::Memory.message()))
    );
}

#[test]
fn many_queries_of_one_judgement_share_one_budget() {
    let endless =
        "SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l . ?m ?n ?o . ?p ?q ?r FILTER(?a = ?q) }";
    let checks: Vec<Value> = (0..20)
        .map(|number| json!({"name": format!("c{number}"), "weight": 1.0, "rule": {"kind": "rows", "compare": "cells"}}))
        .collect();
    let expected: Map<String, Value> =
        (0..20).map(|number| (format!("c{number}"), json!({"columns": 1, "rows": [["1"]]}))).collect();
    let parameters = json!({"answer": {"take": "block", "as": "sparql"}, "rounds": 1, "checks": checks});
    let case = case(ONE, parameters, json!({"graphTurtle": LAB, "expected": expected})).unwrap();
    let time = std::time::Duration::from_millis(100);
    let limits = EvaluationLimits { query_time: time, rows_max: usize::MAX, ..EvaluationLimits::default() };
    let budget = TimeBudget::begin(10 * time);
    let verdict = case.judge(&block(endless), &Effort::full(limits));
    assert!(budget.left().unwrap() > time, "one budget, not twenty");
    assert_eq!(verdict.infos["c19_error"], "A time out occurred");
}

#[test]
fn packs_from_elsewhere_are_refused_where_they_cannot_be_used() {
    for line in include_str!("refused.jsonl").lines() {
        let row: Value = serde_json::from_str(line).expect(line);
        let read_as = row["as"].as_str().unwrap();
        assert!(single(read_as, row["rule"].clone(), row["expected"].clone()).is_err(), "{line}");
    }
}

#[test]
fn hostile_documents_score_nothing_and_end() {
    let deep = format!("{}{}", "[ <http://e/p> ".repeat(10_000), "]".repeat(10_000));
    let bomb =
        "<!DOCTYPE r [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;\">]><r>&b;</r>";
    let recursive = "@prefix sh: <http://www.w3.org/ns/shacl#> . <http://e/S> sh:node <http://e/S> .";
    let sparql = "@prefix sh: <http://www.w3.org/ns/shacl#> . <http://e/S> sh:sparql [ sh:select 'SELECT $this {}' ] .";
    let remote = "{\"@context\": \"http://example.org/context\", \"@id\": \"http://e/l\"}";
    let hostile = [
        "",
        "```",
        "<",
        "{",
        "[",
        "\0",
        deep.as_str(),
        bomb,
        recursive,
        sparql,
        remote,
        &"[".repeat(100_000),
        &"(".repeat(100_000),
        &"<a".repeat(50_000),
    ];
    for row in checks_over_documents() {
        let (case, rule) = (row.case(), &row.rule);
        for answer in hostile {
            // Shapes of which nothing is a target hold, as SHACL says; who asks for them asks for a graph too.
            if rule["kind"] == "conforms" && [recursive, sparql].contains(&answer) {
                continue;
            }
            let of_text = rule["kind"] == "similar";
            let scored = score(&*case, answer);
            assert!(scored == 0.0 || of_text && scored < 0.5, "{rule}: {answer:.40} {scored}");
        }
    }
    let told = |answer: &str| {
        shapes().case().judge(answer, &full()).infos["finding"].as_str().unwrap_or_default().to_owned()
    };
    assert!(told(recursive).contains("refers to itself"), "{}", told(recursive));
    assert!(told(sparql).contains("`sh:sparql` is not SHACL Core"), "{}", told(sparql));
}

#[test]
fn limits_leave_nothing_of_what_they_stopped() {
    let stage = EvaluationStage::WithoutExecution(Limit::CpuTime);
    let effort = Effort { limits: EvaluationLimits::default(), stage };
    for row in checks_over_documents() {
        let CheckRow { rule, right, .. } = &row;
        let score = row.case().judge(right, &effort).scores["it"].as_f64().unwrap();
        let ground = rule["kind"] == "graph" && !right.contains("_:");
        let kept = ground || rule["kind"] == "schema" || rule["kind"] == "similar";
        assert_eq!(score, f64::from(u8::from(kept)), "{rule}: {right}");
    }
    let graph = json!({"kind": "graph", "literals": "value", "blank": "mapped", "ignore": []});
    let pairs = |names: std::ops::Range<u32>| -> String {
        let all = names.clone().flat_map(|a| names.clone().map(move |b| (a, b)));
        all.map(|(a, b)| format!("_:n{a} <http://e/p> _:n{b} . ")).collect()
    };
    let case = single("turtle", graph, json!(pairs(0..120))).unwrap();
    let limits =
        EvaluationLimits { query_time: std::time::Duration::from_millis(1), ..EvaluationLimits::default() };
    let verdict = case.judge(&pairs(1..120), &Effort::full(limits));
    assert_eq!(
        (&verdict.scores["it"], &verdict.infos["it_error"]),
        (&json!(0.0), &json!("A time out occurred"))
    );
}

#[test]
fn shapes_that_accept_or_reject_everything_are_worth_nothing() {
    let case = shapes().case();
    let prefixes = "@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix : <http://e/> . ";
    let judged = |shapes: &str| case.judge(&format!("{prefixes}{shapes}"), &full());
    let all = judged(":S sh:targetClass :Loan ; sh:property [ sh:path :never ; sh:minCount 1 ] .");
    assert_eq!((&all.scores["score"], &all.scores["it_reject"]), (&json!(0.0), &json!(1.0)));
    let half = judged(":S sh:targetClass :Loan ; sh:property [ sh:path :item ; sh:minCount 1 ] .");
    assert_eq!((&half.scores["score"], &half.infos["it_wrong"]), (&json!(0.5), &json!(["two"])));
    let elsewhere = judged(
        ":S sh:targetClass :Loan ; sh:property [ sh:path :item ; sh:maxCount 1 ; sh:minCount 1 ] .\
         :T sh:targetObjectsOf :item ; sh:class :Tool .",
    );
    assert_eq!(elsewhere.scores["it_accept"], 0.0);
}

#[test]
fn a_document_of_the_case_stands_around_the_answer() {
    let parameters = json!({
        "answer": {"as": "jsonld"}, "rounds": 1,
        "checks": [{"name": "it", "weight": 1.0, "rule": {"kind": "graph", "literals": "exact", "blank": "mapped", "ignore": []}}],
    });
    let data = json!({
        "wrap": r#"{"@context": {{answer}}, "@id": "http://e/a", "label": "x"}"#,
        "expected": {"it": "<http://e/a> <http://e/label> 'x' ."},
    });
    let case = case(ONE, parameters, data).unwrap();
    assert_eq!(score(&*case, r#"{"label": "http://e/label"}"#), 1.0);
    assert_eq!(score(&*case, r#"{"label": "http://e/other"}"#), 0.0);
    let breaking_out = r#"{}, "http://e/label": "x", "@context": {}"#;
    assert_eq!(score(&*case, breaking_out), 0.0, "an answer cannot end what stands around it");
}

#[test]
fn an_answer_that_is_not_right_is_told_its_scores_where_the_file_wants_it() {
    let parameters = |content: bool| {
        json!({
            "answer": {"as": "turtle"}, "rounds": 2, "content": content,
            "checks": [{"name": "it", "weight": 1.0, "rule": {"kind": "graph", "literals": "value", "blank": "equal", "ignore": []}}],
        })
    };
    let data = json!({"expected": {"it": "<http://e/a> <http://e/p> 1, 2 ."}});
    let told = |content: bool, answer: &str| {
        let case = case(BEST, parameters(content), data.clone()).unwrap();
        case.judge(answer, &full())
            .follow_up
            .map(|asked| (asked.kind, asked.fields["finding.message"].clone()))
    };
    let half = "<http://e/a> <http://e/p> 1 .";
    let message = "The answer is not right yet. Scores, of 1: it 0.67.".to_owned();
    assert_eq!(told(true, half), Some((PromptKind::Content, message)));
    assert_eq!(told(false, half), None);
    assert_eq!(told(true, "<http://e/a> <http://e/p> 1, 2 ."), None);
}

/// What is shown of an answer: its parts with what is expected and what was extracted.
fn compared(case: &dyn Exercise, answer: &str) -> Vec<(String, Option<String>, Option<String>)> {
    let infos = case.judge(answer, &full()).infos;
    let parts = case.compared(answer, &infos, &full());
    parts.into_iter().map(|part| (part.what.into_owned(), part.expected, part.extracted)).collect()
}

#[test]
fn what_a_check_expects_is_shown_beside_what_it_reads() {
    let graph = "<http://e/a> <http://e/p> <http://e/b> .";
    let list = json!({"kind": "list", "items": "text", "ordered": false, "partial": true});
    let number = json!({"kind": "number", "within": 0.0, "relative": 0.0});
    let same = json!({"kind": "graph", "literals": "exact", "blank": "mapped", "ignore": []});
    let choice = json!({"kind": "choice", "choices": ["yes", "no"]});
    let pattern = json!({"kind": "pattern", "matches": "^a"});
    for (read_as, rule, value, answer, expected, extracted) in [
        ("text", json!({"kind": "text"}), json!("Chair"), " **Chair.** ", "Chair", Some("**Chair.**")),
        ("text", json!({"kind": "text"}), json!("Chair"), " ", "Chair", None),
        ("text", pattern, json!(null), "b", "a text that matches ^a", Some("b")),
        ("text", choice, json!("yes"), "No, because.", "yes", Some("no")),
        ("number", number.clone(), json!(42), "It is 41.0.", "42", Some("41")),
        ("number", number, json!(42), "41 or 42", "42", Some("41 or 42")),
        ("list", list, json!(["b", "a"]), "- A\n- c", "a\nb", Some("a\nc")),
        ("turtle", same.clone(), json!(graph), "<http://e/a> <http://e/p> 1 .", graph, Some(INTEGER)),
        ("turtle", same, json!(graph), "oops", graph, Some("oops")),
    ] {
        let case = single(read_as, rule, value).unwrap();
        let part = ("it".to_owned(), Some(expected.to_owned()), extracted.map(str::to_owned));
        assert_eq!(compared(&*case, answer), [part], "{answer}");
    }
}

/// A triple whose object is 1.
const INTEGER: &str = "<http://e/a> <http://e/p> \"1\"^^<http://www.w3.org/2001/XMLSchema#integer> .";

#[test]
fn a_query_is_shown_with_the_rows_expected_and_the_number_found() {
    let (case, query) = (queries(ONE), "SELECT ?p { ?p a :Person }");
    let rows = "<http://example.org/lab#Cy>\n<http://example.org/lab#Di>".to_owned();
    let query_part = ("query".to_owned(), None, Some(query.to_owned()));
    let rows_part = ("rows".to_owned(), Some(rows), Some("4 rows".to_owned()));
    assert_eq!(compared(&*case, &block(query)), [query_part, rows_part]);
}

#[test]
fn where_nothing_is_expected_the_part_that_counts_is_shown() {
    let rule = json!({"kind": "schema", "schema": "{\"type\": \"array\"}"});
    let case = single("json", rule, json!(null)).unwrap();
    let part = ("answer".to_owned(), None, Some("[1]".to_owned()));
    assert_eq!(compared(&*case, "[1]"), [part]);
}
