//! Offers known names in place of one that nobody knows: the end of a message about a wrong name.

/// Names that a message offers at most.
pub const OFFERED_MAX: usize = 3;

/// Names that a message lists at most where none is near.
const LISTED_MAX: usize = 8;

/// Characters that a part of a name has at least to be looked for inside of names.
const PART_CHARS_MIN: usize = 3;

/// Characters of the longest name that is compared: the time grows with its length, and nobody slips in a longer one.
const COMPARED_CHARS_MAX: usize = 200;

/// The known names that may be meant, at most [`OFFERED_MAX`]: those with the fewest other characters, if these are few, in
/// whatever case; else those with more characters around, the shortest first.
pub fn near<'k>(unknown: &str, known: impl IntoIterator<Item = &'k str>) -> Vec<&'k str> {
    let wanted = unknown.to_lowercase();
    let chars = wanted.chars().count();
    if chars > COMPARED_CHARS_MAX {
        return Vec::new();
    }
    let differing_max = (chars / 3).max(2).min(chars / 2);
    let rank = |name: &str| {
        let name = name.to_lowercase();
        let differing = strsim::osa_distance(&wanted, &name);
        let is_part = chars >= PART_CHARS_MIN && name.contains(&wanted);
        // A part is likelier the less is around it, and less likely than a slip.
        (differing <= differing_max || is_part).then_some((differing > differing_max, differing))
    };
    let mut ranked: Vec<_> = known.into_iter().filter_map(|name| Some((rank(name)?, name))).collect();
    ranked.sort_unstable();
    ranked.dedup();
    // Where a slip explains the name, what is less like it is not meant.
    if let Some(&((false, least), _)) = ranked.first() {
        ranked.retain(|(rank, _)| *rank == (false, least));
    }
    ranked.into_iter().map(|(_, name)| name).take(OFFERED_MAX).collect()
}

/// The same as a question; `None` if no name is near.
pub fn question<'k>(unknown: &str, known: impl IntoIterator<Item = &'k str>) -> Option<String> {
    let names: Vec<String> = near(unknown, known).into_iter().map(|name| format!("`{name}`")).collect();
    let (last, others) = names.split_last()?;
    Some(match others {
        [] => format!("did you mean {last}?"),
        others => format!("did you mean {} or {last}?", others.join(", ")),
    })
}

/// The same; where no name is near, the first of those that there are, and the number of the others.
pub fn offer<'k>(unknown: &str, known: impl IntoIterator<Item = &'k str> + Clone) -> String {
    if let Some(question) = question(unknown, known.clone()) {
        return question;
    }
    let names: Vec<&str> = known.into_iter().collect();
    match names.split_at_checked(LISTED_MAX) {
        _ if names.is_empty() => "there is none".to_owned(),
        Some((first, others)) if !others.is_empty() => {
            format!("there are {} and {} more", first.join(", "), others.len())
        }
        _ => format!("there are {}", names.join(", ")),
    }
}

/// A message of `serde` about an unknown key or value, and the question which of those that it expected was meant.
pub fn with_question(message: String) -> String {
    let wanted = |what| message.split_once(what)?.1.split_once('`');
    let found = wanted("unknown field `").or_else(|| wanted("unknown variant `"));
    let offered = found.and_then(|(unknown, expected)| {
        // Names stand between every second and third of the marks around them.
        question(unknown, expected.split('`').skip(1).step_by(2))
    });
    match offered {
        Some(question) => format!("{}\n{question}", message.trim_end()),
        None => message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASKS: [&str; 5] =
        ["RdfFriendCount-nt-1", "RdfFriendCount-turtle-1", "Sparql2AnswerListLLM", "case", "check"];

    #[test]
    fn another_case_a_slip_and_a_part_of_a_name_are_recognised() {
        assert_eq!(near("CHECK", TASKS), ["check"]);
        assert_eq!(near("chek", TASKS), ["check"]);
        assert_eq!(near("rdffriendcount", TASKS), ["RdfFriendCount-nt-1", "RdfFriendCount-turtle-1"]);
        assert_eq!(near("cas", ["castle", "case"]), ["case"]);
        assert_eq!(near("lake", ["label", "like", "case"]), ["like"]);
        assert!(near("colour", TASKS).is_empty());
        // Of a name this short, every other one is near.
        assert!(near("b", ["a"]).is_empty());
        assert!(near("", TASKS).is_empty());
        assert!(near(&"x".repeat(201), [&*"x".repeat(202)]).is_empty());
    }

    #[test]
    fn a_message_never_lists_many_names() {
        assert_eq!(offer("chek", TASKS), "did you mean `check`?");
        assert_eq!(offer("count", TASKS), "did you mean `RdfFriendCount-nt-1` or `RdfFriendCount-turtle-1`?");
        assert_eq!(
            offer("row", ["row 1", "row 2", "row 3", "row 4"]),
            "did you mean `row 1`, `row 2` or `row 3`?"
        );
        let many: Vec<String> = (0..90).map(|number| format!("{number}")).collect();
        let many = offer("colour", many.iter().map(String::as_str));
        assert_eq!(many, "there are 0, 1, 2, 3, 4, 5, 6, 7 and 82 more");
        assert_eq!(offer("x", ["a", "b", "c"]), "there are a, b, c");
        assert_eq!(offer("x", []), "there is none");
    }

    #[test]
    fn a_message_of_serde_gets_its_question() {
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        #[expect(dead_code, reason = "only its errors are looked at")]
        struct Options {
            connector: Kind,
            label: u8,
        }
        #[derive(Debug, serde::Deserialize)]
        #[serde(rename_all = "kebab-case")]
        enum Kind {
            Simulated,
            OpenaiCompatible,
        }
        let told = |json: &str| with_question(serde_json::from_str::<Options>(json).unwrap_err().to_string());
        assert!(told(r#"{"conector": 1}"#).ends_with("\ndid you mean `connector`?"));
        assert!(told(r#"{"connector": "simulatd"}"#).ends_with("\ndid you mean `simulated`?"));
        assert!(told(r#"{"hue": 1}"#).contains("expected `connector` or `label`"));
        assert!(!told(r#"{"hue": 1}"#).contains("did you mean"));
        assert!(!told("{").contains("did you mean"));
    }
}
