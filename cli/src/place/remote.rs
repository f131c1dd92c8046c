//! The options that say in which fleet a verb acts, and calls to its coordinators.

use std::path::PathBuf;
use std::sync::{Arc, Once};

use anyhow::Context;
use models::Secret;
use proto::client::{ApiClient, ClientConfig};

use crate::kit::exit_code::{Exit, explained, usage};
use crate::kit::output::note;
use crate::kit::whole_file;
use crate::place::login::FleetLogin;

/// The word that stands for this machine where a fleet is asked for.
pub const HERE: &str = "here";

/// The fleet of verbs that act in one, where nothing names another.
pub const FLEET_DEFAULT: &str = "http://127.0.0.1:7700";

/// Environment variable with the addresses of a fleet.
pub const FLEET_ENV: &str = "KGFLEET_FLEET";

/// Environment variable with the token of a client.
pub const TOKEN_ENV: &str = "KGFLEET_TOKEN";

/// Options for verbs that act in a fleet. Help texts show only `--fleet`, unless a verb is mostly about the others.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Remote {
    /// The fleet: http[s]:// addresses of its coordinators, with commas. Default: the one logged in to, or
    /// http://127.0.0.1:7700.
    #[arg(long, value_name = "URL", env = FLEET_ENV, value_delimiter = ',')]
    fleet: Vec<String>,
    #[command(flatten)]
    tls: ClientTls,
}

/// Options for verbs that act in a fleet or on the runs of this machine.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(mut_arg("fleet", |arg| arg.help(
    "Where to act: http[s]:// addresses of a fleet's coordinators, with commas, or `here` for the runs in --data-dir. Default: the \
     fleet logged in to, or here"
)))]
pub struct MaybeRemote {
    #[command(flatten)]
    remote: Remote,
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

/// Shows the options of [`ClientTls`] in the help text of a verb that is mostly about them.
pub fn shown(option: clap::Arg) -> clap::Arg {
    match option.get_id().as_str() {
        "token_file" | "insecure" | "ca" => option.hide(false),
        _ => option,
    }
}

impl Remote {
    /// The fleet at these addresses, with these credentials.
    pub fn of(fleet: Vec<String>, tls: ClientTls) -> Self {
        Self { fleet, tls }
    }

    /// The fleet that the options name or that the user has logged in to, which is then said; `None` where nothing says so.
    fn found(&self) -> anyhow::Result<Option<FleetLogin>> {
        if self.fleet.iter().any(|address| address == HERE) {
            return Err(usage!("this verb acts in a fleet: name its address instead of `{HERE}`"));
        }
        if !self.fleet.is_empty() {
            return Ok(Some(
                self.tls.over(FleetLogin { fleet: self.fleet.clone(), ..FleetLogin::default() }),
            ));
        }
        let Some(login) = FleetLogin::of_user()? else { return Ok(None) };
        static SAID: Once = Once::new();
        SAID.call_once(|| note!("in the fleet {}; --fleet names another place", login.fleet.join(" or ")));
        Ok(Some(self.tls.over(login)))
    }

    /// The fleet, with what a login keeps of it.
    fn fleet(&self) -> anyhow::Result<FleetLogin> {
        let default = || FleetLogin { fleet: vec![FLEET_DEFAULT.to_owned()], ..FleetLogin::default() };
        Ok(self.found()?.unwrap_or_else(|| self.tls.over(default())))
    }

    /// What a login to it keeps. Paths hold wherever it is used.
    ///
    /// # Errors
    /// A file cannot be found, or the token not be read.
    pub fn to_login(&self) -> anyhow::Result<FleetLogin> {
        let login = self.fleet()?;
        let whole = |path: Option<PathBuf>| {
            let found = path.map(|path| {
                std::fs::canonicalize(&path)
                    .with_context(|| format!("cannot find {}", path.display()))
                    .map_err(Exit::usage)
            });
            found.transpose()
        };
        let token = match (&login.token_file, std::env::var_os(TOKEN_ENV)) {
            (None, Some(_)) => Some(Secret::from_env(TOKEN_ENV).map_err(Exit::usage)?.expose().to_owned()),
            _ => None,
        };
        Ok(FleetLogin { token, token_file: whole(login.token_file)?, ca: whole(login.ca)?, ..login })
    }

    /// Configuration of a client, which reads the files of its credentials again when these are refused.
    pub fn config(&self) -> anyhow::Result<ClientConfig> {
        let mut config = client_config(&self.fleet()?)?;
        let remote = self.clone();
        let again = move || {
            let found = remote.fleet().and_then(|fleet| client_config(&fleet));
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

    /// Addresses of the coordinators, for messages.
    pub fn address(&self) -> String {
        self.addresses().join(" or ")
    }

    /// The same as [`FLEET_ENV`] holds it.
    pub fn listed(&self) -> String {
        self.addresses().join(",")
    }

    fn addresses(&self) -> Vec<String> {
        self.fleet().map_or_else(|_| self.fleet.clone(), |found| found.fleet)
    }
}

impl MaybeRemote {
    /// The fleet in which a verb acts; `None` for this machine.
    ///
    /// # Errors
    /// What is kept of the login cannot be used.
    pub fn named(&self) -> anyhow::Result<Option<Remote>> {
        if self.remote.fleet == [HERE] {
            return Ok(None);
        }
        Ok(self.remote.found()?.map(|_| self.remote.clone()))
    }

    /// Whether a fleet is named, and not only logged in to.
    pub fn is_given(&self) -> bool {
        !self.remote.fleet.is_empty() && self.remote.fleet != [HERE]
    }

    /// The fleet in which a verb would act that acts nowhere else.
    pub fn fleet(self) -> Remote {
        self.remote
    }
}

impl ClientTls {
    /// A fleet with what these options say of it otherwise.
    fn over(&self, fleet: FleetLogin) -> FleetLogin {
        FleetLogin {
            token: if self.token_file.is_some() { None } else { fleet.token },
            token_file: self.token_file.clone().or(fleet.token_file),
            ca: self.ca.clone().or(fleet.ca),
            insecure_token: self.insecure || fleet.insecure_token,
            fleet: fleet.fleet,
        }
    }
}

fn client_config(fleet: &FleetLogin) -> anyhow::Result<ClientConfig> {
    let mut config = ClientConfig::of(fleet.fleet.clone());
    config.ca = fleet.ca.as_deref().map(whole_file::read).transpose().map_err(Exit::usage)?;
    config.token = token(fleet)?;
    config.insecure = fleet.insecure_token;
    Ok(config)
}

/// The token of a file, of the login, or of the environment.
fn token(fleet: &FleetLogin) -> anyhow::Result<Option<String>> {
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
