//! Turtle written again as the standard has it.

use std::fmt::Write;

use super::{NAMED, NOTHING, Token};

/// Nesting of brackets up to which documents are written again.
const DEPTH_MAX: usize = 64;

/// Writes the statements of a document again.
pub(super) struct Writer<'a> {
    tokens: &'a [Token],
    at: usize,
    /// The triples of the paths of the statement.
    extra: String,
    /// Number of nodes made.
    made: usize,
}

impl<'a> Writer<'a> {
    pub(super) fn of(tokens: &'a [Token]) -> Self {
        Self { tokens, at: 0, extra: String::new(), made: 0 }
    }

    pub(super) fn document(&mut self) -> Option<String> {
        let mut document = String::new();
        while let Some(token) = self.tokens.get(self.at) {
            if let Token::Directive(directive) = token {
                document.push_str(directive);
                document.push('\n');
                self.at += 1;
                continue;
            }
            let statement = self.statement()?;
            document.push_str(&std::mem::take(&mut self.extra));
            document.push_str(&statement);
            document.push('\n');
        }
        Some(document)
    }

    fn sign(&mut self, sign: char) -> bool {
        let found = self.tokens.get(self.at) == Some(&Token::Sign(sign));
        self.at += usize::from(found);
        found
    }

    fn statement(&mut self) -> Option<String> {
        let is_list = self.tokens.get(self.at) == Some(&Token::Sign('('));
        let is_node = self.tokens.get(self.at) == Some(&Token::Sign('['));
        let subject = as_name(self.node(0)?, false);
        while self.sign(';') {}
        if self.sign('.') {
            return Some(match () {
                () if is_list && subject != "( )" => format!("_:list{} <{NOTHING}> {subject} .", self.at),
                () if is_node && subject != "[ ]" => format!("{subject} ."),
                () => String::new(),
            });
        }
        let properties = self.properties(0)?;
        self.sign('.').then(|| format!("{subject} {properties} ."))
    }

    fn properties(&mut self, depth: usize) -> Option<String> {
        let mut written = Vec::new();
        loop {
            let verb = as_name(self.node(depth)?, true);
            let mut objects = vec![self.node(depth)?];
            while self.sign(',') {
                objects.push(self.node(depth)?);
            }
            written.push(format!("{verb} {}", objects.join(" , ")));
            if !self.sign(';') {
                break;
            }
            while self.sign(';') {}
            if matches!(self.tokens.get(self.at), Some(Token::Sign('.' | ']')) | None) {
                break;
            }
        }
        Some(written.join(" ; "))
    }

    /// A node with the path that leads on from it.
    fn node(&mut self, depth: usize) -> Option<String> {
        if depth > DEPTH_MAX {
            return None;
        }
        let mut node = match self.tokens.get(self.at)? {
            Token::Term(term) => {
                self.at += 1;
                term.clone()
            }
            Token::Sign('(') => {
                self.at += 1;
                let mut parts = String::new();
                while !self.sign(')') {
                    parts.push_str(&self.node(depth + 1)?);
                    parts.push(' ');
                }
                format!("( {parts})")
            }
            Token::Sign('[') => {
                self.at += 1;
                while self.sign(';') {}
                if self.sign(']') {
                    "[ ]".to_owned()
                } else {
                    let properties = self.properties(depth + 1)?;
                    self.sign(']').then(|| format!("[ {properties} ]"))?
                }
            }
            _ => return None,
        };
        loop {
            let along = self.sign('!');
            if !along && !self.sign('^') {
                return Some(node);
            }
            let Token::Term(verb) = self.tokens.get(self.at)? else { return None };
            let verb = as_name(verb.clone(), true);
            self.at += 1;
            self.made += 1;
            let next = format!("_:path{}", self.made);
            let (from, to) = if along { (&node, &next) } else { (&next, &node) };
            self.extra.push_str(&format!("{from} {verb} {to} .\n"));
            node = next;
        }
    }
}

/// A literal as a subject, or a literal or blank node as a predicate, as a name that no document has; [`super::restored`]
/// takes it back.
fn as_name(node: String, is_verb: bool) -> String {
    let is_literal = node.starts_with(|c: char| c.is_ascii_digit() || "\"'+-.".contains(c))
        || matches!(node.as_str(), "true" | "false");
    let text = match () {
        () if is_literal => node.as_str(),
        () if is_verb && (node.starts_with("_:") || node == "[ ]") => "_:b",
        () => return node,
    };
    let mut name = format!("<{NAMED}");
    for byte in text.bytes() {
        // Writing into a string does not fail.
        let _ = write!(name, "{byte:02x}");
    }
    name + ">"
}
