//! The form in which texts of protected exercises may be written outside the record log.

pub use coordinator::protection::{cipher, writing_cipher};
use results::RunManifest;

/// The form in which texts of a protected run may be written. Texts of other runs are written unchanged.
#[derive(Clone, Debug, Default)]
pub struct Disclosure {
    /// In plaintext, because the user asked for it.
    pub plaintext: bool,
    /// In archives encrypted with this password.
    pub password: Option<String>,
}

/// The form of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextForm<'a> {
    /// Texts in plaintext.
    Clear,
    /// Texts in an archive encrypted with this password.
    Encrypted(&'a str),
    /// No texts.
    Redacted,
}

impl Disclosure {
    /// The form for a run.
    pub fn form(&self, run: &RunManifest) -> TextForm<'_> {
        match &self.password {
            _ if self.plaintext || !run.protected => TextForm::Clear,
            Some(password) if !password.is_empty() => TextForm::Encrypted(password),
            _ => TextForm::Redacted,
        }
    }
}
