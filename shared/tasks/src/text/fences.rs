//! Fenced code blocks in answers, as found by the regular expression ```` ```([^\n`]*)\n(.*?)``` ```` (dot matches line
//! breaks): without overlap, left to right.
//!
//! Written by hand in one pass over the text, so that an answer full of opening fences costs no more than any other.

/// A fenced code block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FencedBlock<'a> {
    /// The block with its fences.
    pub whole: &'a str,
    /// The label after the opening fence, untrimmed.
    pub label: &'a str,
    /// The text between the fences, untrimmed.
    pub body: &'a str,
}

/// The opening and closing fence of a block.
const FENCE: &str = "```";

/// The fenced blocks of an answer, left to right. The closing fence may be anywhere, not only at the start of a
/// line; a block that is never closed does not count.
pub fn fenced_blocks(answer: &str) -> Vec<FencedBlock<'_>> {
    let mut blocks = Vec::new();
    let mut from = 0;
    while let Some(offset) = answer[from..].find(FENCE) {
        let open = from + offset;
        let label_start = open + FENCE.len();
        let Some(label_len) = answer[label_start..].find(['\n', '`']) else { break };
        let label_end = label_start + label_len;
        if answer[label_end..].starts_with('`') {
            // A label cannot contain a back quote, so no block starts here. With four back quotes in a row, one may
            // start at the second, so continue one character later and not after the fence.
            from = open + 1;
            continue;
        }
        let body_start = label_end + 1;
        let Some(body_len) = answer[body_start..].find(FENCE) else { break };
        let body_end = body_start + body_len;
        from = body_end + FENCE.len();
        blocks.push(FencedBlock {
            whole: &answer[open..from],
            label: &answer[label_start..label_end],
            body: &answer[body_start..body_end],
        });
    }
    blocks
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::Regex;

    use super::*;

    #[test]
    fn a_block_has_a_label_a_body_and_its_fences() {
        let answer = "Here:\n```sparql \nASK {}\n```\nand ``` ```\nb``` end";
        assert_eq!(
            fenced_blocks(answer),
            [
                FencedBlock { whole: "```sparql \nASK {}\n```", label: "sparql ", body: "ASK {}\n" },
                FencedBlock { whole: "```\nb```", label: "", body: "b" },
            ]
        );
    }

    #[test]
    fn what_is_not_closed_or_not_opened_by_a_line_is_no_block() {
        for answer in ["", "```", "```\n", "```turtle\na b c", "``` a ``` b", "a\n``\nb\n``"] {
            assert_eq!(fenced_blocks(answer), [], "{answer:?}");
        }
        assert_eq!(fenced_blocks("````\na```")[0].whole, "```\na```", "four back quotes open at the second");
    }

    proptest! {
        #[test]
        fn the_scan_equals_the_regular_expression(answer in "[a\n`]{0,60}|(```|\n|a){0,30}") {
            let pattern = Regex::new(r"(?s)```([^\n`]*)\n(.*?)```").unwrap();
            let expected: Vec<(String, String, String)> = pattern
                .captures_iter(&answer)
                .map(|found| (found[0].to_owned(), found[1].to_owned(), found[2].to_owned()))
                .collect();
            let blocks: Vec<(String, String, String)> = fenced_blocks(&answer)
                .iter()
                .map(|block| (block.whole.to_owned(), block.label.to_owned(), block.body.to_owned()))
                .collect();
            prop_assert_eq!(blocks, expected);
        }
    }
}
