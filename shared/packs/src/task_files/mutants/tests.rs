use super::*;

fn prefixes() -> PrefixTable {
    let mut prefixes = crate::task_files::graphs::usual_prefixes();
    prefixes.insert("", "http://e/");
    prefixes
}

fn missing(body: &str, reading: AnswerReading) -> Vec<String> {
    of(body, reading, &prefixes()).into_iter().map(|mutant| mutant.without).collect()
}

#[test]
fn shapes_lose_a_constraint_and_nothing_else() {
    let shapes = ":S a sh:NodeShape ; sh:targetClass :L ; sh:property [ sh:path :item ; sh:minCount 1 ; sh:class :T ] .";
    assert_eq!(missing(shapes, AnswerReading::Shapes), [":item sh:minCount 1", ":item sh:class :T"]);
    let first = of(shapes, AnswerReading::Shapes, &prefixes()).remove(0).body;
    assert!(!first.contains("minCount") && first.contains("shacl#class"), "{first}");
}

#[test]
fn queries_lose_a_clause_or_a_column() {
    let query = "SELECT DISTINCT ?a (COUNT(?b) AS ?n) { ?a :p ?b FILTER (?b > 1) OPTIONAL { ?a :q \"}\" } FILTER NOT EXISTS { ?a \
                 :r ?c } } GROUP BY ?a HAVING (COUNT(?b) > 2)";
    assert_eq!(
        missing(query, AnswerReading::Sparql),
        [
            "FILTER (?b > 1)",
            "OPTIONAL { ?a :q \"}\" }",
            "FILTER NOT EXISTS { ?a :r ?c }",
            "HAVING (COUNT(?b) > 2)",
            "?a",
            "(COUNT(?b) AS ?n)"
        ]
    );
    assert_eq!(missing("ASK { ?a :p ?b }", AnswerReading::Sparql), Vec::<String>::new());
    assert_eq!(missing("SELECT ?a { FILTER (((", AnswerReading::Sparql), Vec::<String>::new());
}

#[test]
fn lists_lose_an_item_and_graphs_a_triple() {
    assert_eq!(missing("a\nb\n", AnswerReading::List), ["a", "b"]);
    assert_eq!(missing("[{\"x\": 1}, 2]", AnswerReading::Json), ["{\"x\":1}", "2"]);
    assert_eq!(missing(":a :p [ :q 1 ] .", AnswerReading::Turtle).len(), 2);
    assert_eq!(missing("one", AnswerReading::List), Vec::<String>::new());
    let many: String = (0..100).map(|n| format!("{n}\n")).collect();
    assert_eq!(missing(&many, AnswerReading::List).len(), MUTANTS_MAX);
}
