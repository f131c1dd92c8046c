//! The Kubernetes chart: whether the binary takes what the rendered manifests say ([`arguments`]), and whether a
//! benchmark runs on it ([`running`]) with a stand-in for the nodes ([`kubelet`]); how its Secrets are made ([`secrets`]); and the launcher that is no chart
//! ([`other`]).

mod arguments;
mod kubelet;
mod manifests;
mod other;
mod running;
mod secrets;
