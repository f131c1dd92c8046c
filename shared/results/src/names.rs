//! Texts by number, for the few names that many dialogues share.

use std::collections::HashMap;

/// Texts by number, in the order in which they were first seen.
#[derive(Clone, Debug, Default)]
pub struct Names {
    numbers: HashMap<String, u32>,
    texts: Vec<String>,
}

impl Names {
    /// The number of a text; a new text gets the next number.
    pub fn number(&mut self, text: &str) -> u32 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        let number = self.texts.len() as u32;
        self.numbers.insert(text.to_owned(), number);
        self.texts.push(text.to_owned());
        number
    }

    /// The number of a text that has one.
    pub fn find(&self, text: &str) -> Option<u32> {
        self.numbers.get(text).copied()
    }

    /// The text of a number.
    pub fn text(&self, number: u32) -> Option<&str> {
        self.texts.get(number as usize).map(String::as_str)
    }
}
