//! `kgfleet fleet secrets`: the Secrets of a release on Kubernetes. `make` says what is in them, `certificates` signs, `api` asks the
//! cluster. A Secret that is there stays as it is, because others use it already; only a certificate of ours is signed anew for
//! other names.

mod api;
mod certificates;
mod make;

use std::io::{self, Write};

use jiff::Timestamp;
use serde_json::json;

use self::api::SecretsApi;
use self::certificates::Authority;
use self::make::SecretObject;
use crate::kit::exit_code::{ExitCode, usage};
use crate::kit::output::note;
use crate::kit::runtime::block_on;
use crate::place::kubernetes::KubernetesPlace;

/// Longest prefix of the names of Secrets, in characters; the chart's is at most 40.
const PREFIX_CHARS_MAX: usize = 63;

/// Make the Secrets that a release needs and that are not there.
///
/// A Secret that is there is left alone, with one exception: a certificate that this command made is signed anew, by the same
/// authority, when the coordinators have other names. It is valid for ten years. The chart runs this before an installation
/// and an upgrade. With --print, all Secrets are made and printed, and no cluster is asked. Exit codes: 0; 2 the
/// options cannot be used; 3 the cluster failed.
#[derive(Debug, clap::Args)]
pub struct Arguments {
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
    /// Make NAME-queue for a Redis at this host: its password, its redis.conf, and its address as url.
    #[arg(long, value_name = "HOST")]
    redis: Option<String>,
    #[command(flatten)]
    cluster: KubernetesPlace,
    /// Print new Secrets as a JSON list, for `kubectl apply -f -` or whatever keeps your secrets, and contact nothing.
    #[arg(long, conflicts_with_all = ["account", "kubernetes_api"])]
    print: bool,
}

/// Runs the command.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    arguments.check()?;
    let now = Timestamp::now();
    if arguments.print {
        let objects: Vec<_> = arguments.all(now)?.iter().map(|secret| secret.manifest(None)).collect();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        writeln!(io::stdout().lock(), "{list}")?;
        return Ok(ExitCode::Success);
    }
    let api = SecretsApi(arguments.cluster.account()?);
    block_on(async { arguments.carry_out(&api, now).await })?;
    Ok(ExitCode::Success)
}

impl Arguments {
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
            all.push(authority.sign(&self.tls_names, now)?);
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
        if let Some(why) = kept.as_ref().and_then(|kept| certificates::stays(kept, &self.tls_names)) {
            note!("secret {name}: is there, and stays as it is: {why}");
            return Ok(());
        }
        let authority = self.authority(api, now).await?;
        let signed = authority.sign(&self.tls_names, now)?;
        match kept {
            Some(kept) => {
                api.replace(&signed, &kept).await?;
                note!("secret {name}: the certificate is signed anew");
            }
            None if api.create(&signed).await? => {
                note!("secret {name}: made");
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
