//! Reads Turtle answers for the single-shot classes, which accept as much as possible of a broken document.

use rdf::literal::rdflib_lexical;
use rdf::{Graph, Literal, Term, parse_turtle_tolerantly};

use crate::exercise::{Effort, EvaluationStage, Limit};
use crate::text::python::splitlines;

/// The readable part of a document.
pub(crate) struct Readable {
    /// The triples that remain without the broken lines.
    pub(crate) graph: Graph,
    /// The limit because of which it was not read.
    pub(crate) limit: Option<Limit>,
}

/// Reads a document as far as the effort allows.
pub(crate) fn read(document: &str, effort: &Effort) -> Readable {
    let limit = match effort.stage {
        EvaluationStage::WithoutParsing(limit) => Some(limit),
        _ if document.len() > effort.limits.answer_bytes_max => Some(Limit::Size),
        _ => None,
    };
    let graph = match limit {
        Some(_) => Graph::default(),
        None => parse_turtle_tolerantly(document, &splitlines(document)),
    };
    Readable { graph, limit }
}

impl Readable {
    /// The triples as N-Triples with literals as rdflib normalises them, for people who read the record.
    pub(crate) fn ntriples(&self) -> String {
        let line = |triple: &rdf::Triple| {
            format!("{} {} {} .\n", triple.subject, triple.predicate, written(&triple.object))
        };
        self.graph.iter().map(line).collect()
    }
}

/// A term in N-Triples, literals as rdflib normalises them.
pub(crate) fn written(term: &Term) -> String {
    match term {
        Term::Literal(literal) if literal.language().is_none() => {
            let lexical = rdflib_lexical(literal.value(), literal.datatype().as_str());
            Literal::new_typed_literal(lexical, literal.datatype()).to_string()
        }
        _ => term.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exercise::EvaluationLimits;

    const DOCUMENT: &str = "<http://a/s> <http://a/p> 1.5e1 , 'x'@en .\n<http://a/s> oops\n";

    #[test]
    fn what_can_be_read_is_read() {
        let readable = read(DOCUMENT, &Effort::full(EvaluationLimits::default()));
        assert_eq!(readable.limit, None);
        assert_eq!(
            readable.ntriples(),
            "<http://a/s> <http://a/p> \"15.0\"^^<http://www.w3.org/2001/XMLSchema#double> .\n\
             <http://a/s> <http://a/p> \"x\"@en .\n"
        );
    }

    #[test]
    fn a_limit_leaves_nothing_and_is_named() {
        let limits = EvaluationLimits { answer_bytes_max: DOCUMENT.len() - 1, ..EvaluationLimits::default() };
        let short = read(DOCUMENT, &Effort::full(limits));
        let died = Effort {
            stage: EvaluationStage::WithoutParsing(Limit::Crash),
            ..Effort::full(EvaluationLimits::default())
        };
        let died = read(DOCUMENT, &died);
        assert_eq!((short.graph.len(), short.limit), (0, Some(Limit::Size)));
        assert_eq!((died.graph.len(), died.limit), (0, Some(Limit::Crash)));
    }
}
