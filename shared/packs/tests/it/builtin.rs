//! The project's own pack, proved case by case.

use packs::{Pack, manifest, published_password, verify};
use results::password::Password;

/// The labels of the published files, in their order.
const LABELS: [&str; 26] = [
    "RdfConnectionExplainStatic-turtle",
    "RdfConnectionExplainStatic-jsonld",
    "RdfConnectionExplainStatic-xml",
    "RdfConnectionExplainStatic-nt",
    "Text2SparqlExecEvalListBeastiary-turtle-subgraph",
    "Text2SparqlExecEvalListBeastiary-turtle-schema",
    "Text2SparqlExecEvalListBeastiary-turtle-subschema",
    "Text2SparqlExecEvalListOrganizational",
    "Text2SparqlExecEvalListOrgaNumerical",
    "Text2SparqlExecEvalListCoypuMini",
    "SparqlSyntaxFixingListLcQuad",
    "Text2AnswerListOrga-turtle",
    "Text2AnswerListOrga-jsonld",
    "Sparql2AnswerListOrga-turtle",
    "Sparql2AnswerListOrga-jsonld",
    "RdfFriendCount-turtle-1",
    "RdfFriendCount-turtle-2",
    "RdfFriendCount-jsonld-1",
    "RdfFriendCount-jsonld-2",
    "RdfFriendCount-xml-1",
    "RdfFriendCount-xml-2",
    "RdfFriendCount-nt-1",
    "RdfFriendCount-nt-2",
    "RdfSyntaxFixList-turtle",
    "RdfSyntaxFixList-jsonld",
    "RdfSyntaxFixList-nt",
];

#[test]
fn the_default_tasks_are_the_26_of_the_published_run_in_their_order() {
    let pack = Pack::builtin().unwrap();
    let listed = pack.list();
    let default: Vec<_> = listed.iter().filter(|line| line.default).map(|line| line.label.as_str()).collect();
    assert_eq!(default, LABELS);
    for line in &listed {
        let newest = tasks::TaskClass::version_of(&line.class);
        assert_eq!(newest, Some(line.version.as_str()), "{}: own exercises use the newest rules", line.label);
        let list_task = line.class.contains("List");
        assert_eq!(line.cases.len(), if list_task { 5 } else { 1 }, "{}", line.label);
    }
}

#[test]
fn every_case_is_what_it_claims_to_be() {
    let report = verify(&Pack::builtin().unwrap());
    let findings: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    assert!(findings.is_empty(), "{} findings:\n{}", findings.len(), findings.join("\n"));
    assert_eq!(report.answers_missing, 0, "every own case has answers of known worth");
    // Six checks of prompt and answers at the least, or the proof has become empty.
    assert!(report.passed >= 6 * report.cases, "{report:?}");
}

#[test]
fn verification_finds_a_case_that_is_not_what_it_claims_to_be() {
    let pack = Pack::builtin().unwrap();
    let mut parts = packs::Parts::new("spoilt");
    for (path, content) in pack.parts().iter() {
        let mut content = content.to_vec();
        if path == "tasks/RdfFriendCount-turtle-1.toml" {
            // The two answers change places.
            let text = String::from_utf8(content).unwrap();
            let text = text.replace("wrongAnswer", "spare").replace("referenceAnswer", "wrongAnswer");
            content = text.replace("spare", "referenceAnswer").into_bytes();
        }
        parts.insert(path, content).unwrap();
    }
    let report = verify(&Pack::from_parts(parts).unwrap());
    let messages: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    assert_eq!(messages.len(), 3, "{messages:?}");
    assert!(
        messages[0].starts_with("RdfFriendCount-turtle-1/friends-1: the reference answer scores 0"),
        "{messages:?}"
    );
    assert!(messages[2].contains("the wrong answer scores full marks"), "{messages:?}");
}

#[test]
fn the_manifest_beside_the_pack_is_its_own() {
    let sealed = concat!(env!("CARGO_MANIFEST_DIR"), "/../../task-data/kgfleet-core.kgpack");
    let pack = Pack::open(sealed.as_ref(), &published_password()).unwrap();
    assert_eq!(pack.hash(), Pack::builtin().unwrap().hash());
    let beside = std::fs::read(packs::manifest_path(sealed.as_ref())).unwrap();
    assert!(
        beside == pack.manifest().to_bytes(),
        "seal the pack again: the manifest in the clear is another one"
    );
    assert_eq!(manifest::Manifest::of(pack.parts()).unwrap(), *pack.manifest());
}

#[test]
fn prompts_hold_everything_their_task_needs_and_no_placeholder_is_left() {
    let pack = Pack::builtin().unwrap();
    for task in pack.build().unwrap() {
        for iteration in 0..u32::try_from(task.cases().len()).unwrap() {
            let prompt = task.first_prompt(iteration, 7).unwrap().text;
            assert!(!prompt.contains("{{") && prompt.len() > 200, "{} {iteration}", task.label);
        }
    }
}

#[test]
fn cases_are_found_by_name() {
    let pack = Pack::builtin().unwrap();
    assert_eq!(pack.show("museum-nt-escaping").unwrap().0.label.as_str(), "RdfSyntaxFixList-nt");
    let shared = pack.show("bestiary-rating").unwrap_err().to_string();
    assert!(shared.contains("Text2SparqlExecEvalListBeastiary-turtle-schema/bestiary-rating"), "{shared}");
    assert!(pack.show("Text2SparqlExecEvalListBeastiary-turtle-schema/bestiary-rating").is_ok());
    assert!(pack.show("nonsense").unwrap_err().to_string().contains("`nonsense`"));
}

#[test]
fn a_pack_put_together_by_a_program_reads_back() {
    let original = Pack::builtin().unwrap();
    let mut parts = packs::Parts::new("copy");
    let mut header = original.header().clone();
    header.protected = true;
    header.graphs.retain(|graph| graph.name == "bestiary");
    parts.insert_header(&header).unwrap();
    for task in original.tasks() {
        parts.insert_task(task).unwrap();
    }
    let password = Password::new("ours");
    let copy = Pack::open_bytes("copy", &packs::seal(&parts, &password).unwrap(), &password).unwrap();
    assert_eq!(copy.tasks(), original.tasks());
    assert_eq!(copy.header(), &header);
    let error = copy.build().err().unwrap().to_string();
    assert!(error.contains("copy: ") && error.contains("supply-chain"), "{error}");
}
