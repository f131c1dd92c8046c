//! Access to a coordinator: certificates and identities, reloaded when they change; and the refusal to start without
//! them.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Context;
use coordinator::Coordinator;
use coordinator::audit::{AuditLog, Deed};
use domain::caller::Caller;
use domain::control::Control;
use domain::exchange::WorkExchange;
use jiff::Timestamp;
use proto::server::{Identities, IdentityChange, Security, Serve, ServerTls};

use crate::kit::exit_code::{Exit, usage};
use crate::kit::whole_file;

/// How often the files are checked for changes.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Options for access.
#[derive(Clone, Debug, clap::Args)]
pub struct Door {
    /// File of identities that may call, see `kgfleet fleet token new`; repeatable, for files of different owners. Reloaded when they
    /// change.
    #[arg(long, value_name = "FILE", env = "KGFLEET_TOKENS")]
    tokens: Vec<PathBuf>,
    /// Serve TLS with this certificate, in PEM; reloaded when it changes.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The key of --tls-cert, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Allow listening beyond this machine without TLS or identities, behind something else that protects the
    /// coordinator.
    #[arg(long)]
    insecure: bool,
}

impl Door {
    /// Refuses to listen on a network without protection.
    pub fn check(&self, bound: SocketAddr) -> anyhow::Result<()> {
        let lacking = match (&self.tls_cert, !self.tokens.is_empty()) {
            (Some(_), true) => return Ok(()),
            _ if self.insecure || bound.ip().is_loopback() => return Ok(()),
            (None, false) => "TLS (--tls-cert, --tls-key) and identities (--tokens)",
            (None, true) => "TLS (--tls-cert, --tls-key)",
            (Some(_), false) => "identities (--tokens)",
        };
        Err(usage!(
            "{bound} is reachable from other machines, and this coordinator has no {lacking}: anyone on the network could \
             do everything. See \"A safe cluster\" in docs/operating.md, or use --insecure if something else protects \
             the coordinator"
        ))
    }

    fn tls(&self) -> anyhow::Result<Option<ServerTls>> {
        let (Some(certificate), Some(key)) = (&self.tls_cert, &self.tls_key) else { return Ok(None) };
        Ok(Some(ServerTls { certificate: read(certificate)?, key: read(key)? }))
    }

    fn identities(&self) -> anyhow::Result<Identities> {
        if self.tokens.is_empty() {
            return Ok(Identities::anyone());
        }
        let known = Identities::parse(&self.identity_texts().map_err(Exit::usage)?);
        let files: Vec<String> = self.tokens.iter().map(|path| path.display().to_string()).collect();
        known.with_context(|| format!("the identities in {}", files.join(", "))).map_err(Exit::usage)
    }

    /// The files of identities, one after the other: each is a list of tables, and so are all of them.
    fn identity_texts(&self) -> anyhow::Result<String> {
        let mut texts = String::new();
        for path in &self.tokens {
            texts += &whole_file::read_text(path)?;
            texts.push('\n');
        }
        Ok(texts)
    }

    /// The access rules according to the files.
    pub fn security(&self) -> anyhow::Result<Security> {
        let identities = self.identities()?;
        match self.tls()? {
            Some(tls) => {
                let security = Security::tls(&tls, identities).map_err(Exit::usage)?;
                tell_end(&tls);
                Ok(security)
            }
            None => Ok(Security { identities, tls: None }),
        }
    }

    /// Reloads the files when they change, and ends the rights of identities whose time is over, for as long as it is polled.
    /// If a file is unusable, its previous content stays in force.
    pub async fn follow(self, security: Security, audit: AuditLog) {
        let door = Arc::new(self);
        let mut seen = door.stamps();
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let (door, security) = (Arc::clone(&door), security.clone());
            // A file on a network may keep its reader waiting.
            let looked = tokio::task::spawn_blocking(move || {
                let now = door.stamps();
                let changes = door.renew(&security, &seen, &now);
                (now, changes)
            });
            let Ok((now, changes)) = looked.await else { return };
            seen = now;
            for IdentityChange { name, what } in changes {
                let act = format!("identity {what}");
                if let Err(error) = audit.act(Deed { who: name.clone(), act, ..Deed::default() }).await {
                    // Rights that were taken away are gone all the same.
                    tracing::error!(%error, name, what, "a change of identities is not in the audit log");
                }
            }
        }
    }

    /// The versions of the files of certificates, and of that of identities.
    fn stamps(&self) -> DoorStamps {
        let certificates = [&self.tls_cert, &self.tls_key];
        let certificates: Vec<&Path> = certificates.into_iter().flatten().map(PathBuf::as_path).collect();
        let tokens: Vec<&Path> = self.tokens.iter().map(PathBuf::as_path).collect();
        DoorStamps { certificates: stamps(&certificates), tokens: stamps(&tokens) }
    }

    /// Reloads what has changed; returns what became of identities.
    fn renew(&self, security: &Security, seen: &DoorStamps, now: &DoorStamps) -> Vec<IdentityChange> {
        if now.certificates != seen.certificates {
            told("certificates", &self.renew_tls(security));
        }
        let mut changes = Vec::new();
        if now.tokens != seen.tokens {
            let renewed = self.renew_identities(security);
            told("identities", &renewed);
            changes = renewed.unwrap_or_default();
        }
        changes.extend(security.identities.expire(Timestamp::now()));
        changes
    }

    fn renew_tls(&self, security: &Security) -> anyhow::Result<()> {
        match (&security.tls, self.tls()?) {
            (Some(tls), Some(files)) => {
                tls.replace(&files)?;
                tell_end(&files);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn renew_identities(&self, security: &Security) -> anyhow::Result<Vec<IdentityChange>> {
        if self.tokens.is_empty() {
            return Ok(Vec::new());
        }
        Ok(security.identities.replace(&self.identity_texts()?)?)
    }
}

/// Tells whoever watches when a certificate ends that is in force.
fn tell_end(tls: &ServerTls) {
    match tls.valid_until() {
        Ok(at) => coordinator::metrics::certificate_ends(at),
        Err(error) => tracing::warn!(%error, "nobody is told when the certificate ends"),
    }
}

/// Versions of the files, as they were last read.
struct DoorStamps {
    certificates: Vec<Option<(SystemTime, u64)>>,
    tokens: Vec<Option<(SystemTime, u64)>>,
}

fn told<T>(what: &str, renewed: &anyhow::Result<T>) {
    match renewed {
        Ok(_) => tracing::info!("{what} were reloaded"),
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
    whole_file::read(path).map_err(Exit::usage)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_is_valid_until_the_first_of_its_certificates_ends() {
        let certificate = |year| {
            let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
            params.not_after = rcgen::date_time_ymd(year, 7, 31);
            params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap().pem()
        };
        let tls = |certificate: String| ServerTls { certificate: certificate.into(), key: Vec::new() };
        let chain = tls(certificate(2130) + &certificate(2030));
        assert_eq!(chain.valid_until().unwrap().to_string(), "2030-07-31T00:00:00Z");
        assert!(tls("none".to_owned()).valid_until().is_err());
    }
}
