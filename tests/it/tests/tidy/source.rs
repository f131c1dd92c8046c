//! The sources of all members as the rules of this crate read them: their code without comments, tests and the content of
//! literals, and what it imports, names and implements. No parser of Rust: it reads what `rustfmt` writes.

use std::collections::BTreeSet;
use std::path::Path;

use crate::workspace::{members, text_files};

/// What may begin an item after its attributes.
const ITEMS: [&str; 15] = [
    "async ",
    "const ",
    "enum ",
    "fn ",
    "impl ",
    "impl<",
    "macro_rules! ",
    "mod ",
    "pub ",
    "pub(",
    "static ",
    "struct ",
    "trait ",
    "type ",
    "use ",
];

/// A file below a member's `src`, without its tests. Lines of its code are those of the file.
pub struct Source {
    /// Relative to the workspace's folder.
    pub path: String,
    /// The folder of its member, in the same way.
    pub member: String,
    /// Comments and tests are blank, literals empty.
    pub code: String,
    /// The same with what stands in literals.
    pub words: String,
}

/// A path that a `use` or an expression names, from the root of the crate.
pub struct Import {
    pub path: Vec<String>,
    pub line: usize,
}

/// A name in a file.
pub struct Named {
    pub name: String,
    pub line: usize,
}

/// The sources of all members.
pub fn sources() -> Vec<Source> {
    let members = members();
    let mut files = Vec::new();
    for (path, text) in text_files() {
        let path = path.to_str().unwrap();
        let member = members.iter().find(|member| path.starts_with(&format!("{}/src/", member.folder)));
        let is_written = path.ends_with(".rs") && !path.contains("/generated/");
        if let Some(member) = member.filter(|_| is_written) {
            let code = blanked(&text, false);
            let (path, member) = (path.to_owned(), member.folder.clone());
            files.push((Source { path, member, code, words: blanked(&text, true) }, BTreeSet::new()));
        }
    }
    for (source, tests) in &mut files {
        *tests = source.drop_tests();
    }
    let tests: Vec<String> = files.iter().flat_map(|(_, tests)| tests.iter().cloned()).collect();
    let is_test = |path: &str| {
        tests.iter().any(|test| path == format!("{test}.rs") || path.starts_with(&format!("{test}/")))
    };
    let mut sources: Vec<Source> =
        files.into_iter().map(|(source, _)| source).filter(|source| !is_test(&source.path)).collect();
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(sources.len() > 300, "the members have sources");
    sources
}

impl Source {
    /// The line of a byte of its code, from 1.
    pub fn line(&self, at: usize) -> usize {
        self.code.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1
    }

    /// Its path below the member's `src`.
    pub fn below(&self) -> &str {
        self.path[self.member.len()..].strip_prefix("/src/").unwrap()
    }

    /// Its module, from the root of the crate.
    pub fn module(&self) -> Vec<String> {
        let mut parts: Vec<String> =
            self.below().trim_end_matches(".rs").split('/').map(str::to_owned).collect();
        let last = parts.last().unwrap();
        if last == "mod" || (parts.len() == 1 && (last == "lib" || last == "main")) {
            parts.pop();
        }
        parts
    }

    /// The folder in which its modules lie.
    pub fn home(&self) -> String {
        let path = Path::new(&self.path);
        let folder = path.parent().unwrap();
        match path.file_stem().unwrap().to_str().unwrap() {
            "mod" | "lib" | "main" => folder.to_str().unwrap().to_owned(),
            stem => folder.join(stem).to_str().unwrap().to_owned(),
        }
    }

    /// What it takes from its own crate, by `crate::` or `super::`, in a `use` or elsewhere. What a module lends to others
    /// from those below it, by `pub use` of their names, is none of it.
    pub fn imports(&self) -> Vec<Import> {
        let mut imports = Vec::new();
        let module = self.module();
        let mut add = |path: Vec<String>, at: usize| {
            let supers = path.iter().take_while(|part| *part == "super").count();
            let rest = match path.first().map(String::as_str) {
                Some("crate") => path[1..].to_vec(),
                Some("super") => [&module[..module.len().saturating_sub(supers)], &path[supers..]].concat(),
                _ => return,
            };
            imports.push(Import { path: rest, line: self.line(at) });
        };
        let mut others = self.code.clone();
        for (at, _) in self.code.match_indices("use ") {
            let begins = self.code[..at].ends_with(['\n', ' ', ')', '{', ';']) || at == 0;
            let Some(end) = self.code[at..].find(';').filter(|_| begins) else { continue };
            let tree = &self.code[at + "use ".len()..at + end];
            if !tree.trim_start().starts_with(|c: char| c.is_alphabetic() || c == '{') {
                continue;
            }
            for path in expanded(tree) {
                add(path, at);
            }
            let blank: String = tree.chars().map(|c| if c == '\n' { c } else { ' ' }).collect();
            others.replace_range(at + "use ".len()..at + end, &blank);
        }
        for root in ["crate::", "super::"] {
            for (at, _) in others.match_indices(root) {
                let inside = others[..at].ends_with(|c: char| c.is_alphanumeric() || "_:$(".contains(c));
                // In `pub(in crate::x)` and in macros it is no import.
                if !inside || others[..at].ends_with('(') {
                    let path = others[at..].split(|c: char| !c.is_alphanumeric() && !"_:".contains(c));
                    let path = path.into_iter().next().unwrap();
                    add(path.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect(), at);
                }
            }
        }
        imports
    }

    /// The types and traits that it defines: all, or those that others may name.
    pub fn types(&self, public: bool) -> Vec<Named> {
        let mut found = Vec::new();
        for (number, line) in self.code.lines().enumerate() {
            let line = line.trim_start();
            let (shown, item) = match line.strip_prefix("pub") {
                Some(rest) if rest.starts_with('(') => {
                    (true, rest.split_once(") ").map_or("", |(_, rest)| rest))
                }
                Some(rest) if rest.starts_with(' ') => (true, &rest[1..]),
                _ => (false, line),
            };
            let item = item.strip_prefix("unsafe ").unwrap_or(item);
            let kinds = ["struct ", "enum ", "union ", "trait ", "type "];
            let Some(rest) = kinds.iter().find_map(|kind| item.strip_prefix(kind)) else { continue };
            let name = leading_name(rest);
            // In a macro it may be `$name`.
            if (shown || !public) && !name.is_empty() {
                found.push(Named { name: name.to_owned(), line: number + 1 });
            }
        }
        found
    }

    /// The types that it implements, as themselves and not as a trait.
    pub fn implements(&self) -> Vec<Named> {
        self.heads()
            .filter_map(|(head, line)| {
                let of_trait = head.split_whitespace().any(|word| word == "for");
                let name = head.trim_start().trim_start_matches("dyn ");
                let path = name.split(['<', ' ', '{']).next().unwrap_or_default();
                let name = path.rsplit("::").next().unwrap_or_default();
                let plain = !name.is_empty() && !name.starts_with('$');
                (!of_trait && plain).then(|| Named { name: name.to_owned(), line })
            })
            .collect()
    }

    /// Where it implements a trait, as `Trait for Type`.
    pub fn implements_trait(&self, name: &str) -> Vec<Named> {
        self.heads()
            .filter_map(|(head, line)| {
                let (of, rest) = head.split_once(" for ")?;
                let of = of.trim().split('<').next()?.rsplit("::").next()?;
                let ours = of == name;
                ours.then(|| Named { name: leading_name(rest.trim_start_matches('&')).to_owned(), line })
            })
            .collect()
    }

    /// What stands between `impl` and the brace, without the parameters of `impl` and what `where` says, and its line.
    fn heads(&self) -> impl Iterator<Item = (String, usize)> {
        let starts = self.code.match_indices("impl").filter(|(at, _)| {
            let line = self.code[..*at].rsplit('\n').next().unwrap_or_default();
            let behind = &self.code[at + 4..];
            line.trim().is_empty() && behind.starts_with(['<', ' '])
        });
        starts.map(|(at, _)| {
            let behind = &self.code[at + 4..];
            let head = &behind[..behind.find('{').unwrap_or(behind.len())];
            let head = head.split(" where").next().unwrap_or(head);
            (without_parameters(head).replace('\n', " ").trim().to_owned(), self.line(at))
        })
    }

    /// Makes its tests blank; returns the files, without their endings, that hold tests alone.
    fn drop_tests(&mut self) -> BTreeSet<String> {
        let mut files = BTreeSet::new();
        let mut from = 0;
        while let Some(found) = self.code[from..].find("#[cfg(") {
            let at = from + found;
            from = at + 1;
            let cfg = &self.code[at + "#[cfg(".len()..];
            if !cfg.starts_with("test)") && !cfg.starts_with("any(test") {
                continue;
            }
            // Behind all attributes of the item.
            let mut item = at;
            while self.code[item..].starts_with("#[") {
                item += closing(&self.code[item + 1..], '[', ']') + 2;
                item += self.code[item..].len() - self.code[item..].trim_start().len();
            }
            let rest = &self.code[item..];
            if !ITEMS.iter().any(|word| rest.starts_with(word)) {
                continue;
            }
            let stop = rest.find(['{', ';']).unwrap_or(rest.len());
            let declared = rest[..stop].split_whitespace().skip_while(|word| *word != "mod").nth(1);
            let end = if rest[stop..].starts_with('{') {
                item + stop + closing(&rest[stop..], '{', '}') + 1
            } else {
                if let Some(name) = declared {
                    files.insert(format!("{}/{name}", self.home()));
                }
                item + stop
            };
            // Both have the same lines and the same number of characters in each.
            let (first, last) = (self.code[..at].chars().count(), self.code[..end].chars().count());
            for text in [&mut self.code, &mut self.words] {
                let blank = |(place, c): (usize, char)| {
                    if (first..last).contains(&place) && c != '\n' { ' ' } else { c }
                };
                *text = text.chars().enumerate().map(blank).collect();
            }
        }
        files
    }
}

/// The name at the beginning of a text.
fn leading_name(text: &str) -> &str {
    &text[..text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len())]
}

/// Where the bracket that opens a text is closed.
fn closing(text: &str, open: char, close: char) -> usize {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        depth += i32::from(c == open) - i32::from(c == close);
        if depth == 0 {
            return at;
        }
    }
    text.len() - 1
}

/// A head of an `impl` without the parameters that `impl` declares.
fn without_parameters(head: &str) -> &str {
    if !head.starts_with('<') {
        return head;
    }
    let mut depth = 0;
    let mut before = ' ';
    for (at, c) in head.char_indices() {
        depth += i32::from(c == '<') - i32::from(c == '>' && before != '-');
        if depth == 0 {
            return &head[at + 1..];
        }
        before = c;
    }
    head
}

/// The paths of a `use`, one for each name: `a::{b, c::{d, self}}` is `a::b`, `a::c::d` and `a::c`.
fn expanded(tree: &str) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    let mut depth = 0;
    for branch in tree.split(|c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    }) {
        let parts = |text: &str| -> Vec<String> {
            let text = text.split(" as ").next().unwrap_or_default();
            let parts = text.split("::").map(|part| part.trim().trim_start_matches("r#").to_owned());
            parts.filter(|part| !part.is_empty() && part != "self").collect()
        };
        match branch.split_once('{') {
            Some((before, inside)) => {
                let inside = inside.rsplit_once('}').map_or(inside, |(inside, _)| inside);
                let before = parts(before);
                paths.extend(expanded(inside).into_iter().map(|below| [before.clone(), below].concat()));
            }
            None if branch.trim().is_empty() => {}
            None => paths.push(parts(branch)),
        }
    }
    paths
}

/// A source whose comments, and whose literals unless they are kept, are blank. Lines keep their numbers and lengths.
fn blanked(text: &str, keep_literals: bool) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let blank = |out: &mut String, range: &[char]| {
        out.extend(range.iter().map(|c| if *c == '\n' { '\n' } else { ' ' }));
    };
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut at = 0;
    while at < chars.len() {
        let rest = &chars[at..];
        let literal = match rest {
            ['/', '/', ..] => {
                let end = rest.iter().position(|c| *c == '\n').unwrap_or(rest.len());
                blank(&mut out, &rest[..end]);
                at += end;
                continue;
            }
            ['/', '*', ..] => {
                let end = rest.windows(2).position(|two| two == ['*', '/']).map_or(rest.len(), |end| end + 2);
                blank(&mut out, &rest[..end]);
                at += end;
                continue;
            }
            ['r', '"' | '#', ..] if at == 0 || !is_word(chars[at - 1]) || is_byte(&chars, at) => raw(rest),
            ['"', ..] => Some(quoted(rest)),
            ['\'', '\\', ..] => rest.iter().skip(3).position(|c| *c == '\'').map(|end| end + 4),
            ['\'', _, '\'', ..] => Some(3),
            _ => None,
        };
        let Some(length) = literal else {
            out.push(chars[at]);
            at += 1;
            continue;
        };
        if keep_literals {
            out.extend(&rest[..length]);
        } else {
            blank(&mut out, &rest[..length]);
        }
        at += length;
    }
    out
}

/// Whether the `r` here belongs to a raw string of bytes.
fn is_byte(chars: &[char], at: usize) -> bool {
    at > 0 && chars[at - 1] == 'b' && (at == 1 || !(chars[at - 2].is_alphanumeric() || chars[at - 2] == '_'))
}

/// Length of a raw string; `None` for a raw name.
fn raw(rest: &[char]) -> Option<usize> {
    let hashes = rest[1..].iter().take_while(|c| **c == '#').count();
    if rest.get(1 + hashes) != Some(&'"') {
        return None;
    }
    let end: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
    let begin = hashes + 2;
    let found = rest[begin..].windows(end.len()).position(|window| window == end)?;
    Some(begin + found + end.len())
}

/// Length of a string.
fn quoted(rest: &[char]) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != '"' {
        at += if rest[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        let member = "m".to_owned();
        Source { path: path.to_owned(), member, code: blanked(text, false), words: blanked(text, true) }
    }

    fn paths(imports: &[Import]) -> Vec<String> {
        imports.iter().map(|import| format!("{}:{}", import.path.join("::"), import.line)).collect()
    }

    #[test]
    fn imports_are_found_wherever_they_stand() {
        let text = "use crate::a::{B, c::{D, self as E}};\nuse std::io;\npub use self::below::X;\n\
                    // use crate::no;\nfn f() {\n    let x = crate::g::h(\"crate::text\");\n    super::up(x)\n}\n";
        let found = source("m/src/one/two.rs", text).imports();
        assert_eq!(paths(&found), ["a::B:1", "a::c::D:1", "a::c:1", "g::h:6", "one::up:7"]);
    }

    #[test]
    fn types_and_implementations_are_found_and_tests_are_not() {
        let text = "pub(crate) struct A<T>(T);\nimpl<T: Fn() -> u8> A<T> {}\nimpl x::Clone for A<u8> {}\n\
                    enum Own {}\nimpl dyn Many {}\n#[cfg(test)]\nmod tests {\n    pub struct No;\n    impl No {}\n}\n\
                    #[cfg(test)]\nmod more;\nimpl Own {}\n";
        let mut read = source("m/src/a/mod.rs", text);
        assert_eq!(read.drop_tests(), BTreeSet::from(["m/src/a/more".to_owned()]));
        let names = |named: Vec<Named>| {
            named.into_iter().map(|named| format!("{}:{}", named.name, named.line)).collect::<Vec<_>>()
        };
        assert_eq!(names(read.types(true)), ["A:1"]);
        assert_eq!(names(read.types(false)), ["A:1", "Own:4"]);
        assert_eq!(names(read.implements()), ["A:2", "Many:5", "Own:13"]);
        assert_eq!(names(read.implements_trait("Clone")), ["A:3"]);
    }

    #[test]
    fn what_stands_in_literals_is_no_code() {
        let text =
            "let a = '{'; let b = b\"}\\\"\"; let c = br#\"\"{\"#; let d: &'a str = \"x\"; let e = '\\'';";
        let code = blanked(text, false);
        assert!(!code.contains(['{', '}', 'x', '"']) && code.contains("&'a str"), "{code}");
        assert_eq!(code.len(), text.len());
        assert_eq!(blanked(text, true), text);
    }
}
