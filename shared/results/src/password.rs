//! Passwords of encrypted files.

use std::fmt;
use std::sync::Arc;

/// A password that debug output does not show.
#[derive(Clone)]
pub struct Password(Arc<str>);

impl Password {
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// The password itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(…)")
    }
}
