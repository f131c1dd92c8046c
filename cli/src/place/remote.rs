//! The options that say in which fleet a verb acts, and calls to its coordinators.
//!
//! A fleet is named by a context, by the addresses of its coordinators, or by the context that the user has logged in to last.

use std::path::PathBuf;
use std::sync::{Arc, Once};

use anyhow::Context;
use domain::RunId;
use models::Secret;
use proto::client::{ApiClient, ClientConfig};

use crate::kit::exit_code::{Exit, explained, usage};
use crate::kit::output::note;
use crate::kit::runtime::block_on;
use crate::place::contexts::{self, Contexts, FleetContext, HERE};
use crate::place::names;

/// Default address of a coordinator.
pub const COORDINATOR_DEFAULT: &str = "http://127.0.0.1:7700";

/// Environment variable with the coordinator's address.
pub const COORDINATOR_ENV: &str = "KGFLEET_COORDINATOR";

/// Environment variable with the token of a client.
pub const TOKEN_ENV: &str = "KGFLEET_TOKEN";

/// Options for verbs that act in a fleet.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Remote {
    /// Where to act: a context of `kgfleet login`. Default: the one logged in to last, or http://127.0.0.1:7700.
    #[arg(long, value_name = "NAME", env = "KGFLEET_CONTEXT", add = contexts::completed())]
    context: Option<String>,
    #[command(flatten)]
    address: FleetAddress,
}

/// Options for verbs that act in a fleet or on the runs of this machine.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct MaybeRemote {
    /// Where to act: a context of `kgfleet login`, or `here` for the runs in --data-dir. Default: the one logged in to last, or
    /// here.
    #[arg(long, value_name = "NAME", env = "KGFLEET_CONTEXT", add = contexts::completed_or_here())]
    context: Option<String>,
    #[command(flatten)]
    address: FleetAddress,
}

/// A fleet by its address. Every verb that acts in one takes these options; help texts show only `--context`, and
/// `kgfleet login`, which makes contexts of them, shows them all.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct FleetAddress {
    /// Address of the coordinator: http:// or https://. Repeatable, or a list with commas: coordinators of the same queue.
    /// One that fails is left for the next. A host name may stand for several machines.
    #[arg(long, value_name = "URL", env = COORDINATOR_ENV, value_delimiter = ',', hide = true)]
    coordinator: Vec<String>,
    #[command(flatten)]
    tls: ClientTls,
}

/// Credentials of a client, and the authority it trusts.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ClientTls {
    /// File with the token of the caller, read again when the token is refused. Default: the environment variable
    /// KGFLEET_TOKEN.
    #[arg(long, value_name = "FILE", env = "KGFLEET_TOKEN_FILE", hide = true)]
    token_file: Option<PathBuf>,
    /// Allow sending the token to an http:// address of another machine, because something else encrypts the
    /// connection.
    #[arg(long = "insecure-token", hide = true)]
    insecure: bool,
    /// Certificate of the authority that signed the coordinator's, in PEM. Default: the authorities that this machine
    /// trusts.
    #[arg(long, value_name = "FILE", env = "KGFLEET_CA", hide = true)]
    ca: Option<PathBuf>,
}

/// Shows the options of [`FleetAddress`] in the help text of a verb that is mostly about them.
pub fn shown(option: clap::Arg) -> clap::Arg {
    match option.get_id().as_str() {
        "coordinator" | "token_file" | "insecure" | "ca" => option.hide(false),
        _ => option,
    }
}

/// The fleet that is meant.
struct FoundFleet {
    /// Its name, where it is a context.
    context: Option<String>,
    fleet: FleetContext,
}

impl Remote {
    /// A fleet without a context.
    pub fn of(address: FleetAddress) -> Self {
        Self { context: None, address }
    }

    fn found(&self) -> anyhow::Result<FoundFleet> {
        let found = found(self.context.as_deref(), &self.address)?;
        let default =
            || FleetContext { coordinators: vec![COORDINATOR_DEFAULT.to_owned()], ..FleetContext::default() };
        Ok(found.unwrap_or_else(|| FoundFleet { context: None, fleet: self.address.tls.over(default()) }))
    }

    /// Whether the options or a login name a fleet. Otherwise it is the one at the default address.
    ///
    /// # Errors
    /// There is no such context.
    pub fn is_named(&self) -> anyhow::Result<bool> {
        Ok(found(self.context.as_deref(), &self.address)?.is_some())
    }

    /// Configuration of a client, which reads the files of its credentials again when these are refused.
    pub fn config(&self) -> anyhow::Result<ClientConfig> {
        let mut config = client_config(&self.found()?.fleet)?;
        let remote = self.clone();
        let again = move || {
            let found = remote.found().and_then(|found| client_config(&found.fleet));
            found.map_err(|error| format!("{error:#}"))
        };
        config.reread = Some(Arc::new(again));
        Ok(config)
    }

    /// A client; it connects with its first call. Requires a runtime.
    pub fn client(&self) -> anyhow::Result<ApiClient> {
        models::install_crypto();
        ApiClient::new(&self.config()?).map_err(explained)
    }

    /// Makes calls about a run or judged benchmark, whose name may be abbreviated.
    pub fn about<T>(
        &self,
        name: &str,
        calls: impl AsyncFnOnce(&ApiClient, &RunId) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        block_on(async {
            let client = self.client()?;
            calls(&client, &names::of_coordinator(name, &client).await?).await
        })
    }

    /// Addresses of the coordinators, for messages.
    pub fn address(&self) -> String {
        self.addresses().join(" or ")
    }

    /// The same as [`COORDINATOR_ENV`] holds it.
    pub fn listed(&self) -> String {
        self.addresses().join(",")
    }

    fn addresses(&self) -> Vec<String> {
        self.found().map_or_else(|_| self.address.coordinator.clone(), |found| found.fleet.coordinators)
    }
}

impl MaybeRemote {
    /// The coordinator at this address, with the credentials that are given.
    pub fn at(&self, address: &str) -> Remote {
        Remote::of(FleetAddress { coordinator: vec![address.to_owned()], tls: self.address.tls.clone() })
    }

    /// Whether this machine is named.
    pub fn is_here(&self) -> bool {
        self.context.as_deref() == Some(HERE)
    }

    /// The fleet in which a verb acts; `None` for this machine.
    ///
    /// # Errors
    /// There is no such context.
    pub fn named(&self) -> anyhow::Result<Option<Remote>> {
        if self.is_here() {
            return Ok(None);
        }
        let Some(found) = found(self.context.as_deref(), &self.address)? else { return Ok(None) };
        Ok(Some(Remote { context: found.context, address: self.address.clone() }))
    }
}

impl FleetAddress {
    /// The coordinators at these addresses, with these credentials.
    pub fn new(coordinator: Vec<String>, tls: ClientTls) -> Self {
        Self { coordinator, tls }
    }

    /// What a context keeps of it. Paths hold wherever it is used.
    ///
    /// # Errors
    /// A file cannot be found, or the token not be read.
    pub fn to_context(&self) -> anyhow::Result<FleetContext> {
        let context =
            self.tls.over(FleetContext { coordinators: self.coordinator.clone(), ..FleetContext::default() });
        let whole = |path: Option<PathBuf>| {
            let found = path.map(|path| {
                std::fs::canonicalize(&path)
                    .with_context(|| format!("cannot find {}", path.display()))
                    .map_err(Exit::usage)
            });
            found.transpose()
        };
        let token = match (&context.token_file, std::env::var_os(TOKEN_ENV)) {
            (None, Some(_)) => Some(Secret::from_env(TOKEN_ENV).map_err(Exit::usage)?.expose().to_owned()),
            _ => None,
        };
        Ok(FleetContext { token, token_file: whole(context.token_file)?, ca: whole(context.ca)?, ..context })
    }
}

impl ClientTls {
    /// A fleet with what these options say of it otherwise.
    fn over(&self, fleet: FleetContext) -> FleetContext {
        FleetContext {
            token: if self.token_file.is_some() { None } else { fleet.token },
            token_file: self.token_file.clone().or(fleet.token_file),
            ca: self.ca.clone().or(fleet.ca),
            insecure_token: self.insecure || fleet.insecure_token,
            coordinators: fleet.coordinators,
        }
    }
}

/// The fleet that the options mean, or the current context, which is then said; `None` where nothing says so.
fn found(context: Option<&str>, address: &FleetAddress) -> anyhow::Result<Option<FoundFleet>> {
    let of_context = |name: &str, fleet: &FleetContext| {
        let fleet = address.tls.over(fleet.clone());
        Some(FoundFleet { context: Some(name.to_owned()), fleet })
    };
    match context {
        Some(HERE) => Err(usage!(
            "this verb acts in a fleet: name another context than `{HERE}`, or log in with `kgfleet login URL`"
        )),
        Some(name) => {
            let contexts = Contexts::of_user()?;
            Ok(of_context(name, contexts.get(name)?))
        }
        None if !address.coordinator.is_empty() => {
            let fleet = FleetContext { coordinators: address.coordinator.clone(), ..FleetContext::default() };
            Ok(Some(FoundFleet { context: None, fleet: address.tls.over(fleet) }))
        }
        None => {
            let contexts = Contexts::of_user()?;
            let Some((name, fleet)) = contexts.current()? else { return Ok(None) };
            static SAID: Once = Once::new();
            let place = fleet.coordinators.join(" or ");
            SAID.call_once(|| note!("in context {name} ({place}); --context chooses another one"));
            Ok(of_context(name, fleet))
        }
    }
}

fn client_config(fleet: &FleetContext) -> anyhow::Result<ClientConfig> {
    let mut config = ClientConfig::of(fleet.coordinators.clone());
    let read = |path: &PathBuf| {
        std::fs::read(path).with_context(|| format!("cannot read {}", path.display())).map_err(Exit::usage)
    };
    config.ca = fleet.ca.as_ref().map(read).transpose()?;
    config.token = token(fleet)?;
    config.insecure = fleet.insecure_token;
    Ok(config)
}

/// The token of a file, of the context, or of the environment.
fn token(fleet: &FleetContext) -> anyhow::Result<Option<String>> {
    let secret = match (&fleet.token_file, &fleet.token) {
        (Some(path), _) => Secret::from_file(path).map_err(Exit::usage)?,
        (None, Some(token)) => return Ok(Some(token.clone())),
        (None, None) if std::env::var_os(TOKEN_ENV).is_some() => {
            Secret::from_env(TOKEN_ENV).map_err(Exit::usage)?
        }
        (None, None) => return Ok(None),
    };
    Ok(Some(secret.expose().to_owned()))
}
