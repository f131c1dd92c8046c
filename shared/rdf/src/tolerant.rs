//! Reads as much as possible of a broken Turtle document.
//!
//! The older task classes of LLM-KG-Bench count the triples that can be recovered from a broken document. Lines around
//! the first error are removed greedily: of six ways to remove one or two lines, the one with which the parser gets
//! furthest is chosen, and so on until the rest parses.

use crate::format::RdfFormat;
use crate::graph::Graph;

/// Maximum number of bytes parsed for one document over all repairs. Every repair parses up to six candidates, so the work is
/// quadratic in the worst case; a document that needs more counts as having no triples. At some 100 MB/s the limit
/// is reached after a few seconds.
pub const TOLERANT_BYTES_MAX: usize = 256 << 20;

/// The lines removed by each candidate, in order of preference: their number, and how many lines before the error they
/// start.
const CANDIDATES: [(usize, usize); 6] = [(1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2)];

/// Parses Turtle, removing lines around syntax errors until the rest parses. The graph is empty if no line remains or if
/// the work exceeds [`TOLERANT_BYTES_MAX`].
///
/// `lines` are the lines of `text` as Python's `str.splitlines` gives them.
pub fn parse_turtle_tolerantly(text: &str, lines: &[&str]) -> Graph {
    let mut work = text.len();
    let mut error_line = match attempt(text) {
        Ok(graph) => return graph,
        Err(line) => line,
    };
    let mut kept: Vec<&str> = lines.to_vec();
    while work <= TOLERANT_BYTES_MAX {
        let n = error_line.min(kept.len());
        let mut best: Option<(usize, Vec<&str>)> = None;
        for (count, back) in CANDIDATES {
            // Positions outside the text are ignored: two lines starting one before the first line are one line.
            let end = (n + count).saturating_sub(back).min(kept.len());
            let start = n.saturating_sub(back).min(end);
            if start == end {
                continue;
            }
            let candidate = [&kept[..start], &kept[end..]].concat();
            let text = candidate.join("\n");
            work += text.len();
            match attempt(&text) {
                Ok(graph) => return graph,
                Err(line) if best.as_ref().is_none_or(|(furthest, _)| line > *furthest) => {
                    best = Some((line, candidate));
                }
                Err(_) => {}
            }
        }
        let Some((line, candidate)) = best else { break };
        (error_line, kept) = (line, candidate);
    }
    Graph::default()
}

/// The graph, or the 0-based line of the first error.
fn attempt(text: &str) -> Result<Graph, usize> {
    Graph::parse(text, RdfFormat::Turtle, None).map_err(|error| error.line.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Graph {
        parse_turtle_tolerantly(text, &text.lines().collect::<Vec<_>>())
    }

    #[test]
    fn valid_text_is_taken_whole() {
        assert_eq!(parse("<a> <b> <c> .\n<d> <e> <f> .\n").len(), 2);
    }

    #[test]
    fn a_broken_line_is_dropped() {
        assert_eq!(parse("<a> <b> <c> .\n<d> <e> oops\n<g> <h> <i> .").len(), 2);
    }

    #[test]
    fn prose_around_the_document_is_dropped() {
        assert_eq!(parse("Here you are:\n```turtle\n<a> <b> <c> .\n```\nEnjoy!").len(), 1);
    }

    #[test]
    fn a_missing_dot_costs_the_lines_around_it() {
        // The error shows at the second statement; dropping the line before it lets all of the rest parse.
        assert_eq!(parse("<a> <b> <c>\n<d> <e> <f> .\n<g> <h> <i> .").len(), 2);
    }

    #[test]
    fn hopeless_text_gives_no_triples() {
        assert!(parse("I am sorry\nI cannot do that.").is_empty());
        assert!(parse("").is_empty());
    }

    proptest! {
        #[test]
        fn any_text_ends(text in "([<>a. \"\\[\\];@]{0,8}\n){0,12}") {
            let _ = parse(&text);
        }
    }
}
