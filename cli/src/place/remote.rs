//! The options for the coordinator of a fleet, and calls to it.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use domain::RunId;
use models::Secret;
use proto::client::{Client, ClientConfig};

use crate::kit::exit_code::{Exit, explained};
use crate::kit::runtime::block_on;
use crate::place::names;

/// Default address of a coordinator.
pub const COORDINATOR_DEFAULT: &str = "http://127.0.0.1:7700";

/// Environment variable with the coordinator's address.
pub const COORDINATOR_ENV: &str = "KGFLEET_COORDINATOR";

/// Options for a coordinator.
#[derive(Clone, Debug, clap::Args)]
pub struct Remote {
    /// Address of the coordinator: http:// or https://. Repeatable, or a list with commas: coordinators of the same queue.
    /// One that fails is left for the next. A host name may stand for several machines.
    #[arg(
        long,
        value_name = "URL",
        env = COORDINATOR_ENV,
        value_delimiter = ',',
        default_value = COORDINATOR_DEFAULT
    )]
    coordinator: Vec<String>,
    #[command(flatten)]
    tls: ClientTls,
}

/// Options for a coordinator, for commands that otherwise work on the runs of this machine.
#[derive(Clone, Debug, clap::Args)]
pub struct MaybeRemote {
    /// Address of a coordinator that has the run. Without it, the run is in --data-dir.
    /// Repeatable, or a list with commas: coordinators of the same queue.
    #[arg(long, value_name = "URL", env = COORDINATOR_ENV, value_delimiter = ',')]
    coordinator: Vec<String>,
    #[command(flatten)]
    tls: ClientTls,
}

/// Environment variable with the token of a client.
pub const TOKEN_ENV: &str = "KGFLEET_TOKEN";

/// Credentials of a client, and the authority it trusts.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ClientTls {
    /// File with the token of the caller, read again when the token is refused. Default: the environment variable
    /// KGFLEET_TOKEN.
    #[arg(long, value_name = "FILE", env = "KGFLEET_TOKEN_FILE")]
    token_file: Option<PathBuf>,
    /// Allow sending the token to an http:// address of another machine, because something else encrypts the
    /// connection.
    #[arg(long = "insecure-token")]
    insecure: bool,
    /// Certificate of the authority that signed the coordinator's, in PEM. Default: the authorities that this machine
    /// trusts.
    #[arg(long, value_name = "FILE", env = "KGFLEET_CA")]
    ca: Option<PathBuf>,
    /// Client certificate, in PEM, for coordinators that require one.
    #[arg(long, value_name = "FILE", env = "KGFLEET_CERT", requires = "key")]
    cert: Option<PathBuf>,
    /// The key of --cert, in PEM.
    #[arg(long, value_name = "FILE", env = "KGFLEET_KEY", requires = "cert")]
    key: Option<PathBuf>,
}

impl Remote {
    /// Configuration of a client, which reads the files of its credentials again when these are refused.
    pub fn config(&self) -> anyhow::Result<ClientConfig> {
        let mut config = self.tls.config(&self.coordinator)?;
        let remote = self.clone();
        let again = move || remote.tls.config(&remote.coordinator).map_err(|error| format!("{error:#}"));
        config.reread = Some(Arc::new(again));
        Ok(config)
    }

    /// A client; it connects with its first call. Requires a runtime.
    pub fn client(&self) -> anyhow::Result<Client> {
        models::install_crypto();
        Client::connect_lazy(&self.config()?).map_err(explained)
    }

    /// Makes calls about a run or judged benchmark, whose name may be abbreviated.
    pub fn about<T>(
        &self,
        name: &str,
        calls: impl AsyncFnOnce(&Client, &RunId) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        block_on(async {
            let client = self.client()?;
            calls(&client, &names::of_coordinator(name, &client).await?).await
        })
    }

    /// Addresses of the coordinators, for messages.
    pub fn address(&self) -> String {
        self.coordinator.join(" or ")
    }

    /// The same as [`COORDINATOR_ENV`] holds it.
    pub fn listed(&self) -> String {
        self.coordinator.join(",")
    }
}

impl MaybeRemote {
    /// The coordinator, if one is named.
    pub fn named(&self) -> Option<Remote> {
        let named = !self.coordinator.is_empty();
        named.then(|| Remote { coordinator: self.coordinator.clone(), tls: self.tls.clone() })
    }
}

impl ClientTls {
    /// A coordinator at this address.
    pub fn remote(&self, address: &str) -> Remote {
        Remote { coordinator: vec![address.to_owned()], tls: self.clone() }
    }

    fn config(&self, addresses: &[String]) -> anyhow::Result<ClientConfig> {
        let mut config = ClientConfig::of(addresses.to_vec());
        let read = |path: &PathBuf| {
            std::fs::read(path)
                .with_context(|| format!("cannot read {}", path.display()))
                .map_err(Exit::usage)
        };
        config.ca = self.ca.as_ref().map(read).transpose()?;
        config.token = self.token()?;
        config.insecure = self.insecure;
        if let (Some(cert), Some(key)) = (&self.cert, &self.key) {
            config.identity = Some((read(cert)?, read(key)?));
        }
        Ok(config)
    }
}

impl ClientTls {
    fn token(&self) -> anyhow::Result<Option<String>> {
        let secret = match &self.token_file {
            Some(path) => Secret::from_file(path).map_err(Exit::usage)?,
            None if std::env::var_os(TOKEN_ENV).is_some() => {
                Secret::from_env(TOKEN_ENV).map_err(Exit::usage)?
            }
            None => return Ok(None),
        };
        Ok(Some(secret.expose().to_owned()))
    }
}
