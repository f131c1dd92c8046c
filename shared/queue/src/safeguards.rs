//! Safeguards of the memory store that a test can switch off, to see that the checks of a history notice.

/// The safeguards of a [`MemoryStore`](crate::MemoryStore). Variants other than `All` exist only with the feature
/// `test-support`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Safeguards {
    /// All of them: what every program uses.
    #[default]
    All,
    /// Fences of earlier attempts are accepted.
    #[cfg(feature = "test-support")]
    NoFence,
    /// Every record counts, even if its dialogue has one already.
    #[cfg(feature = "test-support")]
    NoDedup,
}

impl Safeguards {
    /// Whether stale fences are refused.
    pub(crate) fn fence(self) -> bool {
        match self {
            Self::All => true,
            #[cfg(feature = "test-support")]
            Self::NoFence => false,
            #[cfg(feature = "test-support")]
            Self::NoDedup => true,
        }
    }

    /// Whether a dialogue counts once.
    pub(crate) fn dedup(self) -> bool {
        match self {
            Self::All => true,
            #[cfg(feature = "test-support")]
            Self::NoFence => true,
            #[cfg(feature = "test-support")]
            Self::NoDedup => false,
        }
    }
}
