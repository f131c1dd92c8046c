//! A namespace of Kubernetes, as a pod in it sees it: through the service account that is mounted.

use std::path::PathBuf;

use anyhow::Context;
use conductor::{KubernetesApi, ServiceAccount};
use url::Url;

use crate::kit::exit_code::Exit;

/// Options for verbs that act on the objects of a release.
#[derive(Clone, Debug, clap::Args)]
pub struct KubernetesPlace {
    /// Namespace of the release. Default: that of the service account.
    #[arg(long, env = "KGFLEET_NAMESPACE")]
    namespace: Option<String>,
    /// Folder with `token`, `ca.crt` and `namespace` of the service account that acts.
    #[arg(long, value_name = "DIR", default_value = "/var/run/secrets/kubernetes.io/serviceaccount")]
    account: PathBuf,
    /// Address of the Kubernetes API.
    #[arg(long, value_name = "URL", default_value = "https://kubernetes.default.svc")]
    kubernetes_api: Url,
}

impl KubernetesPlace {
    /// The account that acts. No call is made.
    ///
    /// # Errors
    /// A file of the account, the address or the namespace cannot be used (exit code 2).
    pub fn account(&self) -> anyhow::Result<ServiceAccount> {
        let namespace = match &self.namespace {
            Some(namespace) => namespace.clone(),
            None => self.own_namespace()?,
        };
        ServiceAccount::new(self.kubernetes_api.clone(), &self.account, namespace).map_err(Exit::usage)
    }

    /// The objects of a release. No call is made.
    ///
    /// # Errors
    /// As [`account`](Self::account), or the name cannot be one of a release.
    pub fn api(&self, release: &str) -> anyhow::Result<KubernetesApi> {
        KubernetesApi::new(self.account()?, release).map_err(Exit::usage)
    }

    fn own_namespace(&self) -> anyhow::Result<String> {
        let path = self.account.join("namespace");
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}; name the namespace with --namespace", path.display()));
        Ok(text.map_err(Exit::usage)?.trim().to_owned())
    }
}
