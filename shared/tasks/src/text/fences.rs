//! Fenced code blocks in answers.

/// A fenced code block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FencedBlock<'a> {
    /// The block with its fences.
    pub whole: &'a str,
    /// The label behind the opening fence, untrimmed.
    pub label: &'a str,
    /// The text between the fences, untrimmed.
    pub body: &'a str,
}

/// The fenced blocks of an answer, left to right.
pub fn fenced_blocks(answer: &str) -> Vec<FencedBlock<'_>> {
    let _ = answer;
    Vec::new()
}
