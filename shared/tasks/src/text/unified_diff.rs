//! Python's `difflib.unified_diff`.

/// Unified diff of two lists of lines with three lines of context, file names `optimal` and `answer`, its lines
/// joined with a newline. Header and hunk lines keep their own line break. Empty for equal lists.
pub fn unified_diff(optimal: &[&str], answer: &[&str]) -> String {
    let _ = (optimal, answer);
    String::new()
}
