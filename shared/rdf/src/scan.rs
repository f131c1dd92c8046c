//! A cheap look at hostile text before a recursive parser sees it.

/// What [`check`] lets pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanLimits {
    /// Largest text, in bytes.
    pub bytes_max: usize,
    /// Deepest nesting of brackets.
    pub depth_max: usize,
    /// Longest chain of operators that a parser turns into nested nodes.
    pub chain_max: usize,
}

impl Default for ScanLimits {
    fn default() -> Self {
        Self { bytes_max: 16 << 20, depth_max: 200, chain_max: 400 }
    }
}

/// Which limit a text exceeds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScanFinding {
    /// The text is longer than [`ScanLimits::bytes_max`].
    #[error("the text has {bytes} bytes, more than the {max} allowed")]
    TooLarge {
        /// Size found, in bytes.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// Brackets nest deeper than [`ScanLimits::depth_max`].
    #[error("brackets nest deeper than the {max} levels allowed")]
    TooDeep {
        /// The limit.
        max: usize,
    },
    /// A chain of operators is longer than [`ScanLimits::chain_max`].
    #[error("a chain of operators is longer than the {max} links allowed")]
    ChainTooLong {
        /// The limit.
        max: usize,
    },
}

/// Refuses text that could overflow the stack of a recursive parser.
///
/// # Errors
/// The first limit exceeded.
pub fn check(text: &str, limits: &ScanLimits) -> Result<(), ScanFinding> {
    if text.len() > limits.bytes_max {
        return Err(ScanFinding::TooLarge { bytes: text.len(), max: limits.bytes_max });
    }
    Ok(())
}
