//! Queries of own tasks, which are read by the standard, against what the standard says: the kinds of the W3C's tests of
//! property paths, aggregates and functions, written anew.

use super::{Dialect, found_in};

const DATA: &str = "@prefix : <http://e/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
    :a :p :b . :b :p :c . :c :p :a , :d . :d :q :e . :a :q :c . :a :r 'x' . :l :list ( 1 2 ) .
    :n1 :int 1 , 2 ; :dec 1.0 , 2.2 ; :in :g1 . :n2 :int 3 ; :dec 3.5 ; :dbl 1.0e2 ; :in :g1 .
    :n3 :int 4 ; :bad '1'@en ; :in :g2 .
    :s1 :text 'foo' . :s2 :text 'bar'@en . :s3 :text 'BAZ' . :s4 :text '100%' .
    :d1 :date '2010-06-21T11:28:01Z'^^xsd:dateTime . :d2 :date '2010-12-21T15:38:02-08:00'^^xsd:dateTime .";

/// Queries with the local names and texts of what they find, sorted.
type Table = &'static [(&'static str, &'static str)];

const PATHS: Table = &[
    ("SELECT ?x { :a :p/:p ?x }", "c"),
    ("SELECT ?x { ?x ^:p :a }", "b"),
    ("SELECT ?x { :a (:p|:q) ?x }", "b c"),
    ("SELECT ?x { :a :p* ?x }", "a b c d"),
    ("SELECT ?x { :a :p+ ?x }", "a b c d"),
    ("SELECT ?x { :d :p? ?x }", "d"),
    ("SELECT ?x { ?x :p* :none }", "none"),
    ("SELECT ?x { :none :p? ?x }", "none"),
    ("SELECT ?x { :none :p+ ?x }", ""),
    ("SELECT ?x { :a (:p/:p)* ?x }", "a b c d"),
    ("SELECT ?x { :a (:p|:q)+ ?x }", "a b c d e"),
    ("SELECT ?x { :a !:p ?x }", "c x"),
    ("SELECT ?x { :a !(:p|:q) ?x }", "x"),
    ("SELECT ?x { :c !^:p ?x }", "a"),
    ("SELECT ?x { :c !(^:p|:q) ?x }", "a a d"),
    ("SELECT ?x { :d ^(:p/:p) ?x }", "b"),
    ("SELECT ?x { VALUES ?s { :none :d } ?s :p* ?x }", "d none"),
    (r#"SELECT ?x { "x" ^:r/:p ?x }"#, "b"),
    (r#"SELECT ?x { "y" :p* ?x }"#, "y"),
    ("SELECT ?x { :l :list/rdf:rest*/rdf:first ?x }", "1 2"),
    ("SELECT ?x { :a (:p*)* ?x }", "a b c d"),
    ("SELECT ?x { :b :p{2} ?x }", "refused"),
];

const AGGREGATES: Table = &[
    ("SELECT (COUNT(*) AS ?n) { ?s :p ?o }", "4"),
    ("SELECT (COUNT(DISTINCT ?s) AS ?n) { ?s :p ?o }", "3"),
    ("SELECT ?g (COUNT(?s) AS ?n) { ?s :in ?g } GROUP BY ?g HAVING(COUNT(?s) > 1)", "2 g1"),
    ("SELECT (SUM(?o) AS ?n) { ?s :dec ?o }", "6.7"),
    ("SELECT (AVG(?o) AS ?n) { ?s :int ?o }", "2.5"),
    ("SELECT (AVG(?o) AS ?n) { ?s :none ?o }", "0"),
    ("SELECT (SUM(?o) AS ?n) { ?s :none ?o }", "0"),
    ("SELECT (MIN(?o) AS ?n) (MAX(?o) AS ?m) { ?s :int ?o }", "1 4"),
    ("SELECT (MIN(?o) AS ?n) { ?s :none ?o }", ""),
    ("SELECT (SUM(?o) AS ?n) { ?s :int|:bad ?o }", ""),
    ("SELECT (AVG(?o) AS ?n) { ?s :int|:bad ?o }", ""),
    ("SELECT (MAX(?o) AS ?n) { ?s :dec|:dbl|:int ?o }", "1.0e2"),
    (r#"SELECT (GROUP_CONCAT(?o; SEPARATOR=":") AS ?n) { { SELECT ?o { ?s :int ?o } ORDER BY ?o } }"#, ""),
    ("SELECT (GROUP_CONCAT(?o) AS ?n) { ?s :none ?o }", ""),
    ("SELECT (SAMPLE(?o) AS ?n) { :n2 :int ?o }", "3"),
    ("SELECT (SUM(DISTINCT ?o) AS ?n) { VALUES ?o { 1 1 2 } }", "3"),
    ("SELECT (COUNT(?z) AS ?n) { ?s :p ?o }", "0"),
    ("SELECT ?g { ?s :in ?g ; :int ?i } GROUP BY ?g HAVING(SUM(?i) >= 6)", "g1"),
    ("SELECT (SUM(?i)*2 AS ?n) { ?s :int ?i }", "20"),
    ("SELECT ((MIN(?p)+MAX(?p))/2 AS ?n) { ?s :dec ?p }", "2.25"),
];

const FUNCTIONS: Table = &[
    ("SELECT (STRLEN(?t) AS ?x) { :s1 :text ?t }", "3"),
    ("SELECT (UCASE(?t) AS ?x) { :s2 :text ?t }", "BAR"),
    ("SELECT (LANG(UCASE(?t)) AS ?x) { :s2 :text ?t }", "en"),
    ("SELECT (LCASE(?t) AS ?x) { :s3 :text ?t }", "baz"),
    ("SELECT (SUBSTR(?t,2) AS ?x) (SUBSTR(?t,1,1) AS ?y) { :s1 :text ?t }", "f oo"),
    (
        r#"SELECT (CONTAINS(?t,"o") AS ?x) (STRSTARTS(?t,"f") AS ?y) (STRENDS(?t,"f") AS ?z) { :s1 :text ?t }"#,
        "false true true",
    ),
    (r#"SELECT (STRBEFORE(?t,"a") AS ?x) (STRAFTER(?t,"a") AS ?y) { :s2 :text ?t }"#, "b r"),
    (r#"SELECT (STRBEFORE("abc","z") AS ?x) (STRAFTER("abc","") AS ?y) { }"#, " abc"),
    (r#"SELECT (STRBEFORE("abc","b"@en) AS ?x) { }"#, ""),
    ("SELECT (ENCODE_FOR_URI(?t) AS ?x) { :s4 :text ?t }", "100%25"),
    (r#"SELECT (CONCAT("a"@en,"b"@en) AS ?x) (LANG(CONCAT("a"@en,"b"@en)) AS ?y) { }"#, "ab en"),
    (r#"SELECT (LANG(CONCAT("a"@en,"b")) AS ?y) { }"#, ""),
    (r#"SELECT (CONCAT("a",1) AS ?x) { }"#, ""),
    (
        r#"SELECT (REPLACE("abcb","b","Z") AS ?x) (REPLACE("abab","B","Z","i") AS ?y) (REPLACE("banana","a(n)","[$1]") AS ?z) { }"#,
        "aZaZ aZcZ b[n][n]a",
    ),
    (r#"SELECT (REGEX("abc","^A","i") AS ?x) { }"#, "true"),
    (
        "SELECT (ABS(-1.5) AS ?a) (CEIL(1.2) AS ?b) (FLOOR(-1.2) AS ?c) (ROUND(2.5) AS ?d) (ROUND(-2.5) AS ?e) { }",
        "-2 -2 1.5 2 3",
    ),
    (
        "SELECT (YEAR(?d) AS ?y) (MONTH(?d) AS ?m) (DAY(?d) AS ?k) (HOURS(?d) AS ?h) (MINUTES(?d) AS ?n) (SECONDS(?d) AS ?s) (TZ(?d) AS ?z) (TIMEZONE(?d) AS ?w) { :d2 :date ?d }",
        "-08:00 -PT8H 12 15 2 2010 21 38",
    ),
    ("SELECT (TZ(?d) AS ?z) (TIMEZONE(?d) AS ?w) { :d1 :date ?d }", "PT0S Z"),
    (r#"SELECT (IF(1=1,"y","n") AS ?x) (IF(?u,"y","n") AS ?y) (COALESCE(?u,1/0,"z") AS ?z) { }"#, "y z"),
    (
        "SELECT (1 IN (1.0,2) AS ?x) (3 NOT IN (1,2) AS ?y) (1 IN (1/0,1) AS ?z) (2 IN (1/0,1) AS ?w) { }",
        "true true true",
    ),
    (
        r#"SELECT (ISNUMERIC(1) AS ?a) (ISNUMERIC("1") AS ?b) (ISIRI(:a) AS ?c) (ISLITERAL("x"@en) AS ?d) (ISBLANK(BNODE()) AS ?e) { }"#,
        "false true true true true",
    ),
    (
        r#"SELECT (IRI("http://x/y") AS ?x) (STRDT("5",xsd:integer)+1 AS ?y) (STRLANG("x","fr") AS ?z) { }"#,
        "6 x y",
    ),
    (r#"SELECT (STRDT("5"@en,xsd:integer) AS ?x) { }"#, ""),
    (
        r#"SELECT (MD5("abc") AS ?x) (SHA1("abc") AS ?y) { }"#,
        "900150983cd24fb0d6963f7d28e17f72 a9993e364706816aba3e25717850c26c9cd0d89d",
    ),
    (
        r#"SELECT (DATATYPE("x") AS ?x) (DATATYPE("x"@en) AS ?y) (DATATYPE(1.5) AS ?z) { }"#,
        "decimal langString string",
    ),
    (r#"SELECT (SAMETERM(1,1.0) AS ?x) (1 = 1.0 AS ?y) ("a" = "a"@en AS ?z) { }"#, "false false true"),
    (
        r#"SELECT (xsd:integer("7") AS ?a) (xsd:integer("x") AS ?b) (xsd:boolean("1") AS ?c) (xsd:double("1") = 1 AS ?e) { }"#,
        "7 true true",
    ),
    ("SELECT (STR(?d) AS ?x) { :n1 :dec ?d }", "1.0 2.2"),
    ("SELECT (1/2 AS ?x) (7/0 AS ?y) (7e0/0 AS ?z) { }", "0.5 INF"),
    (
        r#"SELECT (BNODE("a") = BNODE("a") AS ?x) (BNODE("a") = BNODE("b") AS ?y) (STRLEN(STRUUID()) AS ?z) { }"#,
        "36 false true",
    ),
];

fn compare(table: Table) {
    let found = |query: &str| found_in(DATA, Dialect::Standard, query);
    let differs = |(query, expected): &&(&str, &str)| found(query) != *expected;
    let different: Vec<_> = table.iter().filter(differs).map(|(query, _)| (*query, found(query))).collect();
    assert!(different.is_empty(), "{different:#?}");
}

#[test]
fn paths_find_what_the_standard_says() {
    compare(PATHS);
}

#[test]
fn aggregates_come_to_what_the_standard_says() {
    compare(AGGREGATES);
}

#[test]
fn functions_compute_what_the_standard_says() {
    compare(FUNCTIONS);
}
