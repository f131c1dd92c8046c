//! Expressions.

use super::Reader;
use super::aggregates;
use super::algebra::{not, rewrite};
use super::functions;
use super::lazy;
use super::python;
use super::terms::XSD;
use crate::query::dialect::Dialect;
use oxrdf::{Literal, NamedNode};
use spargebra::algebra::{AggregateExpression, AggregateFunction, Expression, Function};

/// The functions of expressions: name, minimum and maximum number of arguments.
const FUNCTIONS: &[(&str, usize, usize, Function)] = &[
    ("STR", 1, 1, Function::Str),
    ("LANG", 1, 1, Function::Lang),
    ("LANGMATCHES", 2, 2, Function::LangMatches),
    ("DATATYPE", 1, 1, Function::Datatype),
    ("IRI", 1, 1, Function::Iri),
    ("URI", 1, 1, Function::Iri),
    ("BNODE", 0, 1, Function::BNode),
    ("RAND", 0, 0, Function::Rand),
    ("ABS", 1, 1, Function::Abs),
    ("CEIL", 1, 1, Function::Ceil),
    ("FLOOR", 1, 1, Function::Floor),
    ("ROUND", 1, 1, Function::Round),
    ("CONCAT", 0, usize::MAX, Function::Concat),
    ("SUBSTR", 2, 3, Function::SubStr),
    ("STRLEN", 1, 1, Function::StrLen),
    ("REPLACE", 3, 4, Function::Replace),
    ("UCASE", 1, 1, Function::UCase),
    ("LCASE", 1, 1, Function::LCase),
    ("ENCODE_FOR_URI", 1, 1, Function::EncodeForUri),
    ("CONTAINS", 2, 2, Function::Contains),
    ("STRSTARTS", 2, 2, Function::StrStarts),
    ("STRENDS", 2, 2, Function::StrEnds),
    ("STRBEFORE", 2, 2, Function::StrBefore),
    ("STRAFTER", 2, 2, Function::StrAfter),
    ("YEAR", 1, 1, Function::Year),
    ("MONTH", 1, 1, Function::Month),
    ("DAY", 1, 1, Function::Day),
    ("HOURS", 1, 1, Function::Hours),
    ("MINUTES", 1, 1, Function::Minutes),
    ("SECONDS", 1, 1, Function::Seconds),
    ("TIMEZONE", 1, 1, Function::Timezone),
    ("TZ", 1, 1, Function::Tz),
    ("NOW", 0, 0, Function::Now),
    ("UUID", 0, 0, Function::Uuid),
    ("STRUUID", 0, 0, Function::StrUuid),
    ("MD5", 1, 1, Function::Md5),
    ("SHA1", 1, 1, Function::Sha1),
    ("SHA256", 1, 1, Function::Sha256),
    ("SHA384", 1, 1, Function::Sha384),
    ("SHA512", 1, 1, Function::Sha512),
    ("STRLANG", 2, 2, Function::StrLang),
    ("STRDT", 2, 2, Function::StrDt),
    ("isIRI", 1, 1, Function::IsIri),
    ("isURI", 1, 1, Function::IsIri),
    ("isBLANK", 1, 1, Function::IsBlank),
    ("isLITERAL", 1, 1, Function::IsLiteral),
    ("isNUMERIC", 1, 1, Function::IsNumeric),
    ("REGEX", 2, 3, Function::Regex),
];

/// The types of XML Schema that rdflib casts to.
const CASTS: [&str; 7] = ["string", "boolean", "float", "double", "decimal", "integer", "dateTime"];

type Pair = fn(Box<Expression>, Box<Expression>) -> Expression;

impl Reader<'_> {
    pub(super) fn expression(&mut self) -> Option<Expression> {
        self.chain(&[("||", Expression::Or)], |r| r.chain(&[("&&", Expression::And)], Self::relation))
    }

    /// Operands joined by operators of equal precedence, from left to right.
    fn chain(
        &mut self,
        operators: &[(&str, Pair)],
        operand: impl Fn(&mut Self) -> Option<Expression>,
    ) -> Option<Expression> {
        let mut left = operand(self)?;
        while let Some((pair, right)) = self.attempt(|r| {
            let (_, pair) = operators.iter().find(|(symbol, _)| r.scanner.symbol(symbol))?;
            Some((pair, operand(r)?))
        }) {
            left = pair(Box::new(left), Box::new(right));
        }
        Some(left)
    }

    fn relation(&mut self) -> Option<Expression> {
        const RELATIONS: [(&str, Pair); 6] = [
            ("=", Expression::Equal),
            ("!=", unequal),
            ("<", |left, right| comparison(functions::LESS, Expression::Less, left, right)),
            (">", |left, right| comparison(functions::GREATER, Expression::Greater, left, right)),
            ("<=", |left, right| comparison(functions::LESS_OR_EQUAL, Expression::LessOrEqual, left, right)),
            (">=", |left, right| {
                comparison(functions::GREATER_OR_EQUAL, Expression::GreaterOrEqual, left, right)
            }),
        ];
        let left = self.sum()?;
        for (symbol, pair) in RELATIONS {
            let right = self.attempt(|r| r.after(symbol, Self::sum));
            if let Some(right) = right {
                return Some(pair(Box::new(left), Box::new(right)));
            }
        }
        let list = self.attempt(|r| {
            let negated = r.scanner.keywords(["NOT", "IN"]);
            if !negated {
                r.keyword("IN")?;
            }
            Some((negated, r.expression_list()?))
        });
        Some(match list {
            None => left,
            Some((negated, list)) => {
                // IN compares terms, not values.
                let found = functions::among(left, list);
                if negated { not(found) } else { found }
            }
        })
    }

    fn sum(&mut self) -> Option<Expression> {
        self.chain(&[("+", added), ("-", subtracted)], |r| {
            r.chain(
                &[
                    ("*", |left, right| functions::call(python::MULTIPLY, vec![*left, *right])),
                    ("/", |left, right| functions::call(python::DIVIDE, vec![*left, *right])),
                ],
                Self::signed,
            )
        })
    }

    fn signed(&mut self) -> Option<Expression> {
        type Wrap = fn(Box<Expression>) -> Expression;
        const SIGNS: [(&str, Wrap); 3] =
            [("!", Expression::Not), ("+", Expression::UnaryPlus), ("-", |inner| opposite(*inner))];
        for (sign, wrap) in SIGNS {
            let inner = self.attempt(|r| r.after(sign, Self::primary));
            if let Some(inner) = inner {
                return Some(wrap(Box::new(inner)));
            }
        }
        self.primary()
    }

    fn primary(&mut self) -> Option<Expression> {
        if let Some(constraint) = self.constraint() {
            return Some(constraint);
        }
        if let Some(iri) = self.iri() {
            return Some(iri.into());
        }
        if let Some(literal) = self.literal() {
            return Some(literal.into());
        }
        self.variable().map(Expression::from)
    }

    pub(super) fn bracketed(&mut self) -> Option<Expression> {
        self.attempt(|r| r.between("(", ")", Self::expression))
    }

    /// What may follow FILTER: an expression in brackets or a call.
    pub(super) fn constraint(&mut self) -> Option<Expression> {
        self.bracketed().or_else(|| self.call())
    }

    /// A call of a built-in function, an aggregate or a function that an IRI names.
    pub(super) fn call(&mut self) -> Option<Expression> {
        self.attempt(Self::aggregate)
            .or_else(|| self.attempt(Self::built_in))
            .or_else(|| self.attempt(Self::named_call))
    }

    fn aggregate(&mut self) -> Option<Expression> {
        let word = self.scanner.peek_word();
        let is = |name: &str| word.eq_ignore_ascii_case(name);
        let name = match () {
            () if is("COUNT") => AggregateFunction::Count,
            () if is("SUM") => AggregateFunction::Sum,
            () if is("MIN") => AggregateFunction::Min,
            () if is("MAX") => AggregateFunction::Max,
            () if is("AVG") => AggregateFunction::Avg,
            () if is("SAMPLE") => AggregateFunction::Sample,
            () if is("GROUP_CONCAT") => AggregateFunction::GroupConcat { separator: None },
            () => return None,
        };
        self.keyword(word)?;
        self.symbol("(")?;
        let distinct = self.scanner.keyword("DISTINCT");
        if name == AggregateFunction::Count && self.scanner.symbol("*") {
            self.symbol(")")?;
            return Some(self.new_aggregate(AggregateExpression::CountSolutions { distinct }));
        }
        let mut expr = self.expression()?;
        let counts_terms = matches!(name, AggregateFunction::Count);
        if counts_terms && !matches!(expr, Expression::Variable(_)) {
            // Errors are counted too.
            expr = functions::or_nothing(expr);
        }
        let looks_first = matches!(name, AggregateFunction::Avg | AggregateFunction::GroupConcat { .. });
        if distinct && looks_first && matches!(expr, Expression::Variable(_)) {
            // rdflib checks for an earlier value without expecting that there may be none.
            expr = functions::or_raise(expr);
        }
        let own = |name| AggregateFunction::Custom(NamedNode::new_unchecked(name));
        let (name, expr) = match name {
            AggregateFunction::GroupConcat { .. } => {
                let separator = self.attempt(|r| {
                    r.symbol(";")?;
                    r.keyword("SEPARATOR")?;
                    r.symbol("=")?;
                    r.scanner.string()
                });
                self.separators.push(separator.unwrap_or_else(|| " ".to_owned()));
                let name = AggregateFunction::Custom(aggregates::joined_by(self.separators.len() - 1));
                (name, functions::or_nothing(call(Function::Str, vec![expr])))
            }
            AggregateFunction::Sum => (own(aggregates::SUM), functions::addend(expr, distinct)),
            AggregateFunction::Avg => (own(aggregates::AVERAGE), functions::or_nothing(expr)),
            AggregateFunction::Min => (own(aggregates::LEAST), functions::or_failed(expr)),
            AggregateFunction::Max => (own(aggregates::GREATEST), functions::or_failed(expr)),
            name => (name, expr),
        };
        self.symbol(")")?;
        Some(self.new_aggregate(AggregateExpression::FunctionCall { name, expr, distinct }))
    }

    fn new_aggregate(&mut self, aggregate: AggregateExpression) -> Expression {
        self.aggregates.push(aggregate);
        functions::aggregate(self.aggregates.len() - 1)
    }

    fn built_in(&mut self) -> Option<Expression> {
        let word = self.scanner.peek_word();
        let is = |name: &str| word.eq_ignore_ascii_case(name);
        if is("NOT") || is("EXISTS") {
            let negated = self.scanner.keyword("NOT");
            self.keyword("EXISTS")?;
            let pattern = lazy::within_exists(self.group()?);
            if !self.evaluates_exists {
                return Some(functions::raise());
            }
            let exists = Expression::Exists(Box::new(pattern));
            return Some(if negated { not(exists) } else { exists });
        }
        if is("BOUND") {
            self.keyword(word)?;
            return self.between("(", ")", Self::variable).map(Expression::Bound);
        }
        if is("COALESCE") || is("IF") || is("sameTerm") {
            self.keyword(word)?;
            let mut arguments = self.expression_list()?;
            if is("COALESCE") {
                // Of no arguments rdflib takes the letters of a message for the values.
                let of_none = || Literal::from("h").into();
                return Some(if arguments.is_empty() { of_none() } else { Expression::Coalesce(arguments) });
            }
            let last = arguments.pop().map(Box::new)?;
            let middle = arguments.pop().map(Box::new)?;
            return match (arguments.pop().map(Box::new), arguments.is_empty()) {
                (Some(first), true) if is("IF") => Some(Expression::If(first, middle, last)),
                (None, true) if !is("IF") => Some(Expression::SameTerm(middle, last)),
                _ => None,
            };
        }
        let (_, least, most, function) = FUNCTIONS.iter().find(|(name, ..)| is(name))?;
        self.keyword(word)?;
        let arguments = self.expression_list()?;
        if !(*least..=*most).contains(&arguments.len()) {
            return None;
        }
        if is("CONCAT") && arguments.is_empty() {
            return Some(Expression::Coalesce(Vec::new()));
        }
        Some(self.lenient(function.clone(), arguments))
    }

    /// A call as rdflib evaluates it or, for tasks on Wikidata, its endpoint.
    fn lenient(&self, function: Function, mut arguments: Vec<Expression>) -> Expression {
        let takes_text = matches!(
            function,
            Function::Contains | Function::StrStarts | Function::StrEnds | Function::Regex
        );
        if takes_text && self.dialect == Dialect::Wikidata {
            let text = arguments.remove(0);
            arguments.insert(0, call(Function::Str, vec![text]));
        }
        match (&function, self.base.as_deref()) {
            (Function::LangMatches, _) => {
                // No language is in the empty range.
                let range = arguments.last().cloned().unwrap_or_else(|| Expression::Coalesce(Vec::new()));
                let is_empty = Expression::Equal(Box::new(range), Box::new(Literal::from("").into()));
                Expression::And(Box::new(not(is_empty)), Box::new(call(function, arguments)))
            }
            (Function::Iri, Some(base)) => {
                arguments.push(Literal::from(base).into());
                call(python::in_place_of(function), arguments)
            }
            (Function::Str, _)
                if !matches!(
                    arguments.first(),
                    Some(Expression::Variable(_) | Expression::Literal(_) | Expression::NamedNode(_))
                ) =>
            {
                call(python::text_of_computed(), arguments)
            }
            _ => {
                let arguments = python::arguments_of(&function, arguments);
                call(python::in_place_of(function), arguments)
            }
        }
    }

    /// `( ... , ... )` or `()`.
    fn expression_list(&mut self) -> Option<Vec<Expression>> {
        if self.brackets("(", ")").is_some() {
            return Some(Vec::new());
        }
        self.attempt(|r| r.between("(", ")", |r| r.parted(",", Self::expression)))
    }

    fn named_call(&mut self) -> Option<Expression> {
        let name = self.iri()?;
        if self.brackets("(", ")").is_some() {
            return Some(call(custom(name), Vec::new()));
        }
        let arguments = self.between("(", ")", |r| {
            let _ = r.scanner.keyword("DISTINCT");
            r.parted(",", Self::expression)
        })?;
        Some(call(custom(name), arguments))
    }
}

fn custom(name: NamedNode) -> Function {
    match name.as_str().strip_prefix(XSD) {
        Some(local) if !CASTS.contains(&local) => functions::unknown(),
        Some(local) => python::cast_to(local),
        None => Function::Custom(name),
    }
}

fn call(function: Function, arguments: Vec<Expression>) -> Expression {
    Expression::FunctionCall(function, arguments)
}

/// A comparison of two values; values that cannot be compared are compared in rdflib's order of all literals.
fn comparison(name: &str, native: Pair, left: Box<Expression>, right: Box<Expression>) -> Expression {
    let fallback = |left, right| functions::call(name, vec![left, right]);
    or_else(native, fallback, left, right)
}

/// An expression of two operands, and another where that has no value. This duplicates the operands, so it is done only if they
/// contain no comparison themselves.
fn or_else(
    native: Pair,
    fallback: impl FnOnce(Expression, Expression) -> Expression,
    left: Box<Expression>,
    right: Box<Expression>,
) -> Expression {
    if !is_plain(&left) || !is_plain(&right) {
        return native(left, right);
    }
    let fallback = fallback((*left).clone(), (*right).clone());
    Expression::Coalesce(vec![native(left, right), fallback])
}

/// A sum of numbers; times and durations are left to the engine.
fn added(left: Box<Expression>, right: Box<Expression>) -> Expression {
    sum_or(python::ADD, Expression::Add, left, right)
}

fn subtracted(left: Box<Expression>, right: Box<Expression>) -> Expression {
    sum_or(python::SUBTRACT, Expression::Subtract, left, right)
}

fn sum_or(name: &str, native: Pair, left: Box<Expression>, right: Box<Expression>) -> Expression {
    let numbers = functions::call(name, vec![(*left).clone(), (*right).clone()]);
    // This duplicates the operands, so they must be small.
    let is_term = |operand: &Expression| matches!(operand, Expression::Variable(_) | Expression::Literal(_));
    if is_term(&left) && is_term(&right) {
        return Expression::Coalesce(vec![numbers, native(left, right)]);
    }
    numbers
}

fn opposite(inner: Expression) -> Expression {
    let number = match &inner {
        Expression::Literal(literal) => super::arithmetic::negated(&literal.clone().into()),
        _ => None,
    };
    number.map_or_else(|| functions::call(python::NEGATE, vec![inner]), Expression::from)
}

/// Whether two values differ. Where that is not known, those of two datatypes do.
fn unequal(left: Box<Expression>, right: Box<Expression>) -> Expression {
    or_else(|left, right| not(Expression::Equal(left, right)), functions::of_two_types, left, right)
}

/// Whether an expression contains neither comparisons nor patterns.
fn is_plain(expression: &Expression) -> bool {
    let mut plain = true;
    rewrite(expression.clone(), &mut |part| {
        plain &= !matches!(
            part,
            Expression::Less(..)
                | Expression::LessOrEqual(..)
                | Expression::Greater(..)
                | Expression::GreaterOrEqual(..)
                | Expression::Equal(..)
                | Expression::Exists(_)
        );
        (!plain).then(|| part.clone())
    });
    plain
}

/// Whether an expression contains an aggregate.
pub(super) fn has_aggregate(expression: &Expression) -> bool {
    let mut found = false;
    rewrite(expression.clone(), &mut |part| {
        found |= functions::aggregate_number(part).is_some();
        found.then(|| part.clone())
    });
    found
}
