//! Label patterns: `*` stands for any text, `?` for one character.

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob(Vec<char>);

impl Glob {
    /// Every text is a valid pattern.
    pub fn new(pattern: &str) -> Self {
        Self(pattern.chars().collect())
    }

    /// Whether the whole of `text` matches.
    pub fn matches(&self, text: &str) -> bool {
        let text: Vec<char> = text.chars().collect();
        let (mut p, mut t) = (0, 0);
        // Where to continue after a mismatch: behind the last star, one character further in the text.
        let mut retry: Option<(usize, usize)> = None;
        while t < text.len() {
            match self.0.get(p) {
                Some('*') => {
                    retry = Some((p + 1, t + 1));
                    p += 1;
                }
                Some(&c) if c == '?' || c == text[t] => {
                    p += 1;
                    t += 1;
                }
                _ => match retry {
                    Some((star, from)) => {
                        (p, t) = (star, from);
                        retry = Some((star, from + 1));
                    }
                    None => return false,
                },
            }
        }
        self.0[p..].iter().all(|c| *c == '*')
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn stars_stand_for_any_text() {
        for (pattern, text, fits) in [
            ("RdfFriendCount-*", "RdfFriendCount-turtle-1", true),
            ("*-1", "RdfFriendCount-turtle-1", true),
            ("*Count*1", "RdfFriendCount-turtle-1", true),
            ("RdfFriendCount", "RdfFriendCount-turtle-1", false),
            ("Rdf?riend*2", "RdfFriendCount-turtle-1", false),
            ("", "", true),
            ("*", "", true),
            ("a*ab", "aab", true),
        ] {
            assert_eq!(Glob::new(pattern).matches(text), fits, "{pattern} {text}");
        }
    }

    proptest! {
        #[test]
        fn every_text_fits_itself_and_its_star_versions(text in "[a-c]{0,8}", cut in 0usize..9) {
            let cut = cut.min(text.len());
            prop_assert!(Glob::new(&text).matches(&text));
            let starred = format!("{}*{}", &text[..cut], &text[cut..]);
            prop_assert!(Glob::new(&starred).matches(&text));
        }
    }
}
