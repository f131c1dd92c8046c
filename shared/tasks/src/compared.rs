//! What a case expects and what evaluation extracts from an answer, as texts for people who read a dialogue.

use std::borrow::Cow;

mod difference;

pub use difference::{LineDifference, LineSide};

/// One part of what evaluation compares, such as a query, its result, a graph or a list.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ComparedPart {
    /// What it is, such as `query`.
    pub what: Cow<'static, str>,
    /// What the case expects; `None` where it says nothing about this part.
    pub expected: Option<String>,
    /// What was extracted from the answer; `None` where nothing was found in it.
    pub extracted: Option<String>,
    /// Whether both are whole and in one notation, so that their lines can be compared.
    pub by_line: bool,
}

impl ComparedPart {
    /// A part whose texts say different things, such as a condition and a value.
    pub(crate) fn new(
        what: impl Into<Cow<'static, str>>,
        expected: Option<String>,
        extracted: Option<String>,
    ) -> Self {
        Self { what: what.into(), expected, extracted, by_line: false }
    }

    /// Whether what was extracted is what is expected, line by line.
    pub fn is_met(&self) -> bool {
        matches!((&self.expected, &self.extracted), (Some(expected), Some(extracted)) if expected.lines().eq(extracted.lines()))
    }

    /// What differs between both; `None` where nothing does, where they are single lines, which stand below each other anyway,
    /// or where lines say nothing.
    pub fn difference(&self) -> Option<LineDifference<'_>> {
        let (expected, extracted) = (self.expected.as_deref()?, self.extracted.as_deref()?);
        let is_long = expected.lines().count().max(extracted.lines().count()) > 1;
        (self.by_line && is_long).then(|| LineDifference::of(expected, extracted))?
    }

    /// The same part, whose texts are whole and in one notation.
    pub(crate) fn by_line(self) -> Self {
        Self { by_line: true, ..self }
    }
}

/// Items one a line; `None` if there are none.
pub(crate) fn lines_of<T: AsRef<str>>(items: impl IntoIterator<Item = T>) -> Option<String> {
    let mut items = items.into_iter();
    let mut lines = items.next()?.as_ref().to_owned();
    for item in items {
        lines.push('\n');
        lines.push_str(item.as_ref());
    }
    Some(lines)
}

/// A text; `None` if it is empty.
pub(crate) fn text_of(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_items_are_no_text() {
        assert_eq!(lines_of(["a", "", "b"]), Some("a\n\nb".to_owned()));
        assert_eq!((lines_of::<&str>([]), text_of(""), text_of("a")), (None, None, Some("a".to_owned())));
    }
}
