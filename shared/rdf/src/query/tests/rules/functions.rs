//! Rules about casts, IRIs and what functions make of texts.

use super::*;

#[test]
fn only_seven_types_are_cast_to() {
    both("SELECT (xsd:date('2020-01-01') AS ?d) { }", "", "2020-01-01");
    both("SELECT (xsd:integer('3') AS ?d) { }", "3", "3");
}

#[test]
fn an_iri_is_whatever_stands_in_its_brackets() {
    both("SELECT ?n { <http://e/a[1]> :name ?n }", "", "refused");
    both("SELECT (<rel> AS ?i) { }", "rel", "rel");
}

#[test]
fn less_than_is_no_iri_where_an_operator_may_stand() {
    both("SELECT ?x { ?x :age ?a FILTER(?a<40&&?a>30) }", "a", "a");
}

#[test]
fn patterns_are_those_of_python_as_in_regex_not_before_a() {
    both("SELECT ?n { ?x :name ?n FILTER(REGEX(?n, '^(?!A)')) }", "Bob Cid", "");
    both("SELECT ?n { ?x :name ?n FILTER(REGEX(?n, '(B).\\\\1', 'i')) }", "Bob", "");
    both("SELECT ?n { ?x :name ?n FILTER(REGEX(?n, '^A')) }", "Ann", "Ann");
}

#[test]
fn a_pattern_that_is_none_raises_when_there_are_rows_as_in_regex_open_bracket() {
    both("SELECT ?n { ?x :name ?n FILTER(!REGEX(?n, '(')) }", "raised", "");
    both("SELECT ?n { ?x :nope ?n FILTER(REGEX(?n, '(')) }", "", "");
}

#[test]
fn replace_takes_flags_for_a_number_as_in_replace_i() {
    both("SELECT (REPLACE('aAaAa', 'a', 'o', 'i') AS ?x) { }", "oAoAa", "ooooo");
    both("SELECT (REPLACE('abc', '(b)', '[$1]') AS ?x) { }", "a[b]c", "a[b]c");
    both("SELECT (REPLACE('abc', '(b)', '[$2]') AS ?x) { }", "raised", "a[]c");
}

#[test]
fn substr_is_a_slice_as_in_substr_0_4() {
    both("SELECT (SUBSTR('Lantern', 2, 3) AS ?x) { }", "ant", "ant");
    both("SELECT (SUBSTR('Lantern', 0, 4) AS ?x) { }", "", "Lan");
    both("SELECT (SUBSTR('Lantern', 0) AS ?x) { }", "n", "Lantern");
}

#[test]
fn casts_read_the_text_as_in_integer_of_3_7() {
    both("SELECT (xsd:integer(3.7) AS ?x) { }", "", "3");
    both("SELECT (xsd:integer(true) AS ?x) { }", "", "1");
    both("SELECT (xsd:boolean(2005) AS ?x) { }", "", "true");
    both("SELECT (xsd:double('2') AS ?x) { }", "2.0", "2.0");
}

#[test]
fn whole_numbers_have_no_fraction_as_in_round_of_a_double() {
    both("SELECT (ROUND(2.5e0) AS ?x) (CEIL(1.2e0) AS ?y) { }", "2 3", "2.0 3.0");
    both("SELECT (ROUND(-2.5) AS ?x) { }", "-2", "-2");
}

#[test]
fn any_text_is_an_iri_as_in_iri_of_ann_lee() {
    both("SELECT (IRI('Ann Lee') AS ?x) { }", "Ann Lee", "");
}
