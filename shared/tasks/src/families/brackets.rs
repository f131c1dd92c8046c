//! The nesting of brackets, looked at before a parser.

/// The nesting of brackets. Brackets in literals count too: no honest document has hundreds of them there, and brackets
/// that are missed do no harm, because the parsers keep stacks of their own.
pub(crate) fn bracket_depth(document: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for byte in document.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}
