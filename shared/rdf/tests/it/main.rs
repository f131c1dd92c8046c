//! Queries, documents and shapes against the verdicts of rdflib, Oxigraph, pySHACL and W3C.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod differential;
mod pyshacl;
mod w3c;
