//! Relative IRIs, resolved as Python's `urljoin` and `normpath` do it: leniently, and with their own corners.

/// Schemes whose IRIs have paths to which others can be relative.
const WITH_PATHS: [&str; 11] =
    ["", "file", "ftp", "gopher", "http", "https", "imap", "nntp", "sftp", "ws", "wss"];

/// The parts of an IRI. None of them has its separator.
#[derive(Default)]
struct Parts<'a> {
    scheme: String,
    authority: &'a str,
    path: &'a str,
    query: &'a str,
    fragment: &'a str,
}

impl<'a> Parts<'a> {
    fn of(iri: &'a str) -> Self {
        let mut parts = Self::default();
        let mut rest = iri.trim_start_matches(|c: char| c <= ' ');
        if let Some((scheme, after)) = rest.split_once(':') {
            let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
            if scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(is_part) {
                parts.scheme = scheme.to_ascii_lowercase();
                rest = after;
            }
        }
        if let Some(after) = rest.strip_prefix("//") {
            let end = after.find(['/', '?', '#']).unwrap_or(after.len());
            (parts.authority, rest) = after.split_at(end);
        }
        if let Some((before, fragment)) = rest.split_once('#') {
            (rest, parts.fragment) = (before, fragment);
        }
        (parts.path, parts.query) = rest.split_once('?').unwrap_or((rest, ""));
        parts
    }

    /// The parts as one IRI, with this path.
    fn with_path(&self, path: &str) -> String {
        let mut iri = String::new();
        if !self.scheme.is_empty() {
            iri.push_str(&self.scheme);
            iri.push(':');
        }
        let has_authority = !self.authority.is_empty()
            || !self.scheme.is_empty()
                && WITH_PATHS.contains(&self.scheme.as_str())
                && !path.starts_with("//");
        if has_authority {
            iri.push_str("//");
            iri.push_str(self.authority);
            if !path.is_empty() && !path.starts_with('/') {
                iri.push('/');
            }
        }
        iri.push_str(path);
        for (separator, part) in [('?', self.query), ('#', self.fragment)] {
            if !part.is_empty() {
                iri.push(separator);
                iri.push_str(part);
            }
        }
        iri
    }
}

/// An IRI that stands in a document, in full and without `.` and `..`.
pub(super) fn resolved(base: Option<&str>, iri: &str) -> String {
    if iri.contains("://") {
        return iri.to_owned();
    }
    let relative = Parts::of(iri);
    if !relative.scheme.is_empty() {
        return iri.to_owned();
    }
    let base_parts = Parts::of(base.unwrap_or_default());
    let mut full = if matches!(base_parts.scheme.as_str(), "urn" | "urn-x") {
        let (name, path) = base_parts.path.split_once('/').unwrap_or((base_parts.path, ""));
        let joined = joined(&format!("/{path}"), relative.path);
        let fragment = if relative.fragment.is_empty() { "" } else { "#" };
        format!("{}:{name}{joined}{fragment}{}", base_parts.scheme, relative.fragment)
    } else {
        let joined = joined(base.unwrap_or_default(), iri);
        let parts = Parts::of(&joined);
        let mut path = without_dots(parts.path);
        if parts.path.ends_with('/') && !path.ends_with('/') {
            path.push('/');
        }
        parts.with_path(&path)
    };
    if iri.ends_with('#') && !full.ends_with('#') {
        full.push('#');
    }
    full
}

/// Python's `urljoin`.
fn joined(base: &str, iri: &str) -> String {
    if base.is_empty() || iri.is_empty() {
        return if base.is_empty() { iri } else { base }.to_owned();
    }
    let from = Parts::of(base);
    let mut to = Parts::of(iri);
    if to.scheme.is_empty() {
        to.scheme.clone_from(&from.scheme);
    }
    if to.scheme != from.scheme || !WITH_PATHS.contains(&to.scheme.as_str()) {
        return iri.to_owned();
    }
    if !to.authority.is_empty() {
        return to.with_path(to.path);
    }
    to.authority = from.authority;
    if to.path.is_empty() {
        if to.query.is_empty() {
            to.query = from.query;
        }
        return to.with_path(from.path);
    }
    let mut segments: Vec<&str> = Vec::new();
    if !to.path.starts_with('/') {
        segments.extend(from.path.split('/'));
        if segments.last().is_some_and(|last| !last.is_empty()) {
            segments.pop();
        }
        segments.extend(to.path.split('/'));
        let last = segments.len() - 1;
        let mut at = 0;
        segments.retain(|segment| {
            at += 1;
            at == 1 || at == last + 1 || !segment.is_empty()
        });
    } else {
        segments.extend(to.path.split('/'));
    }
    let mut path = Vec::new();
    for segment in &segments {
        match *segment {
            ".." => {
                path.pop();
            }
            "." => {}
            other => path.push(other),
        }
    }
    if matches!(segments.last(), Some(&("." | ".."))) {
        path.push("");
    }
    let path = path.join("/");
    to.with_path(if path.is_empty() { "/" } else { &path })
}

/// Python's `normpath`.
fn without_dots(path: &str) -> String {
    // Two slashes at the beginning stay, three do not.
    let slashes = match path.bytes().take_while(|byte| *byte == b'/').count() {
        2 => "//",
        0 => "",
        _ => "/",
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        let climbs = part == ".." && (slashes.is_empty() && parts.is_empty() || parts.last() == Some(&".."));
        match part {
            "" | "." => {}
            ".." if !climbs => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let path = format!("{slashes}{}", parts.join("/"));
    if path.is_empty() { ".".to_owned() } else { path }
}

#[cfg(test)]
mod tests {
    use super::resolved;

    #[test]
    fn relative_iris_are_joined_as_python_joins_them() {
        for (base, iri, expected) in [
            ("http://e/d/f", "a", "http://e/d/a"),
            ("http://e/d/f", "../a/./b/", "http://e/a/b/"),
            ("http://e/d/f", "/a//b", "http://e/a/b"),
            ("http://e/d/f", "#a", "http://e/d/f#a"),
            ("http://e/d/f", "#", "http://e/d/f#"),
            ("http://e/d/f", "?q", "http://e/d/f?q"),
            ("http://e/d/f", "", "http://e/d/f"),
            ("http://e/d/", ":a", "http://e/d/:a"),
            ("http://e/d/", "//f/a", "http://f/a"),
            ("http://e", "#a", "http://e/.#a"),
            ("http://e/d/", "urn:a", "urn:a"),
            ("http://e/d/", "a b:c", "http://e/d/a b:c"),
            ("urn:n:a/b", "c", "urn:n:a/c"),
            ("ex:a", "b", "b"),
            ("", "a/../b", "b"),
            ("", "#a", ".#a"),
        ] {
            assert_eq!(resolved(Some(base), iri), expected, "{iri} at {base}");
        }
    }
}
