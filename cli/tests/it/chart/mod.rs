//! The Kubernetes chart: whether the binary takes what the rendered manifests say ([`arguments`]).

mod arguments;
mod manifests;
