//! Starts and ends the servers of pools on Kubernetes, by what coordinators say that there is to do.
//!
//! A pool is a suspended CronJob: a stored Job, of which each server is made. Every few seconds the conductor reads what there is
//! and what is needed, asks [`decide()`](crate::pool::decide()), and makes or deletes Jobs. All that it must not forget stands in the cluster: a
//! conductor that restarts reads failures and GPU-hours from the Jobs that ended.
//!
//! Reading order: [`pool`] decides about servers, as a pure function; [`objects`] are the objects of Kubernetes as far as they are read; [`template`] makes a pool of a CronJob;
//! [`server`] says where a Job stands, and [`start`] why it does not start; [`rounds`] decides what to start and delete; [`cluster`] is what a conductor asks of
//! Kubernetes, and [`api`] asks it over HTTP with an [`account`]; [`news`] decides what people are told; [`mod@conduct`] is the loop that joins
//! them. [`drain`] ends all that works for a release, the conductor first.

pub mod account;
pub mod api;
pub mod cluster;
pub mod conduct;
pub mod drain;
pub mod metrics;
pub mod news;
pub mod objects;
pub mod pool;
pub mod rounds;
pub mod server;
pub mod start;
pub mod template;
mod words;

pub use account::{AccountError, ServiceAccount};
pub use api::KubernetesApi;
pub use cluster::{ClusterError, ClusterState, PoolCluster};
pub use conduct::{NOTICES_MAX, NewsDesk, conduct};
pub use drain::DrainStep;
pub use news::{PoolEvent, PoolNews, PoolNotice};
pub use rounds::{ConductorSettings, Rounds, ServerOrder};
pub use template::PoolTemplate;
