//! The indexed graph that queries run on.
//!
//! Terms are numbered, and the triples lie sorted in three orders (subject-predicate-object, predicate-object-subject,
//! object-subject-predicate), so that each of the eight patterns is one range of one order. An index entry takes 12
//! bytes: three orders of 100 000 triples are 3.6 MB.

use super::carrier;
use super::clock::tick;
use super::compared::ComparedLiterals;
use super::dialect::Dialect;
use crate::graph::Graph;
use crate::literal::rdflib_lexical;
use crate::stream::{StreamError, StreamFormat, read_triples};
use oxrdf::vocab::xsd;
use oxrdf::{Literal, Term};
use spareval::{ExpressionTerm, InternalQuad, QueryableDataset};
use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt;
use std::io::Read;
use std::ops::Range;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

/// An immutable, indexed graph. Cloning shares it.
#[derive(Clone, Default)]
pub struct QueryGraph {
    inner: Arc<Index>,
}

#[derive(Default)]
struct Index {
    terms: Vec<Term>,
    /// The value of each term in expressions, so that numbers and dates are parsed once and not in every comparison.
    values: Vec<ExpressionTerm>,
    /// For each term, whether the engine writes its value in another form; empty if it does so with none.
    changing: Vec<bool>,
    /// The terms that are [`changing`](Self::changing) by the form in which the engine writes them, one for each.
    written: HashMap<Term, u32>,
    numbers: HashMap<Term, u32>,
    compared: ComparedLiterals,
    by_subject: Vec<[u32; 3]>,
    by_predicate: Vec<[u32; 3]>,
    by_object: Vec<[u32; 3]>,
    /// The same graph as rdflib keeps it; `None` if that is this one.
    as_rdflib: OnceLock<Option<QueryGraph>>,
}

impl fmt::Debug for QueryGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueryGraph").field("triples", &self.len()).finish_non_exhaustive()
    }
}

impl QueryGraph {
    /// Indexes a graph.
    pub fn from_graph(graph: &Graph) -> Self {
        let mut index = Index::default();
        let triples = index.numbered(graph, |term| term);
        index.sort(&triples);
        Self { inner: Arc::new(index) }
    }

    /// Indexes a document of any size that fits into memory, without holding its text.
    ///
    /// # Errors
    /// The document cannot be read, or is no RDF in its format.
    pub fn read(document: &mut dyn Read, format: StreamFormat) -> Result<Self, StreamError> {
        let (mut index, mut triples) = (Index::default(), Vec::new());
        read_triples(document, format, &mut |subject, predicate, object| {
            triples.push([
                index.number(subject.clone().into()),
                index.number(predicate.clone().into()),
                index.number(object.clone()),
            ]);
            Ok(())
        })?;
        index.sort(&triples);
        Ok(Self { inner: Arc::new(index) })
    }

    /// Number of triples.
    pub fn len(&self) -> usize {
        self.inner.by_subject.len()
    }

    /// Whether there is no triple.
    pub fn is_empty(&self) -> bool {
        self.inner.by_subject.is_empty()
    }

    /// The triples that match a pattern, by the numbers of their terms, in the order of an index. Each is a tick of the clock.
    pub fn matching(
        &self,
        subject: Option<u32>,
        predicate: Option<u32>,
        object: Option<u32>,
    ) -> impl Iterator<Item = [u32; 3]> {
        tick();
        let (rows, columns) = self.inner.lookup(subject, predicate, object);
        rows.iter().map(move |row| {
            tick();
            in_order(*row, columns)
        })
    }

    /// A term by its number, which came from this graph.
    ///
    /// # Panics
    /// The graph has no such number.
    pub fn term(&self, number: u32) -> &Term {
        &self.inner.terms[number as usize]
    }

    /// The number of a term; `None` if it stands in no triple.
    pub fn number_of(&self, term: &Term) -> Option<u32> {
        self.inner.numbers.get(term).copied()
    }

    /// Whether a term is the subject or the object of a triple.
    pub(super) fn has_node(&self, term: &Term) -> bool {
        let number = self.number_of(term);
        number.is_some()
            && (!self.inner.lookup(number, None, None).0.is_empty()
                || !self.inner.lookup(None, None, number).0.is_empty())
    }

    /// The predicates of all triples.
    pub(super) fn predicates(&self) -> impl Iterator<Item = &Term> {
        let rows = &self.inner.by_predicate;
        let firsts = rows.iter().enumerate().filter(|(at, row)| *at == 0 || rows[at - 1][0] != row[0]);
        firsts.map(|(_, row)| self.term(row[0]))
    }

    /// [`number_of`](Self::number_of) an IRI.
    pub fn number_of_iri(&self, iri: &str) -> Option<u32> {
        self.inner.numbers.get(&Term::from(oxrdf::NamedNode::new_unchecked(iri))).copied()
    }

    /// This graph and another one as one. Blank nodes of the other one are none of this.
    pub fn joined(&self, other: &Graph) -> Self {
        let mut index = Index {
            terms: self.inner.terms.clone(),
            numbers: self.inner.numbers.clone(),
            ..Index::default()
        };
        let mut triples: Vec<[u32; 3]> = self.inner.by_subject.clone();
        let apart = |term: Term| match term {
            Term::BlankNode(node) => {
                oxrdf::BlankNode::new_unchecked(format!("other-{}", node.as_str())).into()
            }
            term => term,
        };
        triples.extend(index.numbered(other, apart));
        index.sort(&triples);
        Self { inner: Arc::new(index) }
    }

    /// The graph as rdflib keeps it, where literals have its lexical form: `"01"` and `"1"` are the same integer. It is made
    /// once, and is this graph where all literals have that form.
    pub fn as_rdflib(&self) -> &Self {
        let make = || {
            let terms = &self.inner.terms;
            if terms.iter().all(|term| respelled(term).is_none()) {
                return None;
            }
            let mut index = Index::default();
            let numbers: Vec<u32> = terms.iter().map(|term| index.number(normal(term.clone()))).collect();
            let renumbered = |triple: &[u32; 3]| triple.map(|number| numbers[number as usize]);
            let triples: Vec<[u32; 3]> = self.inner.by_subject.iter().map(renumbered).collect();
            index.sort(&triples);
            Some(Self { inner: Arc::new(index) })
        };
        self.inner.as_rdflib.get_or_init(make).as_ref().unwrap_or(self)
    }

    /// Whether it has literals that the engine writes in another form.
    pub(super) fn has_changing(&self) -> bool {
        !self.inner.changing.is_empty()
    }

    /// Which literals it has that are compared in more than one way.
    pub(super) fn compared(&self) -> ComparedLiterals {
        self.inner.compared
    }

    /// The graph as a dataset for the evaluator, which is to be the one of [`as_rdflib`](Self::as_rdflib) where queries are
    /// not evaluated by the standard.
    pub(super) fn dataset(&self, dialect: Dialect) -> IndexedDataset<'_> {
        IndexedDataset { index: &self.inner, standard: dialect == Dialect::Standard }
    }
}

impl Index {
    /// The triples of a graph by the numbers of their terms.
    fn numbered(&mut self, graph: &Graph, named: impl Fn(Term) -> Term) -> Vec<[u32; 3]> {
        let mut triples = Vec::with_capacity(graph.len());
        for triple in graph {
            triples.push([
                self.number(named(Term::from(triple.subject.clone()))),
                self.number(Term::from(triple.predicate.clone())),
                self.number(named(triple.object.clone())),
            ]);
        }
        triples
    }

    /// Sorts the triples in each order, and reads the value of each term.
    fn sort(&mut self, triples: &[[u32; 3]]) {
        let sorted = |order: [usize; 3]| {
            let mut list: Vec<[u32; 3]> =
                triples.iter().map(|triple| order.map(|position| triple[position])).collect();
            list.sort_unstable();
            list.dedup();
            list
        };
        self.by_subject = sorted(BY_SUBJECT);
        self.by_predicate = sorted(BY_PREDICATE);
        self.by_object = sorted(BY_OBJECT);
        self.terms.shrink_to_fit();
        self.values = self.terms.iter().cloned().map(ExpressionTerm::from).collect();
        for term in &self.terms {
            if let Term::Literal(literal) = term {
                self.compared.add(literal);
            }
        }
        let changing: Vec<bool> = self.terms.iter().map(carrier::changes).collect();
        if !changing.contains(&true) {
            return;
        }
        for (number, _) in (0..).zip(&changing).filter(|(_, changing)| **changing) {
            let written = Term::from(self.values[number as usize].clone());
            if datatype_of(&written) == datatype_of(&self.terms[number as usize]) {
                self.written.entry(written).or_insert(number);
            }
        }
        self.changing = changing;
    }

    fn number(&mut self, term: Term) -> u32 {
        if let Some(number) = self.numbers.get(&term) {
            return *number;
        }
        // A document within the size limit cannot have four billion distinct terms.
        let number = u32::try_from(self.terms.len()).unwrap_or(u32::MAX);
        self.terms.push(term.clone());
        self.numbers.insert(term, number);
        number
    }
}

fn datatype_of(term: &Term) -> Option<&str> {
    match term {
        Term::Literal(literal) => Some(literal.datatype().as_str()),
        _ => None,
    }
}

/// The term with its literal in rdflib's lexical form.
fn normal(term: Term) -> Term {
    respelled(&term).unwrap_or(term)
}

/// The same; `None` if the literal has that form, or the term is none.
fn respelled(term: &Term) -> Option<Term> {
    let Term::Literal(literal) = term else { return None };
    if literal.language().is_some() || literal.datatype() == xsd::STRING {
        return None;
    }
    let text = rdflib_lexical(literal.value(), literal.datatype().as_str());
    // The engine does not know the forms in which Python writes infinities and NaN, and a truth value that is none is to stay a
    // wrong one.
    let is_foreign = matches!(&*text, "inf" | "-inf" | "nan")
        || literal.datatype() == xsd::BOOLEAN && !matches!(literal.value(), "0" | "1");
    if is_foreign || *text == *literal.value() {
        return None;
    }
    Some(Literal::new_typed_literal(text, literal.datatype()).into())
}

/// A term during evaluation: one of the graph, or one that the query created.
#[derive(PartialEq, Eq, Hash)]
pub(super) enum QueryTerm {
    Known(u32),
    Made(Rc<Term>),
}

impl Clone for QueryTerm {
    /// Every join, product and sort copies terms, so this is where an endless query is noticed.
    fn clone(&self) -> Self {
        tick();
        match self {
            Self::Known(number) => Self::Known(*number),
            Self::Made(term) => Self::Made(Rc::clone(term)),
        }
    }
}

/// A graph as the evaluator sees it.
pub(super) struct IndexedDataset<'a> {
    index: &'a Index,
    /// Whether queries are evaluated by the standard, and not as rdflib evaluates them.
    standard: bool,
}

impl IndexedDataset<'_> {
    fn of_graph(&self, term: Term) -> QueryTerm {
        match self.index.numbers.get(&term) {
            Some(number) => QueryTerm::Known(*number),
            None => QueryTerm::Made(Rc::new(term)),
        }
    }
}

/// An order of the triples: the positions of its columns in (subject, predicate, object).
type Columns = [usize; 3];
const BY_SUBJECT: Columns = [0, 1, 2];
const BY_PREDICATE: Columns = [1, 2, 0];
const BY_OBJECT: Columns = [2, 0, 1];

/// An entry of an index as subject, predicate, object.
fn in_order(row: [u32; 3], columns: Columns) -> [u32; 3] {
    let mut triple = [0; 3];
    for (place, number) in columns.iter().zip(row) {
        triple[*place] = number;
    }
    triple
}

impl Index {
    /// The range of triples that match a pattern, and the order in which they form one range.
    fn lookup(&self, s: Option<u32>, p: Option<u32>, o: Option<u32>) -> (&[[u32; 3]], Columns) {
        let (order, columns) = match (s, p, o) {
            (Some(_), None, Some(_)) | (None, None, Some(_)) => (&self.by_object, BY_OBJECT),
            (None, Some(_), _) => (&self.by_predicate, BY_PREDICATE),
            _ => (&self.by_subject, BY_SUBJECT),
        };
        let wanted = columns.map(|place| [s, p, o][place]);
        let known = wanted.iter().take_while(|value| value.is_some()).count();
        let key = wanted.map(Option::unwrap_or_default);
        let range: Range<usize> = order.partition_point(|row| row[..known] < key[..known])
            ..order.partition_point(|row| row[..known] <= key[..known]);
        (&order[range], columns)
    }
}

impl<'a> QueryableDataset<'a> for IndexedDataset<'a> {
    type InternalTerm = QueryTerm;
    type Error = Infallible;

    fn internal_quads_for_pattern(
        &self,
        subject: Option<&QueryTerm>,
        predicate: Option<&QueryTerm>,
        object: Option<&QueryTerm>,
        graph_name: Option<Option<&QueryTerm>>,
    ) -> impl Iterator<Item = Result<InternalQuad<QueryTerm>, Infallible>> + use<'a> {
        let mut foreign = false;
        let mut known = |term: Option<&QueryTerm>| match term {
            Some(QueryTerm::Known(number)) => Some(*number),
            Some(QueryTerm::Made(_)) => {
                foreign = true;
                None
            }
            None => None,
        };
        let (s, p, o) = (known(subject), known(predicate), known(object));
        // Terms that the graph does not have, and named graphs, match nothing.
        let (rows, columns) = if foreign || graph_name != Some(None) {
            (&[][..], BY_SUBJECT)
        } else {
            self.index.lookup(s, p, o)
        };
        // A tick for the lookup itself: a join may do millions of them that find nothing.
        tick();
        rows.iter().map(move |row| {
            tick();
            let [subject, predicate, object] = in_order(*row, columns).map(QueryTerm::Known);
            Ok(InternalQuad { subject, predicate, object, graph_name: None })
        })
    }

    fn internalize_term(&self, term: Term) -> Result<QueryTerm, Infallible> {
        tick();
        Ok(self.of_graph(carrier::handed_on(term)))
    }

    fn internalize_expression_term(&self, term: ExpressionTerm) -> Result<QueryTerm, Infallible> {
        tick();
        if carrier::is_carrier(&term) {
            return Ok(self.of_graph(carrier::handed_on(term.into())));
        }
        let term = Term::from(term);
        let found = self.index.numbers.get(&term);
        if self.standard && found.is_none() {
            // What is computed has the form of the same value in the graph.
            if let Some(number) = self.index.written.get(&term) {
                return Ok(QueryTerm::Known(*number));
            }
            // The engine writes a whole double like an integer.
            let is_double = matches!(datatype_of(&term), Some(name) if name == xsd::DOUBLE.as_str() || name == xsd::FLOAT.as_str());
            return Ok(self.of_graph(if is_double { normal(term) } else { term }));
        }
        Ok(match found {
            Some(number) => QueryTerm::Known(*number),
            None => self.of_graph(normal(term)),
        })
    }

    fn externalize_term(&self, term: QueryTerm) -> Result<Term, Infallible> {
        Ok(match term {
            QueryTerm::Known(number) => self.index.terms[number as usize].clone(),
            QueryTerm::Made(term) => Rc::unwrap_or_clone(term),
        })
    }

    fn externalize_expression_term(&self, term: QueryTerm) -> Result<ExpressionTerm, Infallible> {
        tick();
        Ok(match term {
            QueryTerm::Known(number) => {
                let number = number as usize;
                let changing = self.index.changing.get(number).copied().unwrap_or_default();
                carrier::reads(changing.then(|| &self.index.terms[number]));
                self.index.values[number].clone()
            }
            QueryTerm::Made(term) => {
                carrier::reads(carrier::changes(&term).then_some(&*term));
                carrier::uncarried(Rc::unwrap_or_clone(term)).into()
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::RdfFormat;
    use proptest::prelude::*;

    fn term(graph: &QueryGraph, number: Option<u32>) -> Option<QueryTerm> {
        number.map(|number| {
            let name = oxrdf::NamedNode::new_unchecked(format!("http://e/{number}"));
            graph.dataset(Dialect::Standard).internalize_term(name.into()).unwrap()
        })
    }

    proptest! {
        #[test]
        fn every_pattern_finds_what_a_full_scan_finds(
            triples in proptest::collection::vec((0u32..5, 0u32..3, 0u32..5), 0..40),
            (s, p, o) in (
                proptest::option::of(0u32..6),
                proptest::option::of(0u32..4),
                proptest::option::of(0u32..6),
            ),
        ) {
            let text: String =
                triples.iter().map(|(s, p, o)| format!("<http://e/{s}> <http://e/{p}> <http://e/{o}> .\n")).collect();
            let graph = QueryGraph::from_graph(&Graph::parse(&text, RdfFormat::NTriples, None).unwrap());
            let dataset = graph.dataset(Dialect::Standard);
            let wanted = [term(&graph, s), term(&graph, p), term(&graph, o)];
            let found = dataset
                .internal_quads_for_pattern(wanted[0].as_ref(), wanted[1].as_ref(), wanted[2].as_ref(), Some(None))
                .count();
            let mut expected = triples.clone();
            expected.sort_unstable();
            expected.dedup();
            expected.retain(|t| s.is_none_or(|s| s == t.0) && p.is_none_or(|p| p == t.1) && o.is_none_or(|o| o == t.2));
            prop_assert_eq!(found, expected.len());
        }
    }

    #[test]
    fn graphs_are_joined_and_their_blank_nodes_stay_apart() {
        let parse = |text: &str| Graph::parse(text, RdfFormat::Turtle, None).unwrap();
        let (one, other) = (parse("<http://a> <http://p> [] ."), parse("[] <http://p> <http://a> ."));
        let joined = QueryGraph::from_graph(&one).joined(&other);
        let predicate = joined.number_of_iri("http://p");
        let ends: Vec<String> = joined
            .matching(None, predicate, None)
            .flat_map(|[subject, _, object]| [subject, object].map(|node| joined.term(node).to_string()))
            .collect();
        assert_eq!(
            (ends.len(), ends.iter().collect::<std::collections::BTreeSet<_>>().len()),
            (4, 3),
            "{ends:?}"
        );
        assert_eq!(joined.number_of_iri("http://q"), None);
    }

    #[test]
    fn a_document_that_is_read_is_the_graph_that_is_parsed() {
        let text = "<http://a> <http://p> \"01\"^^<http://www.w3.org/2001/XMLSchema#integer> .\n\
                    <http://a> <http://p> \"1\"^^<http://www.w3.org/2001/XMLSchema#integer> .\n\
                    _:x <http://p> _:y .\n_:y <http://q> \"x\"@en .\n";
        let read = QueryGraph::read(&mut text.as_bytes(), StreamFormat::Lines).unwrap();
        let parsed = QueryGraph::from_graph(&Graph::parse(text, RdfFormat::NTriples, None).unwrap());
        let (read, parsed) = (read.inner, parsed.inner);
        assert_eq!(
            (&read.by_subject, &read.by_predicate, &read.by_object),
            (&parsed.by_subject, &parsed.by_predicate, &parsed.by_object)
        );
        assert_eq!((read.by_subject.len(), read.terms.len()), (4, parsed.terms.len()));
        assert!(QueryGraph::read(&mut "<http://a> <http://p> .".as_bytes(), StreamFormat::Lines).is_err());
    }

    #[test]
    fn literals_meet_in_the_form_in_which_rdflib_keeps_them() {
        let text = "<http://s> <http://p> 01, 1, 'x', 1.0e0 .";
        let graph = QueryGraph::from_graph(&Graph::parse(text, RdfFormat::Turtle, None).unwrap());
        assert_eq!((graph.len(), graph.as_rdflib().len(), graph.as_rdflib().as_rdflib().len()), (4, 3, 3));
    }
}
