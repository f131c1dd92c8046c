//! The shape of a query seen through its brackets and keywords: which group encloses what, and where each SELECT
//! keeps its projection, its WHERE group and its modifiers. Works on text that a parser refuses.

use super::tokens::{TokenKind, Tokens};
use std::ops::Range;

const AGGREGATES: [&str; 7] = ["COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE", "GROUP_CONCAT"];
const MODIFIERS: [&str; 6] = ["GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "VALUES"];

/// Brackets and SELECTs of a query.
#[derive(Debug)]
pub(super) struct Outline<'a> {
    pub(super) tokens: &'a Tokens<'a>,
    /// For every bracket that has one, its partner.
    pub(super) partners: Vec<Option<usize>>,
    /// For every token the innermost opening bracket around it.
    pub(super) enclosing: Vec<Option<usize>>,
    /// All SELECTs that have a WHERE group, outermost first.
    pub(super) selects: Vec<Select>,
}

/// One SELECT. All numbers are token indices.
#[derive(Debug, Clone)]
pub(super) struct Select {
    /// The projection, after SELECT and DISTINCT or REDUCED.
    pub(super) projection: Range<usize>,
    /// The WHERE group with its braces.
    pub(super) group: Range<usize>,
    /// Everything after the WHERE group that belongs to this SELECT.
    pub(super) modifiers: Range<usize>,
}

/// One item of a projection.
#[derive(Debug, Clone)]
pub(super) enum Item {
    /// `?v` at this token.
    Variable(usize),
    /// `(expression AS ?v)`.
    Expression {
        /// The expression's tokens.
        expression: Range<usize>,
        /// The token of `?v`.
        target: usize,
    },
    /// `*` at this token, standing alone.
    Star(usize),
}

impl<'a> Outline<'a> {
    pub(super) fn of(tokens: &'a Tokens<'a>) -> Self {
        let partners = tokens.partners();
        let mut enclosing = Vec::with_capacity(tokens.len());
        let mut open: Vec<usize> = Vec::new();
        for (index, partner) in partners.iter().enumerate() {
            if partner.is_some_and(|partner| partner < index) {
                open.pop();
            }
            enclosing.push(open.last().copied());
            if partner.is_some_and(|partner| partner > index) {
                open.push(index);
            }
        }
        let mut outline = Self { tokens, partners, enclosing, selects: Vec::new() };
        outline.selects = (0..tokens.len()).filter_map(|index| outline.select_at(index)).collect();
        outline
    }

    fn select_at(&self, select: usize) -> Option<Select> {
        let tokens = self.tokens;
        if !tokens.is_word(select, "SELECT") {
            return None;
        }
        let option = tokens.is_word(select + 1, "DISTINCT") || tokens.is_word(select + 1, "REDUCED");
        let start = select + 1 + usize::from(option);
        let mut at = start;
        let mut projection_end = None;
        while !tokens.is_punctuation(at, "{") {
            if tokens.is_word(at, "WHERE") || tokens.is_word(at, "FROM") {
                projection_end = projection_end.or(Some(at));
            }
            at = self.partners.get(at)?.filter(|partner| *partner > at).unwrap_or(at) + 1;
        }
        let close = self.partners[at]?;
        let end = self.enclosing[select].and_then(|open| self.partners[open]).unwrap_or(tokens.len());
        Some(Select {
            projection: start..projection_end.unwrap_or(at),
            group: at..close + 1,
            modifiers: close + 1..end.max(close + 1),
        })
    }

    /// The projection's items; `None` if it holds anything that is no item.
    pub(super) fn items(&self, select: &Select) -> Option<Vec<Item>> {
        let tokens = self.tokens;
        let mut items = Vec::new();
        let mut at = select.projection.start;
        if select.projection.len() == 1 && tokens.is_punctuation(at, "*") {
            return Some(vec![Item::Star(at)]);
        }
        while at < select.projection.end {
            if tokens.kind(at) == Some(TokenKind::Variable) {
                items.push(Item::Variable(at));
                at += 1;
            } else if tokens.is_punctuation(at, "(") {
                let close = self.partners[at]?;
                let target = self.target_before(close)?;
                items.push(Item::Expression { expression: at + 1..target - 1, target });
                at = close + 1;
            } else {
                return None;
            }
        }
        Some(items)
    }

    /// The token of `?v` in `... AS ?v)`, given the closing bracket.
    pub(super) fn target_before(&self, close: usize) -> Option<usize> {
        let target = close.checked_sub(1)?;
        let is_target = self.tokens.kind(target) == Some(TokenKind::Variable)
            && target > 0
            && self.tokens.is_word(target - 1, "AS");
        is_target.then_some(target)
    }

    /// A variable's name without `?` or `$`; empty for other tokens.
    pub(super) fn variable(&self, index: usize) -> &'a str {
        match self.tokens.kind(index) {
            Some(TokenKind::Variable) => &self.tokens.text(index)[1..],
            _ => "",
        }
    }

    /// The closing bracket of the aggregate call that starts at a token.
    pub(super) fn aggregate_call(&self, index: usize) -> Option<usize> {
        let named = AGGREGATES.iter().any(|name| self.tokens.is_word(index, name));
        if named && self.tokens.is_punctuation(index + 1, "(") { self.partners[index + 1] } else { None }
    }

    /// Whether a range contains an aggregate call.
    pub(super) fn has_aggregate(&self, range: Range<usize>) -> bool {
        range.into_iter().any(|index| self.aggregate_call(index).is_some())
    }

    /// The variables in a range that stand outside aggregate calls.
    pub(super) fn variables_outside_aggregates(&self, range: Range<usize>) -> Vec<usize> {
        let mut found = Vec::new();
        let mut at = range.start;
        while at < range.end {
            if let Some(close) = self.aggregate_call(at) {
                at = close;
            } else if !self.variable(at).is_empty() {
                found.push(at);
            }
            at += 1;
        }
        found
    }

    /// The tokens of one modifier of a SELECT (`GROUP`, `HAVING`, `ORDER`), without its keyword.
    pub(super) fn modifier(&self, select: &Select, keyword: &str) -> Option<Range<usize>> {
        let start = select.modifiers.clone().find(|index| self.tokens.is_word(*index, keyword))?;
        let end = (start + 1..select.modifiers.end)
            .find(|index| MODIFIERS.iter().any(|word| self.tokens.is_word(*index, word)))
            .unwrap_or(select.modifiers.end);
        Some(start + 1..end)
    }

    /// The names that GROUP BY makes visible: plain variables and targets of `(... AS ?v)`.
    pub(super) fn grouped(&self, select: &Select) -> Vec<&'a str> {
        let Some(range) = self.modifier(select, "GROUP") else { return Vec::new() };
        let outside = self.enclosing.get(range.start).copied().flatten();
        range
            .filter(|index| !self.variable(*index).is_empty())
            .filter(|index| {
                self.enclosing[*index] == outside
                    || self.partners.get(index + 1).copied().flatten().is_some_and(|open| open < *index)
                        && self.tokens.is_word(index - 1, "AS")
            })
            .map(|index| self.variable(index))
            .collect()
    }

    /// Whether a SELECT groups its solutions.
    pub(super) fn is_aggregated(&self, select: &Select) -> bool {
        self.modifier(select, "GROUP").is_some()
            || self.has_aggregate(select.projection.clone())
            || self.modifier(select, "HAVING").is_some_and(|range| self.has_aggregate(range))
    }

    /// The innermost `{` around a token.
    pub(super) fn group_around(&self, index: usize) -> Option<usize> {
        let mut open = self.enclosing[index];
        while let Some(at) = open {
            if self.tokens.is_punctuation(at, "{") {
                return Some(at);
            }
            open = self.enclosing[at];
        }
        None
    }

    /// Whether a token stands in the brackets of one of these keywords, without a group in between.
    pub(super) fn stands_in(&self, index: usize, keywords: &[&str]) -> bool {
        let mut open = self.enclosing[index];
        while let Some(at) = open.filter(|at| self.tokens.is_punctuation(*at, "(")) {
            if at > 0 && keywords.iter().any(|word| self.tokens.is_word(at - 1, word)) {
                return true;
            }
            open = self.enclosing[at];
        }
        false
    }
}
