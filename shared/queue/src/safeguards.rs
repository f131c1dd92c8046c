//! What keeps a queue right, each part of which a test can leave out to see that its loss is found.

/// The safeguards of a [`MemoryStore`](crate::MemoryStore). Only tests have more than one of them to choose from: the others
/// are not compiled into anything else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Safeguards {
    /// All, as it must be.
    #[default]
    All,
    /// A fence is taken whatever its attempt.
    #[cfg(feature = "test-support")]
    NoFence,
    /// Every record counts, also where its dialogue has one.
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
