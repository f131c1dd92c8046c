use serde_json::{Map, Value, json};

use super::*;
use crate::exercise::ReadOnce;

fn data() -> Map<String, Value> {
    let data = json!({
        "uid": "tower-height-brackets",
        "testSparql": "SELECT ?h WHERE wd:Q17 p:P2048 ?st . ?st ps:P2048 ?h ; pq:P585 ?t }",
        "refSparql": "SELECT ?h WHERE { wd:Q17 p:P2048 ?st . ?st ps:P2048 ?h ; pq:P585 ?t \
                      FILTER(contains(YEAR(?t), '1987')) }",
        "refResultSet": ["324"],
    });
    data.as_object().unwrap().clone()
}

fn exercise_of(data: &Map<String, Value>) -> Result<Box<dyn Exercise>, CaseError> {
    let parameters = Map::new();
    let input = CaseInput {
        class: "SparqlSyntaxFixingList",
        version: "5.1.2",
        parameters: &parameters,
        data,
        first_prompt: None,
        once: &ReadOnce::default(),
    };
    exercise(&input, &GraphLibrary::default())
}

#[test]
fn the_first_prompt_quotes_the_case_or_our_parser() {
    let opening = exercise_of(&data()).unwrap().opening(0);
    assert_eq!(json!(opening["testSparql"]), data()["testSparql"]);
    assert!(!opening["errorMessage"].is_empty());
    let mut given = data();
    given.insert("errorMessage".into(), "there is no opening bracket".into());
    assert_eq!(exercise_of(&given).unwrap().opening(0)["errorMessage"], "there is no opening bracket");
    let mut whole = data();
    whole["testSparql"] = whole["refSparql"].clone();
    let error = exercise_of(&whole).err();
    assert!(matches!(error, Some(CaseError::Field { field: "testSparql", .. })), "{error:?}");
}
