//! Regular expressions with the rules of Python's `re`.

use fancy_regex::{Regex, RegexBuilder};
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of steps that one search may backtrack; a search that needs more counts as one that does not finish in
/// time.
pub const PATTERN_STEPS_MAX: usize = 1_000_000;

/// Maximum number of compiled patterns kept for a query. Most queries have one or two, matched against every row.
const PATTERNS_KEPT: usize = 16;

/// The flags that `re` and SPARQL share, with their number in Python.
pub(super) const FLAGS: [(char, usize); 3] = [('i', 2), ('m', 8), ('s', 16)];

/// The patterns of one query, compiled once. Cloning shares them.
#[derive(Debug, Clone, Default)]
pub(super) struct Patterns(Arc<Mutex<Vec<CachedPattern>>>);

#[derive(Debug)]
struct CachedPattern {
    pattern: String,
    flags: String,
    /// `None` if Python refuses the pattern.
    compiled: Option<Arc<Regex>>,
}

impl Patterns {
    /// The compiled pattern; `None` if Python refuses it. Unknown flags are ignored.
    pub(super) fn get(&self, pattern: &str, flags: &str) -> Option<Arc<Regex>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept.iter().find(|kept| kept.pattern == pattern && kept.flags == flags) {
            return known.compiled.clone();
        }
        let compiled = compile(pattern, flags).map(Arc::new);
        if kept.len() >= PATTERNS_KEPT {
            kept.remove(0);
        }
        let (pattern, flags) = (pattern.to_owned(), flags.to_owned());
        kept.push(CachedPattern { pattern, flags, compiled: compiled.clone() });
        compiled
    }
}

fn compile(pattern: &str, flags: &str) -> Option<Regex> {
    let pattern = respelled(pattern, flags.contains('i'), flags.contains('m'))?;
    RegexBuilder::new(&pattern)
        .case_insensitive(flags.contains('i'))
        .multi_line(flags.contains('m'))
        .dot_matches_new_line(flags.contains('s'))
        .backtrack_limit(PATTERN_STEPS_MAX)
        .build()
        .ok()
}

/// A Python pattern in the syntax of the library; `None` if Python refuses it and the library would not.
fn respelled(pattern: &str, ignores_case: bool, multiline: bool) -> Option<String> {
    let mut spelled = String::with_capacity(pattern.len());
    let mut in_class = false;
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        let next = after.chars().next();
        let mut taken = c.len_utf8();
        match c {
            '\\' => {
                let escaped = next?;
                if escaped.is_ascii_alphabetic() && !"AbBdDsSwWZafnrtvxuU".contains(escaped) {
                    return None;
                }
                match escaped {
                    'Z' if !in_class => spelled.push_str("\\z"),
                    // Letters and digits; the library takes marks and connectors for parts of words too.
                    'w' if in_class => spelled.push_str("\\p{L}\\p{N}_"),
                    'w' => spelled.push_str("[\\p{L}\\p{N}_]"),
                    'W' if !in_class => spelled.push_str("[^\\p{L}\\p{N}_]"),
                    escaped => {
                        spelled.push('\\');
                        spelled.push(escaped);
                    }
                }
                taken += escaped.len_utf8();
            }
            '[' if !in_class => {
                in_class = true;
                // A bracket in the first position is a plain character.
                let first = after.strip_prefix('^').unwrap_or(after);
                let end = rest.len() - first.len();
                spelled.push_str(&rest[..end]);
                taken = end;
                if first.starts_with(']') {
                    spelled.push_str("\\]");
                    taken += 1;
                }
            }
            ']' if in_class => {
                in_class = false;
                spelled.push(']');
            }
            // Python has no nested sets or set operations: these are plain characters.
            '[' => spelled.push_str("\\["),
            '&' | '~' | '-' if in_class && next == Some(c) => {
                spelled.push('\\');
                spelled.push(c);
            }
            '{' if !in_class => match quantifier(after) {
                Some((least, length)) => {
                    spelled.push('{');
                    spelled.push_str(least);
                    spelled.push_str(&after[..length]);
                    taken += length;
                }
                None => spelled.push_str("\\{"),
            },
            '(' if !in_class && after.starts_with("?<") => {
                // Names are written `(?P<name>`.
                if !after.starts_with("?<=") && !after.starts_with("?<!") {
                    return None;
                }
                spelled.push('(');
            }
            '(' if !in_class && !spelled.is_empty() && sets_flags(after) => return None,
            // The end is also before a line feed that ends the text.
            '$' if !in_class && !multiline => spelled.push_str("(?:\\z|(?=\\n\\z))"),
            // Python folds these letters into one.
            'i' | 'I' | 'İ' | 'ı' if ignores_case && !in_class => spelled.push_str("[iIİı]"),
            'i' | 'I' | 'İ' | 'ı' if ignores_case => spelled.push_str("iIİı"),
            c => spelled.push(c),
        }
        rest = &rest[taken..];
    }
    Some(spelled)
}

/// The quantifier after the brace of `{2}`, `{2,}`, `{,2}` or `{1,2}`: the text missing at its beginning, and its length.
/// `None` if the brace is a plain character.
fn quantifier(after: &str) -> Option<(&'static str, usize)> {
    let inside = &after[..after.find('}')?];
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let least = match inside.split_once(',') {
        Some(("", most)) if digits(most) => "0",
        Some((least, most)) if digits(least) && digits(most) => "",
        None if !inside.is_empty() && digits(inside) => "",
        _ => return None,
    };
    Some((least, inside.len() + 1))
}

/// Whether a group only sets flags for the whole pattern, which Python allows only at the beginning.
fn sets_flags(after: &str) -> bool {
    after.strip_prefix('?').is_some_and(|flags| {
        let length = flags.find(|c: char| !"aiLmsux".contains(c)).unwrap_or(flags.len());
        length > 0 && flags[length..].starts_with(')')
    })
}

/// A piece of a replacement.
#[derive(Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Group(usize),
}

/// `re.sub(pattern, replacement, text, count)` with `$1` for `\1`; `None` if Python raises. A count of 0 means all matches.
pub(super) fn substituted(pattern: &Regex, text: &str, replacement: &str, count: usize) -> Option<String> {
    let pieces = pieces(replacement, pattern.captures_len())?;
    let mut result = String::with_capacity(text.len());
    let (mut copied, mut from, mut done) = (0, 0, 0);
    while from <= text.len() && (count == 0 || done < count) {
        let Some(found) = pattern.captures_from_pos(text, from).ok()? else { break };
        let whole = found.get(0)?;
        result.push_str(&text[copied..whole.start()]);
        for piece in &pieces {
            match piece {
                Piece::Text(text) => result.push_str(text),
                Piece::Group(number) => {
                    result.push_str(found.get(*number).map_or("", |group| group.as_str()));
                }
            }
        }
        (copied, from, done) = (whole.end(), whole.end(), done + 1);
        if whole.start() == whole.end() {
            // An empty match right after another match does not count.
            let Some(c) = text[from..].chars().next() else { break };
            from += c.len_utf8();
        }
    }
    result.push_str(&text[copied..]);
    Some(result)
}

/// The pieces of a replacement as Python reads them, after rdflib has made `\` of every `$`.
fn pieces(replacement: &str, groups: usize) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut rest = replacement;
    while let Some(at) = rest.find(['\\', '$']) {
        text.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let c = after.chars().next();
        let mut taken = c.map_or(0, char::len_utf8);
        match c {
            // `$` before `$` or `\` is a backslash before a backslash.
            Some('\\' | '$') => text.push('\\'),
            Some('0') => {
                let digits = after.bytes().take(3).take_while(|byte| matches!(byte, b'0'..=b'7')).count();
                text.push(char::from_u32(u32::from_str_radix(&after[..digits], 8).ok()?)?);
                taken = digits;
            }
            Some('1'..='9') => {
                let digits = after.bytes().take(2).take_while(u8::is_ascii_digit).count();
                let number = after[..digits].parse().ok().filter(|number| *number < groups)?;
                pieces.push(Piece::Text(std::mem::take(&mut text)));
                pieces.push(Piece::Group(number));
                taken = digits;
            }
            Some('n') => text.push('\n'),
            Some('t') => text.push('\t'),
            Some('r') => text.push('\r'),
            Some('a') => text.push('\u{7}'),
            Some('b') => text.push('\u{8}'),
            Some('f') => text.push('\u{c}'),
            Some('v') => text.push('\u{b}'),
            None => return None,
            Some(c) if c.is_ascii_alphabetic() => return None,
            Some(c) => text.extend(['\\', c]),
        }
        rest = &after[taken..];
    }
    text.push_str(rest);
    pieces.push(Piece::Text(text));
    Some(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pattern: &str, text: &str) -> Option<bool> {
        compile(pattern, "").map(|pattern| pattern.is_match(text).unwrap())
    }

    #[test]
    fn patterns_are_read_as_python_reads_them() {
        for (pattern, text, expected) in [
            ("^(?!A)", "Ada", Some(false)),
            ("(?<=A)d", "Ada", Some(true)),
            ("(o)\\1", "Goods", Some(true)),
            ("(?P<c>o)(?P=c)", "Goods", Some(true)),
            ("a\\Z", "Ada", Some(true)),
            ("^a{,2}$", "aa", Some(true)),
            ("a{", "a{", Some(true)),
            ("[[A]da", "Ada", Some(true)),
            ("^[a&&b]+$", "a&b", Some(true)),
            ("[]A]", "]", Some(true)),
            ("[^]A]", "]", Some(false)),
            ("(?#note)A", "A", Some(true)),
            ("(?i)ADA", "ada", Some(true)),
            ("a(?i)D", "ad", None),
            ("\\p{Lu}", "A", None),
            ("a\\z", "a", None),
            ("(?<c>o)", "o", None),
            ("(?<=a+)b", "ab", None),
            ("(", "(", None),
            ("\\", "a", None),
        ] {
            assert_eq!(found(pattern, text), expected, "{pattern}");
        }
    }

    #[test]
    fn a_search_that_goes_back_for_ever_is_given_up() {
        let pattern = compile("^(a|aa)+(?!a)$", "").unwrap();
        assert!(pattern.is_match(&("a".repeat(60) + "b")).is_err());
    }

    #[test]
    fn replacements_are_read_as_python_reads_them() {
        let replaced =
            |pattern, text, with, count| substituted(&compile(pattern, "").unwrap(), text, with, count);
        for (pattern, with, expected) in [
            ("(b)", "[$1]", Some("a[b]c")),
            ("(b)", "[\\1]", Some("a[b]c")),
            ("(b)", "[$2]", None),
            ("(b)", "[$12]", None),
            ("(b)", "[$0]", Some("a[\0]c")),
            ("(b)", "[$]", Some("a[\\]c")),
            ("(b)", "\\$1", Some("a\\1c")),
            ("(b)", "\\n", Some("a\nc")),
            ("(b)", "\\q", None),
            ("(x)?b", "[$1]", Some("a[]c")),
            ("", "-", Some("-a-b-c-")),
            ("x*", "-", Some("-a-b-c-")),
            ("(?=b)", "-", Some("a-bc")),
        ] {
            assert_eq!(replaced(pattern, "abc", with, 0).as_deref(), expected, "{pattern} {with}");
        }
        assert_eq!(replaced("a", "aaaa", "o", 2).as_deref(), Some("ooaa"));
    }
}
