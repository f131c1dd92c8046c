//! What a command did, to be told once: whoever opens its address again, or finds it in the history of a browser, is told
//! nothing that is long past.

use std::collections::VecDeque;

/// Notices that wait to be told; the oldest gives way.
const NOTICES_MAX: usize = 256;

/// The notices that nobody was told yet. A plain structure.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    waiting: VecDeque<(String, String)>,
}

impl Notices {
    /// Leaves a notice under this name, which nobody can guess.
    pub(crate) fn leave(&mut self, name: String, words: String) {
        if self.waiting.len() >= NOTICES_MAX {
            self.waiting.pop_front();
        }
        self.waiting.push_back((name, words));
    }

    /// The words of a notice, once.
    pub(crate) fn take(&mut self, name: &str) -> Option<String> {
        let place = self.waiting.iter().position(|(known, _)| known == name)?;
        self.waiting.remove(place).map(|(_, words)| words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_is_told_once_and_few_are_kept() {
        let mut notices = Notices::default();
        notices.leave("a".to_owned(), "paused".to_owned());
        assert_eq!((notices.take("b"), notices.take("a")), (None, Some("paused".to_owned())));
        assert_eq!(notices.take("a"), None);
        for number in 0..2 * NOTICES_MAX {
            notices.leave(number.to_string(), String::new());
        }
        assert_eq!((notices.waiting.len(), notices.take("0")), (NOTICES_MAX, None));
    }
}
