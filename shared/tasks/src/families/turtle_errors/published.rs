//! The published case, which is found only in the recorded prompts.

use crate::exercise::CaseError;
use crate::text::python::SPACE;

/// From the declaration of the empty prefix to the last statement of the document.
pub(super) fn turtle_pattern() -> String {
    format!(r"PREFIX{SPACE}*:{SPACE}.*org:role :marketingManager{SPACE}?\]{SPACE}?\.")
}

/// The errors of the document and their repairs: a missing dot after an address, a missing semicolon, and in version
/// 2.0 a wrong namespace.
const REPAIRS: [(&str, &str); 3] = [
    ("\"UK\" ] \n", "\"UK\" ] .\n"),
    ("org:OrganizationalUnit org:unitOf", "org:OrganizationalUnit ; org:unitOf"),
    ("<http://www.w3.org/2002/owl#>", "<http://www.w3.org/2002/07/owl#>"),
];

/// The broken document of a recorded prompt, and the same repaired.
pub(super) fn documents(prompt: &str) -> Result<(String, String), CaseError> {
    let (_, broken) = prompt.split_once("\n\n").ok_or(CaseError::Field {
        field: "brokenTurtle",
        expected: "text, or a recorded prompt with an empty line,",
    })?;
    let optimal = REPAIRS
        .iter()
        .fold(broken.to_owned(), |document, (error, repair)| document.replacen(error, repair, 1));
    Ok((broken.to_owned(), optimal))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_follows_the_first_empty_line_and_is_repaired() {
        let prompt =
            "Please repair.\n\n:a :b [ :c \"UK\" ] \n:d a org:OrganizationalUnit org:unitOf :e .\n\nend";
        let (broken, optimal) = documents(prompt).unwrap();
        assert!(prompt.ends_with(&broken));
        assert_eq!(optimal, ":a :b [ :c \"UK\" ] .\n:d a org:OrganizationalUnit ; org:unitOf :e .\n\nend");
        assert!(documents("no document").is_err());
    }
}
