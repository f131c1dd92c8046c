//! The wordings of questions to judges that a configuration brings in the place of a kind's own.
//!
//! A wording is part of what a question is: its fingerprint stands in the names of questions, so a reply to other words is never
//! taken for a reply to these.

use std::collections::BTreeMap;

use domain::PromptKind;
use domain::text::hex;
use sha2::{Digest, Sha256};
use tasks::{Template, Wording};

/// What judges are asked otherwise, by the name of the stage.
pub type JudgeWordings = BTreeMap<String, Wording>;

/// Longest template, in characters.
pub const TEMPLATE_CHARS_MAX: usize = 20_000;

/// Bytes of a fingerprint.
const FINGERPRINT_BYTES: usize = 6;

/// Why a wording cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct UnusableWording {
    /// The kind of prompt; `None` where the stage asks in no words at all.
    pub kind: Option<PromptKind>,
    pub problem: String,
}

/// Sees that a template has no placeholder but `known` ones, and all that are `needed`.
///
/// # Errors
/// It cannot be used.
pub(crate) fn check_template(
    kind: PromptKind,
    template: &Template,
    known: &[&str],
    needed: &[&str],
) -> Result<(), UnusableWording> {
    let wrong = |problem: String| Err(UnusableWording { kind: Some(kind), problem });
    let chars = template.as_str().chars().count();
    if chars > TEMPLATE_CHARS_MAX {
        return wrong(format!("is {chars} characters long; it may have {TEMPLATE_CHARS_MAX}"));
    }
    let used = match template.placeholders() {
        Ok(used) => used,
        Err(error) => return wrong(format!("cannot be filled: {error}")),
    };
    if let Some(unknown) = used.iter().find(|name| !known.contains(name)) {
        let known = if known.is_empty() { "there is none".to_owned() } else { known.join(", ") };
        return wrong(format!("has the placeholder `{unknown}`, which nothing fills; known: {known}"));
    }
    if let Some(missing) = needed.iter().find(|name| !used.contains(name)) {
        return wrong(format!("lacks the placeholder `{missing}`: nothing would be judged"));
    }
    Ok(())
}

/// Names wordings: equal ones have equal fingerprints.
pub fn fingerprint<'w>(wordings: impl IntoIterator<Item = &'w Wording>) -> String {
    let mut hasher = Sha256::new();
    for wording in wordings {
        for (kind, template) in wording.templates() {
            // Lengths first, so that no text continues in the next one.
            hasher.update(kind.as_str());
            hasher.update((template.as_str().len() as u64).to_le_bytes());
            hasher.update(template.as_str());
        }
        hasher.update([0]);
    }
    hex(&hasher.finalize()[..FINGERPRINT_BYTES])
}
