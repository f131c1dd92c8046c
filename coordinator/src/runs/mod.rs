//! The life of runs: their records are committed, they are paused, resumed, retried, finished and removed.

pub(crate) mod commit;
pub(crate) mod dead_letters;
pub(crate) mod life;
pub(crate) mod retry;
pub(crate) mod tend;
