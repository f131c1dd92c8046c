//! What pages look like. Every text that comes from elsewhere is escaped by the templates and loses, or shows, the
//! characters that would steer a reader.

pub(crate) mod benchmark;
pub(crate) mod benchmarks;
pub(crate) mod dialogues;
pub(crate) mod frame;
pub(crate) mod login;
pub(crate) mod paths;
pub(crate) mod workers;
