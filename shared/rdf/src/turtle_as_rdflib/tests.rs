//! What rdflib reads in Turtle, a kind each.

use crate::{Graph, RdfFormat};

fn read(body: &str) -> String {
    let document = format!("@prefix : <e:> . {body}");
    match Graph::parse_as_rdflib(&document, RdfFormat::Turtle) {
        Ok(graph) => graph.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | "),
        Err(_) => "refused".to_owned(),
    }
}

#[test]
fn documents_hold_what_rdflib_reads_in_them() {
    for (body, expected) in [
        (r#":a :p "\a" ."#, r#"<e:a> <e:p> "\u0007""#),
        (r#":a :p "\v\t" ."#, r#"<e:a> <e:p> "\u000B\t""#),
        (r#":a :p "\uWXYZ" ."#, r#"<e:a> <e:p> "\\uWXYZ""#),
        (r#":a :p "\q" ."#, "refused"),
        (r#":a :p """a"""" ."#, r#"<e:a> <e:p> "a\"""#),
        (r#":a :p """a""""" ."#, r#"<e:a> <e:p> "a\"\"""#),
        (r#":a :p "x" @en ."#, "refused"),
        (r#":a :p "x" ^^:t ."#, "refused"),
        (r#":a :p "x"^^ :t ."#, r#"<e:a> <e:p> "x"^^<e:t>"#),
        (":-a :p :-c , :c-d .", "<e:-a> <e:p> <e:-c> | <e:-a> <e:p> <e:c-d>"),
        (r":a\. :p :c .", "refused"),
        (r":a\-b :p :c .", "<e:a-b> <e:p> <e:c>"),
        ("_:-a :p _:-a .", "_:b0 <e:p> _:b0"),
        ("_: :p :c .", "_:b0 <e:p> <e:c>"),
        ("_:a:b :p :c .", "refused"),
        ("@prefix _: <x:> . _:a :p :c .", "<x:a> <e:p> <e:c>"),
        (":a ;; :p :c ; .", "<e:a> <e:p> <e:c>"),
        ("[] ; :p :c .", "_:b0 <e:p> <e:c>"),
        ("() . [] . [ ] . :a . \"x\" .", ""),
        ("[ :p :c ] .", "_:b0 <e:p> <e:c>"),
        (":a!:p :q :c .", "<e:a> <e:p> _:b0 | _:b0 <e:q> <e:c>"),
        (":a^:p :q :c .", "_:b0 <e:p> <e:a> | _:b0 <e:q> <e:c>"),
        (":z :q :a!:p , :b .", "<e:a> <e:p> _:b0 | <e:z> <e:q> _:b0 | <e:z> <e:q> <e:b>"),
        (":a\u{200b} :p :c .", "<e:a\u{200b}> <e:p> <e:c>"),
        ("\r:a :p :c .", "refused"),
        (
            "\r\n:a :p 1.5 , -2 , true . # c\r\n:b :p 1.\r\n",
            "<e:a> <e:p> \"1.5\"^^<http://www.w3.org/2001/XMLSchema#decimal> | <e:a> <e:p> \"-2\"^^<http://www.w3.org/2001/XMLSchema#integer> | <e:a> <e:p> \"true\"^^<http://www.w3.org/2001/XMLSchema#boolean> | <e:b> <e:p> \"1\"^^<http://www.w3.org/2001/XMLSchema#integer>",
        ),
        (r#":a :p "\u12" ."#, "refused"),
        (r#":a :p "\u12" . " ."#, r#"<e:a> <e:p> "\\u12\" . ""#),
        (r#":a :p "x"@EN , "y"@en-1 ."#, r#"<e:a> <e:p> "x"@EN | <e:a> <e:p> "y"@en-1"#),
        (r#":a :p "x"@1 ."#, "refused"),
        ("PREFIX x: <x:> x:a :p x:b .", "<x:a> <e:p> <x:b>"),
        ("PREFIX x: <x:> . x:a :p x:b .", "refused"),
        ("@PREFIX x: <x:> . x:a :p x:b .", "refused"),
        ("@prefix x:y <x:> . x:a :p x:b .", "<x:a> <e:p> <x:b>"),
        ("PREFIX x: <x:> x:a :p _:-b .", "<x:a> <e:p> _:b0"),
        (
            r#""x" :p 5 . :a _:p :c ."#,
            r#"<"x"> <e:p> "5"^^<http://www.w3.org/2001/XMLSchema#integer> | <e:a> <_:b> <e:c>"#,
        ),
        (":a :p :c . # so\r:b :p :c .", "<e:a> <e:p> <e:c>"),
        ("[ ; :p :c ] :q [ ; ] .", "_:b0 <e:p> <e:c> | _:b0 <e:q> _:b1"),
        ("PREFIX x: <http://e/[> x:a :p <http://e/[b]> .", "<http://e/[a> <e:p> <http://e/[b]>"),
        ("PREFIX x: <http://e/{> x:a :p :b .", "refused"),
        ("PREFIX :. <http://e/> :a :p :b .", "refused"),
        (":a 1a :b .", "refused"),
        (r":a\i :p :c .", "refused"),
        (r":a :p :b\i .", "refused"),
        (
            ":a :p _:-b , 1.e3 , .5 , -1.5E+2 , 7. :b :p :c .",
            "<e:a> <e:p> _:b0 | <e:a> <e:p> \"1000.0\"^^<http://www.w3.org/2001/XMLSchema#double> | <e:a> <e:p> \"0.5\"^^<http://www.w3.org/2001/XMLSchema#decimal> | <e:a> <e:p> \"-150.0\"^^<http://www.w3.org/2001/XMLSchema#double> | <e:a> <e:p> \"7\"^^<http://www.w3.org/2001/XMLSchema#integer> | <e:b> <e:p> <e:c>",
        ),
        (":a :p :b , .", "refused"),
        (":a :p :b :c .", "refused"),
        (":a = :b .", "refused"),
    ] {
        assert_eq!(read(body), expected, "{body}");
    }
    let list = read("( :a :b ) .");
    assert_eq!(list.matches("rdf-syntax-ns#first").count(), 2, "{list}");
    assert!(!list.contains("nothing") && list.split(" | ").count() == 4, "{list}");
}
