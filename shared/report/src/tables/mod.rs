//! Tables that one verb or one screen shows, so that none has a name to be asked for by: those that have one are
//! [`views`](crate::views).

pub mod card;
pub mod fleet;
pub mod sources;
