//! Normal forms of graphs: sets of lines that can be compared.
//!
//! Blank nodes have no names of their own, so both forms give all of them one label. Blank nodes that differ only in
//! their label then collapse into one line, in the published scores as in ours.

use crate::graph::Graph;
use crate::literal::rdflib_lexical;
use oxrdf::{Literal, NamedOrBlankNode, Term, Triple};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Which of the benchmark's two normal forms to produce. Lines end in ` .`, and literals have the form in which rdflib keeps
/// them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NormalForm {
    /// RdfSyntaxFix: N-Triples lines and always one empty line.
    RdfSyntaxFix,
    /// The older classes: blank nodes as `_:unifiedBlankNode`, and the empty line only for a non-empty graph.
    Classic,
}

/// The set of normal lines of a graph.
pub fn normal_lines(graph: &Graph, form: NormalForm) -> BTreeSet<String> {
    let mut lines: BTreeSet<String> =
        graph.iter().map(|triple| normal_line(triple, form, graph.has_rdflib_forms())).collect();
    if form == NormalForm::RdfSyntaxFix || !lines.is_empty() {
        lines.insert(String::new());
    }
    lines
}

/// The sorted lines joined by newline.
pub fn normal_text(lines: &BTreeSet<String>) -> String {
    lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
}

/// `is_written` tells that literals have their form already.
fn normal_line(triple: &Triple, form: NormalForm, is_written: bool) -> String {
    let blank = match form {
        NormalForm::RdfSyntaxFix => "_:b",
        NormalForm::Classic => "_:unifiedBlankNode",
    };
    let mut line = String::with_capacity(160);
    // Writing into a string does not fail.
    let _ = match &triple.subject {
        NamedOrBlankNode::NamedNode(node) => write!(line, "{node}"),
        NamedOrBlankNode::BlankNode(_) => write!(line, "{blank}"),
    };
    let _ = write!(line, " {} ", triple.predicate);
    let _ = match &triple.object {
        Term::NamedNode(node) => write!(line, "{node}"),
        Term::BlankNode(_) => write!(line, "{blank}"),
        Term::Literal(literal) if is_written => write!(line, "{literal}"),
        Term::Literal(literal) => write!(line, "{}", normal_literal(literal)),
    };
    line.push_str(" .");
    line
}

fn normal_literal(literal: &Literal) -> Literal {
    if literal.language().is_some() {
        return literal.clone();
    }
    let lexical = rdflib_lexical(literal.value(), literal.datatype().as_str());
    Literal::new_typed_literal(lexical, literal.datatype())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::RdfFormat;

    fn lines(text: &str, form: NormalForm) -> Vec<String> {
        let graph = Graph::parse(text, RdfFormat::Turtle, None).unwrap();
        normal_lines(&graph, form).into_iter().collect()
    }

    #[test]
    fn equal_looking_blank_nodes_collapse() {
        let text = "@prefix e: <http://e/> . [] a e:C . [] a e:C . e:s e:p 1.50 .";
        let expected =
            ["", "<http://e/s> <http://e/p> \"1.50\"^^<http://www.w3.org/2001/XMLSchema#decimal> ."];
        let found = lines(text, NormalForm::RdfSyntaxFix);
        assert_eq!(found.len(), 3);
        assert_eq!(found[..2], expected);
        assert_eq!(found[2], "_:b <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://e/C> .");
    }

    #[test]
    fn the_empty_line_is_always_there_or_only_with_triples() {
        assert_eq!(lines("", NormalForm::RdfSyntaxFix), [""]);
        assert!(lines("", NormalForm::Classic).is_empty());
        assert_eq!(lines("<s> <p> <o> .", NormalForm::Classic).len(), 2);
    }

    #[test]
    fn literals_have_the_form_in_which_rdflib_keeps_them() {
        let text = "@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
            <http://s> <http://p> \"1200\"^^xsd:double, 'x'@en, +7, '2024-01-01T00:00:00Z'^^xsd:dateTime, 'yes'^^xsd:boolean .";
        for form in [NormalForm::Classic, NormalForm::RdfSyntaxFix] {
            let found = lines(text, form).join("\n").replace("^^<http://www.w3.org/2001/XMLSchema#", "^^<");
            let expected = "\n<http://s> <http://p> \"1200.0\"^^<double> .\n\
                <http://s> <http://p> \"2024-01-01T00:00:00+00:00\"^^<dateTime> .\n\
                <http://s> <http://p> \"7\"^^<integer> .\n<http://s> <http://p> \"false\"^^<boolean> .\n\
                <http://s> <http://p> \"x\"@en .";
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn text_is_sorted_by_code_point() {
        let graph =
            Graph::parse("<http://b> <http://p> 1 . <http://a> <http://p> 1 .", RdfFormat::Turtle, None);
        let text = normal_text(&normal_lines(&graph.unwrap(), NormalForm::RdfSyntaxFix));
        assert!(text.starts_with("\n<http://a>"), "{text}");
    }
}
