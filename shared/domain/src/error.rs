//! Errors between the parts of a cluster, as a closed list for the wire.

named! {
    /// What a caller can do about an error.
    pub enum ErrorCode {
        /// The input breaks a rule: the same call fails again.
        Invalid = "invalid",
        /// No run, pack, worker or unit of this name.
        NotFound = "not_found",
        /// It exists, but in a state that forbids the call; the message says which.
        Conflict = "conflict",
        /// The two sides speak different versions of the protocol.
        Incompatible = "incompatible",
        /// The caller is not allowed to do this.
        Denied = "denied",
        /// A limit is reached; there may be room later.
        Full = "full",
        /// The other side, or something it depends on, is unavailable; the call may have been carried out.
        Unavailable = "unavailable",
        /// A bug or damaged data, not the caller's fault.
        Internal = "internal",
    }
}

impl ErrorCode {
    /// Whether the same call may succeed later.
    pub fn is_transient(self) -> bool {
        matches!(self, Self::Full | Self::Unavailable)
    }
}

/// An error of one part of a cluster as another part sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceError {
    /// What can be done about it.
    pub code: ErrorCode,
    /// What failed, with which input, and what to do; for people.
    pub message: String,
}

impl ServiceError {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

impl std::fmt::Display for ServiceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ServiceError {}
