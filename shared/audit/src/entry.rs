//! A line of an audit file.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Longest text of a line in bytes; names are shorter, and what a stranger sends is cut.
pub(crate) const TEXT_BYTES_MAX: usize = 300;

/// Who did what, without the time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Deed {
    /// Name of the identity; empty if it is unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub who: String,
    /// Address of its machine, without port; empty for acts of the coordinator's own machine.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub from: String,
    /// What was done, in one word, such as `remove` or `refused`.
    pub act: String,
    /// What it was done to, and why where that is known: a run, a worker, a call.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
}

/// A line of an audit file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// When; of several repetitions, the last.
    pub at: Timestamp,
    #[serde(flatten)]
    pub deed: Deed,
    /// How often. More than 1 where repetitions were counted together.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub times: u64,
}

fn once() -> u64 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_once(times: &u64) -> bool {
    *times == 1
}

impl Deed {
    /// The same with texts of bounded length.
    pub(crate) fn bounded(mut self) -> Self {
        for text in [&mut self.who, &mut self.from, &mut self.act, &mut self.about] {
            if text.len() > TEXT_BYTES_MAX {
                let end = (0..=TEXT_BYTES_MAX).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
                text.truncate(end);
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_what_is_known_and_no_more() {
        let deed = Deed { act: "refused".to_owned(), about: "ü".repeat(TEXT_BYTES_MAX), ..Deed::default() };
        let deed = deed.bounded();
        assert_eq!(deed.about.len(), TEXT_BYTES_MAX);
        let entry = AuditEntry { at: "2026-01-02T03:04:05Z".parse().unwrap(), deed, times: 1 };
        let line = serde_json::to_string(&entry).unwrap();
        assert!(line.starts_with(r#"{"at":"2026-01-02T03:04:05Z","act":"refused","about":"ü"#), "{line}");
        assert_eq!(serde_json::from_str::<AuditEntry>(&line).unwrap(), entry);
    }
}
