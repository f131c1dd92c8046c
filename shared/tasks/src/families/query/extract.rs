//! Finds the query in an answer.

use crate::text::fences::fenced_blocks;
use crate::text::python::strip;

/// The trimmed body of the first fenced block with the word SELECT, in any case. Blocks without it (a graph, a
/// remark) are ignored, and text outside fences is never a query.
pub(super) fn extract_query(answer: &str) -> Option<&str> {
    fenced_blocks(answer).into_iter().map(|block| strip(block.body)).find(|body| has_select(body))
}

fn has_select(body: &str) -> bool {
    body.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .any(|word| word.eq_ignore_ascii_case("select"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_block_with_select_is_the_query() {
        let answer = "The data:\n```turtle\n<a> <b> <c> .\n```\nand\n```sparql\n# nothing yet\n```\nthen\n\
                      ```\n\n# top\nselect * { ?s ?p ?o }\n\n```\nor\n```sparql\nSELECT ?x { }\n```";
        assert_eq!(extract_query(answer), Some("# top\nselect * { ?s ?p ?o }"));
    }

    #[test]
    fn text_without_a_fence_and_blocks_without_select_are_no_query() {
        assert_eq!(extract_query("SELECT ?s { ?s ?p ?o }"), None);
        assert_eq!(extract_query("```sparql\nASK { ?s ?p ?o }\n```"), None);
        assert_eq!(extract_query("```\nno selection\n```"), None);
        assert_eq!(extract_query(""), None);
    }
}
