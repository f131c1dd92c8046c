//! What rdflib reads in documents, a kind each.

use crate::{Graph, RdfFormat};

fn lines(document: &str) -> String {
    let Ok(graph) = Graph::parse_as_rdflib(document, RdfFormat::JsonLd) else {
        return "refused".to_owned();
    };
    let line = |triple: &crate::Triple| {
        triple.to_string().replace("http://www.w3.org/2001/XMLSchema#", "").replace("http://e/", "")
    };
    let mut lines: Vec<String> = graph.iter().map(line).collect();
    lines.sort();
    lines.join(" . ").replace("http://www.w3.org/1999/02/22-rdf-syntax-ns#type", "a")
}

#[test]
fn documents_hold_what_rdflib_reads_in_them() {
    for (document, expected) in [
        (r#"{"@context":{"":"http://e/"},"@id":":a",":p":2}"#, r#"<a> <p> "2"^^<integer>"#),
        (
            r#"{"@context":{"":"http://e/","q":{"@id":"http://e/q","@type":"@id"}},"@id":":a","@type":":T","q":":b"}"#,
            "<a> <a> <T> . <a> <q> <b>",
        ),
        (r#"{"@context":{"@version":1.0},"@id":"http://e/a","http://e/p":"x"}"#, r#"<a> <p> "x""#),
        (r#"{"@id":"http://e/a","http://e/p":{"@value":"x","@language":null}}"#, r#"<a> <p> "x""#),
        (r#"{"@id":"http://e/a","http://e/p":{"@value":5,"@language":"en"}}"#, r#"<a> <p> "5"^^<integer>"#),
        (r#"{"@id":"http://e/a","http://e/p":{"@value":"x","@type":null}}"#, r#"<a> <p> "x""#),
        (r#"{"@id":"http://e/a","http://e/p":{"@value":"x","@type":"@id"}}"#, r#"<a> <p> "x""#),
        (r#"{"@id":"http://e/a","http://e/p":{"@value":"x","foo":1}}"#, r#"<a> <p> "x""#),
        (r#"{"@id":"http://e/a","http://e/p":{"@id":null}}"#, "<a> <p> _:b0"),
        (r#"{"@id":"http://e/a","http://e/p":{"@id":5}}"#, "<a> <p> _:b0"),
        (r#"{"@id":"http://e/a","@type":{"@id":"http://e/T"}}"#, "<a> <a> <T>"),
        (
            r#"{"@id":"http://e/a","@type":[{"@id":"http://e/T"},null,"http://e/U"]}"#,
            "<a> <a> <T> . <a> <a> <U>",
        ),
        (r#"{"@id":"http://e/a","@type":null,"http://e/p":1}"#, r#"<a> <p> "1"^^<integer>"#),
        (r#"{"@id":"http://e/a","http://e/p":{"@value":["x","y"]}}"#, r#"<a> <p> "['x', 'y']""#),
        (r#"{"@id":"http://e/a","@foo":5,"http://e/p":"x"}"#, r#"<a> <p> "x""#),
        (r#"{"@context":{"@foo":5,"e":5},"@id":"http://e/a","http://e/p":"x"}"#, r#"<a> <p> "x""#),
        (
            r#"{"@context":{"e":"http://e/","t":{"@container":"@type","@id":"e:p"}},"@id":"e:s","t":{"e:T":{"@id":"e:a"},"e:U":[{"@id":"e:b"}]}}"#,
            "<a> <a> <T> . <s> <p> <a> . <s> <p> <b>",
        ),
        (
            r#"{"@id":"http://e/a","http://e/p":[1.0,1e30,{"@value":2.5}]}"#,
            r#"<a> <p> "1.0"^^<double> . <a> <p> "1e+30"^^<double> . <a> <p> "2.5"^^<double>"#,
        ),
        (
            r#"{"@context":{"p":{"@id":"http://e/p","@type":"http://e/t"}},"@id":"http://e/a","p":1.5}"#,
            r#"<a> <p> "1.5"^^<t>"#,
        ),
        (
            r#"{"@id":"http://e/a","odd":[{"@id":"http://e/b","http://e/p":1}],"http://e/p":"x"}"#,
            r#"<a> <p> "x""#,
        ),
        (
            r#"{"@context":{"l":{"@id":"http://e/p","@container":"@language"}},"@id":"http://e/a","l":{"en":"x"}}"#,
            r#"<a> <p> "x"@en"#,
        ),
        (
            r#"{"@context":{"id":"@id","type":"@type","p":{"@id":"http://e/p","@type":"@id"}},"id":"http://e/a","type":"http://e/T","p":"http://e/b"}"#,
            "<a> <a> <T> . <a> <p> <b>",
        ),
        (
            r#"{"@context":{"val":"@value","lang":"@language"},"@id":"http://e/a","http://e/p":{"val":"x","lang":"en"}}"#,
            r#"<a> <p> "x"@en"#,
        ),
        (r#"{"@context":{"@vocab":"v/"},"@id":"http://e/a","q":2,"@odd":1}"#, r#"<a> <v/q> "2"^^<integer>"#),
        (r#"{"@id":":a","http://e/p":1}"#, r#"<http://example.org/base/:a> <p> "1"^^<integer>"#),
        (r#"{"@id":"http://e/a b","http://e/p":1}"#, ""),
        (r#"{"@id":"http://e/a","http://e/p":{"@id":"http://e/a b"}}"#, ""),
        (
            r#"{"@context":{"p":{"@id":"http://e/p","@type":"http://www.w3.org/2001/XMLSchema#double"}},"@id":"http://e/a","p":[5,"5"]}"#,
            r#"<a> <p> "5"^^<double> . <a> <p> "5.0"^^<double>"#,
        ),
        (
            r#"{"@context":{"p":{"@id":"http://e/p","@type":"@id"}},"@id":"http://e/a","p":[5,true]}"#,
            r#"<a> <p> "5"^^<integer> . <a> <p> "true"^^<boolean>"#,
        ),
        (
            r#"{"@context":{"p":{"@id":"http://e/p","@container":"@id"}},"@id":"http://e/a","p":{"http://e/b":{"http://e/q":1},"c":"x"}}"#,
            r#"<a> <p> "x" . <a> <p> <b> . <b> <q> "1"^^<integer>"#,
        ),
        (
            r#"{"@context":{"p":{"@id":"http://e/p","@container":"@language"}},"@id":"http://e/a","p":["x",{"@value":"y","@language":"de"}]}"#,
            r#"<a> <p> "x" . <a> <p> "y"@de"#,
        ),
        (
            r#"{"@context":{"p":{"@id":"http://e/p","@container":"@language"}},"@id":"http://e/a","p":{"en_US":"x"}}"#,
            "refused",
        ),
        (r#"{"@context":{"@language":"en_US"},"@id":"http://e/a","http://e/p":5}"#, "refused"),
        (
            r#"{"@context":{"@language":"en_US"},"@id":"http://e/a","http://e/p":5.5}"#,
            r#"<a> <p> "5.5"^^<double>"#,
        ),
        (r#"{"@context":{"p":{"@reverse":"http://e/p"}},"@id":"http://e/a","p":"x"}"#, r#"<"x"> <p> <a>"#),
        (
            r#"{"@context":{"p":{"@id":"http://e/p","@type":"@json"}},"@id":"http://e/a","p":{"b":1,"a":[2.0]}}"#,
            r#"<a> <p> "{\"a\":[2.0],\"b\":1}"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#JSON>"#,
        ),
        (r#"{"@context":{"a":"b:x","b":"a:y"},"@id":"http://e/a","http://e/p":1}"#, "refused"),
        (r#"{"@context":{"a b":"http://e/"},"@id":"http://e/a","http://e/p":1}"#, "refused"),
        (r#"{"@context":{"p":{"@id":5}},"@id":"http://e/a","http://e/p":1}"#, "refused"),
        (r#"{"@id":"_:g","@graph":[{"@id":"http://e/a","http://e/p":1}]}"#, ""),
        (
            r#"{"@context":{"n":"@nest"},"n":{"@id":"http://e/a","http://e/p":1},"http://e/q":2}"#,
            r#"<a> <p> "1"^^<integer> . <a> <q> "2"^^<integer>"#,
        ),
        (
            r#"{"@context":{"T":{"@id":"http://e/T","@context":{"q":"http://e/q"}}},"@id":"http://e/a","@type":"T","q":{"@id":"http://e/b","q":1}}"#,
            "<a> <a> <T> . <a> <q> <b>",
        ),
        (r#"{"@id":"<http://e/a>","http://e/p":1}"#, "refused"),
        (r#"{"@id":"http://e/a","http://e/p q":1}"#, "refused"),
        (r#"{"@context":{"@vocab":"http://e/"},"@id":"http://e/a","p q":1}"#, "refused"),
        (r#"{"@id":"http://e/a","http://e/p":{"@value":"x","@language":"en_US"}}"#, "refused"),
        (r#"{"@context":{"@language":"en_US"},"@id":"http://e/a","http://e/p":"x"}"#, "refused"),
    ] {
        assert_eq!(lines(document), expected, "{document}");
    }
}
