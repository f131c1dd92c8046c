//! What Kubernetes and containers say, as people are told it: in one line of bounded length.

use crate::objects::ContainerStatus;

/// The longest text of why a server ended or does not start, in characters.
const WHY_CHARS_MAX: usize = 400;

/// What a container said before it ended, after a semicolon; empty if it said nothing.
pub(crate) fn last_words(container: &ContainerStatus) -> String {
    let ends =
        [&container.state, &container.last_state].into_iter().filter_map(|state| state.terminated.as_ref());
    let said =
        ends.filter(|end| end.exit_code != 0).map(|end| end.message.trim()).find(|text| !text.is_empty());
    let last = said.and_then(|text| text.lines().rev().find(|line| !line.trim().is_empty()));
    last.map(|line| format!("; {}: {}", container.name, line.trim())).unwrap_or_default()
}

/// One line of bounded length.
pub(crate) fn shortened(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(WHY_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}
