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
    /// The objects of a release. No call is made.
    ///
    /// # Errors
    /// A file of the account, the address or a name cannot be used (exit code 2).
    pub fn api(&self, release: &str) -> anyhow::Result<KubernetesApi> {
        let namespace = match &self.namespace {
            Some(namespace) => namespace.clone(),
            None => self.own_namespace()?,
        };
        let account = ServiceAccount::new(self.kubernetes_api.clone(), &self.account, namespace);
        account.and_then(|account| KubernetesApi::new(account, release)).map_err(Exit::usage)
    }

    fn own_namespace(&self) -> anyhow::Result<String> {
        let path = self.account.join("namespace");
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}; name the namespace with --namespace", path.display()));
        Ok(text.map_err(Exit::usage)?.trim().to_owned())
    }
}
