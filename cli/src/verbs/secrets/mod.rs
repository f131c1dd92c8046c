//! `kgfleet secrets`: the Secrets of a release on Kubernetes. `make` says what is in them, `certificates` signs, `api` asks the
//! cluster. A Secret that is there stays as it is, because others use it already; only a certificate of ours is renewed in time.

mod api;
mod certificates;
mod check;
mod make;

use std::io::{self, Write};
use std::path::PathBuf;

use jiff::{Timestamp, ToSpan};
use reqwest::Url;
use serde_json::json;

use self::api::SecretsApi;
use self::certificates::{Authority, CertificateWish};
use self::make::SecretObject;
use crate::kit::exit_code::{Exit, ExitCode, usage};
use crate::kit::output::note;
use crate::kit::runtime::block_on;

/// Longest prefix of the names of Secrets, in characters; the chart's is at most 40.
const PREFIX_CHARS_MAX: usize = 63;

/// Most days that a certificate is valid: clients refuse longer ones as a mistake.
const VALID_DAYS_MAX: u32 = 3_650;

/// Make the Secrets of a release on Kubernetes, or check them.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Ensure(Box<Ensure>),
    Check(check::SecretsCheck),
}

/// Make the Secrets that a release needs and that are not there.
///
/// A Secret that is there is left alone, with one exception: a certificate that this command made is signed anew, by the same
/// authority, when two thirds of its time are over or the coordinators have other names. The chart runs this before an
/// installation and an upgrade. With --print, all Secrets are made and printed, and no cluster is asked. Exit codes: 0; 2 the
/// options cannot be used; 3 the cluster failed.
#[derive(Debug, clap::Args)]
struct Ensure {
    /// Beginning of the names of all Secrets: the release's.
    #[arg(long, value_name = "NAME")]
    prefix: String,
    /// Make NAME-auth: worker.token, operator.token, and tokens.toml, the identities that coordinators read.
    #[arg(long)]
    auth: bool,
    /// Make NAME-conductor: conductor.token, and identities.toml, its identity.
    #[arg(long)]
    conductor: bool,
    /// Make NAME-tls, the certificate of coordinators with this name or address, signed by NAME-authority, which no pod
    /// mounts; repeatable.
    #[arg(long = "tls-name", value_name = "NAME")]
    tls_names: Vec<String>,
    /// Days that a certificate is valid.
    #[arg(long, value_name = "DAYS", default_value_t = 365, value_parser = clap::value_parser!(u32).range(3..=i64::from(VALID_DAYS_MAX)))]
    valid_days: u32,
    /// Make NAME-queue for a Redis at this host: its password, its redis.conf, and its address as url.
    #[arg(long, value_name = "HOST")]
    redis: Option<String>,
    /// Folder with `token`, `ca.crt` and `namespace` of a service account that may get, create and update these Secrets.
    #[arg(long, value_name = "DIR", default_value = "/var/run/secrets/kubernetes.io/serviceaccount")]
    account: PathBuf,
    /// Address of the Kubernetes API.
    #[arg(long, value_name = "URL", default_value = "https://kubernetes.default.svc")]
    kubernetes_api: Url,
    /// Print new Secrets as a JSON list, for `kubectl apply -f -` or whatever keeps your secrets, and contact nothing.
    #[arg(long, conflicts_with_all = ["account", "kubernetes_api"])]
    print: bool,
}

/// Runs the command.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let ensure = match arguments.command {
        Command::Ensure(ensure) => ensure,
        Command::Check(check) => return check::run(&check),
    };
    ensure.check()?;
    let now = Timestamp::now();
    if ensure.print {
        let objects: Vec<_> = ensure.all(now)?.iter().map(|secret| secret.manifest(None)).collect();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        writeln!(io::stdout().lock(), "{list}")?;
        return Ok(ExitCode::Success);
    }
    let api = SecretsApi::new(&ensure.account, &ensure.kubernetes_api)?;
    block_on(async { ensure.carry_out(&api, now).await })?;
    Ok(ExitCode::Success)
}

impl Ensure {
    fn check(&self) -> anyhow::Result<()> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let prefix = &self.prefix;
        if prefix.is_empty() || prefix.len() > PREFIX_CHARS_MAX || !prefix.bytes().all(plain) {
            return Err(usage!(
                "--prefix `{prefix}`: expected at most {PREFIX_CHARS_MAX} lower-case letters, digits and dashes"
            ));
        }
        let makes = [self.auth, self.conductor, !self.tls_names.is_empty(), self.redis.is_some()];
        if !makes.contains(&true) {
            return Err(usage!("nothing to make: give --auth, --conductor, --tls-name or --redis"));
        }
        Ok(())
    }

    /// Fresh Secrets, whether or not there are some.
    fn all(&self, now: Timestamp) -> anyhow::Result<Vec<SecretObject>> {
        let mut all = self.plain()?;
        if !self.tls_names.is_empty() {
            let authority = Authority::new(&self.prefix, now)?;
            all.push(authority.secret());
            all.push(authority.sign(&self.wish(now)?)?);
        }
        Ok(all)
    }

    /// Those that are made once.
    fn plain(&self) -> anyhow::Result<Vec<SecretObject>> {
        let mut plain = Vec::new();
        if self.auth {
            plain.push(make::auth(&self.prefix)?);
        }
        if self.conductor {
            plain.push(make::conductor(&self.prefix)?);
        }
        if let Some(host) = &self.redis {
            plain.push(make::queue(&self.prefix, host)?);
        }
        Ok(plain)
    }

    fn wish(&self, now: Timestamp) -> anyhow::Result<CertificateWish> {
        let days = i64::from(self.valid_days);
        let after = |days: i64| now.checked_add((24 * days).hours()).map_err(Exit::usage);
        Ok(CertificateWish {
            names: self.tls_names.clone(),
            from: after(-1)?,
            until: after(days)?,
            renew_after: after(days * 2 / 3)?,
        })
    }

    async fn carry_out(&self, api: &SecretsApi, now: Timestamp) -> anyhow::Result<()> {
        for secret in self.plain()? {
            let name = secret.name();
            let is_there = api.get(name).await?.is_some();
            if is_there || !api.create(&secret).await? {
                note!("secret {name}: is there, and stays as it is");
            } else {
                note!("secret {name}: made");
            }
        }
        if !self.tls_names.is_empty() {
            self.ensure_certificate(api, now).await?;
        }
        Ok(())
    }

    async fn ensure_certificate(&self, api: &SecretsApi, now: Timestamp) -> anyhow::Result<()> {
        let name = format!("{}-tls", self.prefix);
        let kept = api.get(&name).await?;
        let wish = self.wish(now)?;
        if let Some(why) = kept.as_ref().and_then(|kept| certificates::stays(kept, &wish, now)) {
            note!("secret {name}: is there, and stays as it is: {why}");
            return Ok(());
        }
        let authority = self.authority(api, now).await?;
        let signed = authority.sign(&wish)?;
        match kept {
            Some(kept) => {
                api.replace(&signed, &kept).await?;
                note!("secret {name}: the certificate is signed anew, until {}", wish.until);
            }
            None if api.create(&signed).await? => {
                note!("secret {name}: made, valid until {}", wish.until);
            }
            None => note!("secret {name}: somebody else has just made it"),
        }
        Ok(())
    }

    /// The authority of the release: the one that is there, or a new one.
    async fn authority(&self, api: &SecretsApi, now: Timestamp) -> anyhow::Result<Authority> {
        let fresh = Authority::new(&self.prefix, now)?;
        let name = fresh.secret().name().to_owned();
        if api.get(&name).await?.is_none() && api.create(&fresh.secret()).await? {
            note!("secret {name}: made");
            return Ok(fresh);
        }
        let kept = api.get(&name).await?.ok_or_else(|| anyhow::anyhow!("secret {name} vanished"))?;
        Authority::of(&self.prefix, &kept)
    }
}
