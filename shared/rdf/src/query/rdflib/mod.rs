//! SPARQL as rdflib reads it.
//!
//! LLM-KG-Bench judged queries with rdflib. Its grammar is that of SPARQL 1.1, written for a parser that tries alternatives
//! in order, and it checks nothing beyond the grammar: errors of meaning appear when the query runs. Oxigraph's parser
//! refuses many such queries. So queries are read here by rdflib's grammar ([`scanner`], [`terms`], [`expression`],
//! [`group`]) and translated into Oxigraph's algebra the way rdflib translates them into its own ([`select`]); Oxigraph
//! evaluates the algebra.
//!
//! The algebra cannot express one thing: at some expressions rdflib raises, and then the query has no result at all. Such
//! expressions become calls of functions ([`functions`]) that report it to the evaluation.

pub(super) mod aggregates;
mod algebra;
mod arithmetic;
mod expression;
pub(super) mod functions;
mod group;
pub(super) mod lazy;
mod path;
mod pattern;
mod python;
pub(super) mod raised;
mod scanner;
mod select;
mod terms;

use super::dialect::Dialect;
use crate::prefixes::PrefixTable;
use oxrdf::Variable;
use scanner::Scanner;
use spargebra::Query;
use spargebra::algebra::AggregateExpression;
use std::collections::HashMap;

/// A query that rdflib accepts.
#[derive(Debug)]
pub(super) struct RdflibQuery {
    pub(super) query: Query,
    /// The separators of its GROUP_CONCATs; aggregates refer to them by number.
    pub(super) separators: Vec<String>,
    /// Whether it contains a SERVICE.
    pub(super) calls_service: bool,
    /// The byte at which a FILTER or BIND with an aggregate begins.
    pub(super) misplaced_aggregate: Option<usize>,
}

/// Why rdflib does not accept a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The grammar is violated at this byte.
    Grammar(usize),
    /// It is not a SELECT query.
    NoSelect(usize),
    /// It uses this prefix, which is bound nowhere.
    UnknownPrefix(String),
}

/// Reads a SELECT query. The Unicode escapes of `text` have been replaced.
pub(super) fn read(text: &str, table: &PrefixTable, dialect: Dialect) -> Result<RdflibQuery, Refusal> {
    let mut reader = Reader::new(text, table, dialect);
    let read = reader.query();
    if let Some(place) = reader.negative_decimal.or_else(|| reader.hidden_service()) {
        return Err(Refusal::Grammar(place));
    }
    match read {
        None if reader.is_select => Err(Refusal::Grammar(reader.scanner.stuck_at())),
        None => Err(Refusal::NoSelect(reader.scanner.stuck_at())),
        Some(query) => match reader.unknown_prefix {
            Some(prefix) => Err(Refusal::UnknownPrefix(prefix)),
            None => Ok(RdflibQuery {
                query,
                separators: reader.separators,
                calls_service: reader.calls_service,
                misplaced_aggregate: reader.misplaced_aggregate,
            }),
        },
    }
}

pub(super) use algebra::{inner_patterns, map_parts, replace, rewrite};
pub use pattern::PATTERN_STEPS_MAX;
pub(super) use scanner::without_unicode_escapes;

/// The state of reading one query. Its methods are the rules of the grammar: each reads what it is named after, or
/// returns `None`; a caller with an alternative then goes back to where the rule began.
struct Reader<'a> {
    scanner: Scanner<'a>,
    table: &'a PrefixTable,
    dialect: Dialect,
    declared: HashMap<&'a str, String>,
    base: Option<String>,
    unknown_prefix: Option<String>,
    is_select: bool,
    calls_service: bool,
    misplaced_aggregate: Option<usize>,
    /// The aggregates read so far; expressions refer to them by number, see [`functions::aggregate`].
    aggregates: Vec<AggregateExpression>,
    separators: Vec<String>,
    /// Whether the pattern read last contains one of rdflib's joins, a LIMIT or a DISTINCT, see [`lazy`].
    settled: bool,
    /// Variables mentioned so far in the SELECT that is being read, with repetitions.
    mentioned: Vec<Variable>,
    /// Number of variables and blank nodes created so far.
    made: usize,
    /// Whether what is read is the expression of a FILTER or BIND, the only ones in which rdflib evaluates EXISTS.
    evaluates_exists: bool,
    /// Where a negative decimal stands outside of an expression.
    negative_decimal: Option<usize>,
    /// Where SERVICE stands.
    services: Vec<usize>,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str, table: &'a PrefixTable, dialect: Dialect) -> Self {
        Self {
            scanner: Scanner::new(text),
            table,
            dialect,
            declared: HashMap::new(),
            base: None,
            unknown_prefix: None,
            is_select: false,
            calls_service: false,
            misplaced_aggregate: None,
            aggregates: Vec::new(),
            separators: Vec::new(),
            settled: false,
            mentioned: Vec::new(),
            made: 0,
            evaluates_exists: false,
            negative_decimal: None,
            services: Vec::new(),
        }
    }

    /// The first SERVICE if each has a `#` before it on its line. rdflib looks for its text a second time, and takes what
    /// follows a `#` for a comment then, also within an IRI.
    fn hidden_service(&self) -> Option<usize> {
        let text = self.scanner.text;
        let is_hidden = |place: &usize| {
            let before = &text[..*place];
            before[before.rfind(['\n', '\r']).unwrap_or(0)..].contains('#')
        };
        self.services.first().copied().filter(|_| self.services.iter().all(is_hidden))
    }

    /// A new variable, with a name that no query can contain.
    fn fresh(&mut self) -> Variable {
        self.made += 1;
        Variable::new_unchecked(format!("made {}", self.made))
    }

    /// Applies a rule; goes back to where it began if it does not match.
    fn attempt<T>(&mut self, rule: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let place = self.scanner.place();
        let found = rule(self);
        if found.is_none() {
            self.scanner.back_to(place);
        }
        found
    }

    /// Applies a rule to the expression of a FILTER or BIND.
    fn in_pattern<T>(&mut self, rule: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let before = std::mem::replace(&mut self.evaluates_exists, true);
        let found = rule(self);
        self.evaluates_exists = before;
        found
    }

    /// Applies a rule as often as it matches.
    fn many<T>(&mut self, mut rule: impl FnMut(&mut Self) -> Option<T>) -> Vec<T> {
        std::iter::from_fn(|| self.attempt(&mut rule)).collect()
    }

    /// Applies a rule after a symbol.
    fn after<T>(&mut self, symbol: &str, rule: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        self.symbol(symbol)?;
        rule(self)
    }

    /// Applies a rule between two symbols.
    fn between<T>(
        &mut self,
        open: &str,
        close: &str,
        rule: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<T> {
        let inner = self.after(open, rule)?;
        self.symbol(close)?;
        Some(inner)
    }

    /// Applies a rule once or more, with a symbol between any two.
    fn parted<T>(&mut self, by: &str, rule: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut parts = vec![rule(self)?];
        parts.extend(self.many(|r| r.after(by, &rule)));
        Some(parts)
    }

    fn symbol(&mut self, symbol: &str) -> Option<()> {
        self.scanner.symbol(symbol).then_some(())
    }

    fn keyword(&mut self, word: &str) -> Option<()> {
        self.scanner.keyword(word).then_some(())
    }
}
