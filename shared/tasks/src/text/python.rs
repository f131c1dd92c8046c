//! Python's notion of lines, white space and word characters, which is not Rust's.

/// `str.splitlines()`: no empty line after a final line break, none for an empty text.
pub fn splitlines(text: &str) -> Vec<&str> {
    text.lines().collect()
}

/// `str.strip()`.
pub fn strip(text: &str) -> &str {
    text.trim()
}
