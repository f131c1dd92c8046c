//! The Kubernetes chart: whether the binary takes what the rendered manifests say ([`arguments`]), how its Secrets are made
//! ([`secrets`]), and the launcher that is no chart ([`other`]). Whether a benchmark runs on it, `tests/kubernetes` says.

mod arguments;
mod manifests;
mod other;
mod secrets;
