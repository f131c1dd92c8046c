//! `kgfleet fleet login`.

use std::io::{self, Write};

use domain::control::Control;

use crate::kit::exit_code::{ExitCode, explained, usage};
use crate::kit::output::{note, printable};
use crate::kit::runtime::block_on;
use crate::place::login::FleetLogin;
use crate::place::remote::{self, ClientTls, HERE, Remote};

/// Keep a fleet, in which verbs act from then on; or say which one is kept.
///
/// The addresses of its coordinators are kept, the authority and the token: kgfleet fleet login https://kg.example.org:7700
/// --token-file token. The token of --token-file stays in its file, and is read again when it is refused; one of KGFLEET_TOKEN is
/// kept in a file that only its owner can read: KGFLEET_LOGIN, or kgfleet/login.toml in XDG_CONFIG_HOME or ~/.config. Nothing is
/// kept before a coordinator has answered.
///
/// Every verb that acts in a fleet takes --fleet URL and the options below. Without --fleet it acts in the fleet that is kept, and
/// says so; `--fleet here` is this machine.
///
/// Exit codes: 0 logged in, or said; 2 an address or a file cannot be used; 3 no coordinator answers, or it refuses the token.
#[derive(Debug, clap::Args)]
#[command(mut_args(remote::shown))]
pub struct Arguments {
    /// Addresses of the fleet's coordinators, or `here`: forget the fleet that is kept.
    #[arg(value_name = "URL", value_delimiter = ',')]
    fleet: Vec<String>,
    #[command(flatten)]
    tls: ClientTls,
}

/// `kgfleet fleet login`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    if arguments.fleet.is_empty() {
        let kept = FleetLogin::of_user()?;
        let place = kept.map_or_else(|| "this machine".to_owned(), |login| login.fleet.join(","));
        writeln!(io::stdout(), "{}", printable(&place))?;
        return Ok(ExitCode::Success);
    }
    if arguments.fleet == [HERE] {
        FleetLogin::forget()?;
        note!("verbs act on this machine from now on");
        return Ok(ExitCode::Success);
    }
    if arguments.fleet.iter().any(|address| address == HERE) {
        return Err(usage!("`{HERE}` stands for this machine alone"));
    }
    let remote = Remote::of(arguments.fleet, arguments.tls);
    let login = remote.to_login()?;
    let runs = block_on(async { remote.client()?.list().await.map_err(explained) })?.len();
    let file = login.keep()?;
    note!("logged in to {}, which has {runs} benchmarks; kept in {}", remote.address(), file.display());
    note!("verbs act there from now on, and on this machine with --fleet {HERE}");
    Ok(ExitCode::Success)
}
