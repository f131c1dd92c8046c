//! Access to a coordinator: certificates and identities, reloaded when they change; and the refusal to start without
//! them.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Context;
use coordinator::Coordinator;
use domain::caller::Caller;
use domain::control::Control;
use domain::exchange::WorkExchange;
use proto::server::{Identities, Security, Serve, ServerTls};

use crate::kit::exit_code::{usage, Exit};

/// How often the files are checked for changes.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Options for access.
#[derive(Clone, Debug, clap::Args)]
pub struct Door {
    /// File of identities that may call, see `kgfleet token new`; reloaded when it changes.
    #[arg(long, value_name = "FILE", env = "KGFLEET_TOKENS")]
    tokens: Option<PathBuf>,
    /// Serve TLS with this certificate, in PEM; reloaded when it changes.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The key of --tls-cert, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Accept client certificates signed by this authority, in PEM. With --tokens, a client without a certificate may
    /// present a token; otherwise it is refused.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    client_ca: Option<PathBuf>,
    /// Allow listening beyond this machine without TLS or identities, behind something else that protects the
    /// coordinator.
    #[arg(long)]
    insecure: bool,
}

impl Door {
    /// Refuses to listen on a network without protection.
    pub fn check(&self, bound: SocketAddr) -> anyhow::Result<()> {
        let lacking = match (&self.tls_cert, &self.tokens) {
            (Some(_), Some(_)) => return Ok(()),
            _ if self.insecure || bound.ip().is_loopback() => return Ok(()),
            (None, None) => "TLS (--tls-cert, --tls-key) and identities (--tokens)",
            (None, Some(_)) => "TLS (--tls-cert, --tls-key)",
            (Some(_), None) => "identities (--tokens)",
        };
        Err(usage!(
            "{bound} is reachable from other machines, and this coordinator has no {lacking}: anyone on the network could \
             do everything. See \"A safe cluster\" in docs/operating.md, or use --insecure if something else protects \
             the coordinator"
        ))
    }

    fn tls(&self) -> anyhow::Result<Option<ServerTls>> {
        let (Some(certificate), Some(key)) = (&self.tls_cert, &self.tls_key) else { return Ok(None) };
        let client_ca = self.client_ca.as_deref().map(read).transpose()?;
        Ok(Some(ServerTls { certificate: read(certificate)?, key: read(key)?, client_ca }))
    }

    fn identities(&self) -> anyhow::Result<Identities> {
        let Some(path) = &self.tokens else { return Ok(Identities::anyone()) };
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()));
        let known = Identities::parse(&text.map_err(Exit::usage)?);
        known.with_context(|| format!("the identities in {}", path.display())).map_err(Exit::usage)
    }

    /// The access rules according to the files.
    pub fn security(&self) -> anyhow::Result<Security> {
        let identities = self.identities()?;
        match self.tls()? {
            Some(tls) => Security::tls(&tls, identities).map_err(Exit::usage),
            None => Ok(Security { identities, tls: None }),
        }
    }

    /// Reloads the files when they change, for as long as it is polled. If they are unusable, the previous content
    /// stays in force.
    pub async fn follow(self, security: Security) {
        let certificates: Vec<&Path> = [&self.tls_cert, &self.tls_key, &self.client_ca]
            .into_iter()
            .flatten()
            .map(PathBuf::as_path)
            .collect();
        let tokens: Vec<&Path> = self.tokens.iter().map(PathBuf::as_path).collect();
        let (mut certified, mut known) = (stamps(&certificates), stamps(&tokens));
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let (now_certified, now_known) = (stamps(&certificates), stamps(&tokens));
            if now_certified != certified {
                certified = now_certified;
                told("certificates", self.renew_tls(&security));
            }
            if now_known != known {
                known = now_known;
                told("identities", self.renew_identities(&security));
            }
        }
    }

    fn renew_tls(&self, security: &Security) -> anyhow::Result<()> {
        match (&security.tls, self.tls()?) {
            (Some(tls), Some(files)) => Ok(tls.replace(&files)?),
            _ => Ok(()),
        }
    }

    fn renew_identities(&self, security: &Security) -> anyhow::Result<()> {
        let Some(path) = &self.tokens else { return Ok(()) };
        Ok(security.identities.replace(&std::fs::read_to_string(path)?)?)
    }
}

fn told(what: &str, renewed: anyhow::Result<()>) {
    match renewed {
        Ok(()) => tracing::info!("{what} were reloaded"),
        Err(error) => {
            tracing::error!(
                error = format!("{error:#}"),
                "{what} cannot be used; the previous ones stay in force"
            );
        }
    }
}

/// Identifies a version of a file.
fn stamps(files: &[&Path]) -> Vec<Option<(SystemTime, u64)>> {
    let stamp = |path: &&Path| {
        let metadata = std::fs::metadata(path).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    };
    files.iter().map(stamp).collect()
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display())).map_err(Exit::usage)
}

/// A coordinator as each authenticated caller may use it.
pub struct ServedCoordinator(pub Arc<Coordinator>);

impl Serve for ServedCoordinator {
    fn exchange(&self, caller: &Caller) -> Arc<dyn WorkExchange> {
        self.0.access(caller)
    }

    fn control(&self, caller: &Caller) -> Arc<dyn Control> {
        self.0.access(caller)
    }
}
