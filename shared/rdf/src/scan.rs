//! A cheap check of hostile queries before they reach a recursive parser.
//!
//! Oxigraph's SPARQL parser, optimiser and evaluator are recursive, and a stack overflow ends the process. On a stack of
//! 2 MB this happens from 800 levels on. The document parsers keep stacks of their own (and `serde_json` has a limit of
//! its own), so documents need no such check.

use crate::query::tokens::{TokenKind, Tokens};

/// The limits of [`check`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanLimits {
    /// Maximum size of the text, in bytes.
    pub bytes_max: usize,
    /// Maximum nesting of brackets.
    pub depth_max: usize,
    /// Maximum number of triple patterns, on which the optimiser spends cubic time, and of parts that become nested nodes
    /// even without brackets (`||`, `+`, `/`, OPTIONAL, UNION, ...). Real queries have a few dozen.
    pub links_max: usize,
}

impl ScanLimits {
    /// The limits of [`crate::prepare`]: far above what honest queries need, and far below what overflows a stack of 2 MB.
    pub const fn query() -> Self {
        Self { bytes_max: 1 << 20, depth_max: 100, links_max: 256 }
    }
}

impl Default for ScanLimits {
    fn default() -> Self {
        Self::query()
    }
}

/// Which limit a text exceeds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScanFinding {
    /// The text is longer than allowed.
    #[error("the text is longer than the {max} bytes allowed")]
    TooLarge {
        /// The limit, in bytes.
        max: usize,
    },
    /// Brackets nest deeper than [`ScanLimits::depth_max`].
    #[error("brackets nest deeper than the {max} levels allowed")]
    TooDeep {
        /// The limit.
        max: usize,
    },
    /// There are more operators and patterns than [`ScanLimits::links_max`].
    #[error("the query has more than the {max} operators and patterns allowed")]
    TooManyLinks {
        /// The limit.
        max: usize,
    },
}

/// Refuses a query that could overflow the stack of a recursive parser.
///
/// # Errors
/// The first limit exceeded.
pub fn check(query: &str, limits: &ScanLimits) -> Result<(), ScanFinding> {
    check_query(&Tokens::of(query), limits)
}

/// [`check`] for a query that is already in tokens.
pub(crate) fn check_query(tokens: &Tokens<'_>, limits: &ScanLimits) -> Result<(), ScanFinding> {
    const LINKS: [&str; 16] =
        ["||", "&&", "+", "-", "*", "/", "|", "!", "=", "!=", "<", ">", "<=", ">=", ".", ";"];
    const WORDS: [&str; 7] = ["OPTIONAL", "UNION", "MINUS", "FILTER", "BIND", "GRAPH", "VALUES"];

    if tokens.source.len() > limits.bytes_max {
        return Err(ScanFinding::TooLarge { max: limits.bytes_max });
    }
    let (mut depth, mut links) = (0_usize, 0);
    for (index, token) in tokens.list.iter().enumerate() {
        let text = tokens.text(index);
        match token.kind {
            TokenKind::Punctuation => match text {
                "(" => depth += 1,
                "[" | "{" => (depth, links) = (depth + 1, links + 1),
                ")" | "]" | "}" => depth = depth.saturating_sub(1),
                _ if LINKS.contains(&text) => links += 1,
                _ => {}
            },
            // The parser may read `<` before an operand as an operator where the tokenizer reads the beginning of an IRI.
            TokenKind::Iri => depth += text.bytes().filter(|byte| matches!(byte, b'(' | b'[')).count(),
            TokenKind::Word if WORDS.iter().any(|word| text.eq_ignore_ascii_case(word)) => links += 1,
            _ => {}
        }
        if depth > limits.depth_max {
            return Err(ScanFinding::TooDeep { max: limits.depth_max });
        }
        if links > limits.links_max {
            return Err(ScanFinding::TooManyLinks { max: limits.links_max });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> Result<(), ScanFinding> {
        check(text, &ScanLimits::query())
    }

    #[test]
    fn ordinary_queries_pass() {
        let list = (0..10_000).map(|n| format!("({n}.5 <http://e/{n}>)")).collect::<String>();
        assert_eq!(
            query(&format!("SELECT * {{ VALUES (?a ?b) {{ {list} }} FILTER(?a < 5 || ?b = '((((') }}")),
            Ok(())
        );
    }

    #[test]
    fn nesting_chains_and_size_have_limits() {
        let limits = ScanLimits::query();
        let deep = "(".repeat(limits.depth_max + 1);
        assert_eq!(query(&deep), Err(ScanFinding::TooDeep { max: limits.depth_max }));
        let long = "1 + ".repeat(limits.links_max + 1);
        assert_eq!(query(&long), Err(ScanFinding::TooManyLinks { max: limits.links_max }));
        let optional = "OPTIONAL { ?a ?b ?c } ".repeat(limits.links_max + 1);
        assert_eq!(query(&optional), Err(ScanFinding::TooManyLinks { max: limits.links_max }));
        let large = " ".repeat(limits.bytes_max + 1);
        assert!(matches!(query(&large), Err(ScanFinding::TooLarge { .. })));
    }
}
