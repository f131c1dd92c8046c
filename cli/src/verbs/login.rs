//! `kgfleet login`.

use std::io;
use std::path::PathBuf;

use domain::control::Control;
use url::Url;

use crate::kit::exit_code::{ExitCode, explained, usage};
use crate::kit::output::{Table, note, say};
use crate::kit::runtime::block_on;
use crate::kit::screen::Screen;
use crate::place::contexts::{self, Contexts, FleetContext, HERE};
use crate::place::remote::{self, ClientTls, FleetAddress, Remote};

/// Keep a fleet as a context, in which verbs act from then on; or list the contexts.
///
/// A context has the coordinators of a fleet, the authority and the token: kgfleet login https://kg.example.org:7700 --token-file
/// token. The token of --token-file stays in its file, and is read again when it is refused; one of KGFLEET_TOKEN is kept in the
/// file of contexts, which only its owner can read: KGFLEET_CONTEXTS, or kgfleet/contexts.toml in XDG_CONFIG_HOME or ~/.config.
/// Nothing is kept before a coordinator has answered.
///
/// Every verb that acts in a fleet takes --context and, instead of it, --coordinator URL with the options below. Without any of
/// them it acts in the context logged in to last, and says so; `--context here` is this machine.
///
/// Exit codes: 0 logged in, or listed; 2 a name or file cannot be used; 3 no coordinator answers, or it refuses the token.
#[derive(Debug, clap::Args)]
#[command(mut_args(remote::shown))]
pub struct Arguments {
    /// Addresses of coordinators of the same queue. Without any, the contexts are listed.
    #[arg(value_name = "URL")]
    urls: Vec<String>,
    /// Name of the context. Default: the host of the first address.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Act in this context from now on; `here` is this machine.
    #[arg(long = "use", value_name = "NAME", conflicts_with_all = ["urls", "forget"], add = contexts::completed_or_here())]
    chosen: Option<String>,
    /// Remove a context.
    #[arg(long, value_name = "NAME", conflicts_with = "urls", add = contexts::completed())]
    forget: Option<String>,
    #[command(flatten)]
    tls: ClientTls,
}

/// `kgfleet login`.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let mut contexts = Contexts::of_user()?;
    if let Some(name) = arguments.chosen {
        if name != HERE {
            contexts.get(&name)?;
        }
        contexts.current = Some(name.clone()).filter(|name| name != HERE);
        contexts.write()?;
        say(&match name.as_str() {
            HERE => "verbs act on this machine from now on".to_owned(),
            name => format!("verbs act in context {name} from now on"),
        });
        return Ok(ExitCode::Success);
    }
    if let Some(name) = arguments.forget {
        contexts.get(&name)?;
        contexts.known.remove(&name);
        contexts.current = contexts.current.filter(|current| *current != name);
        contexts.write()?;
        note!("context {name} is removed");
        return Ok(ExitCode::Success);
    }
    if arguments.urls.is_empty() {
        Screen::here().table(&listed(&contexts), &mut io::stdout().lock())?;
        return Ok(ExitCode::Success);
    }
    let address = FleetAddress::new(arguments.urls, arguments.tls);
    let context = address.to_context()?;
    let name = match arguments.name {
        Some(name) => name,
        None => host(&context.coordinators[0])?,
    };
    contexts::expect_name(&name)?;
    let runs = block_on(async { Remote::of(address).client()?.list().await.map_err(explained) })?.len();
    let place = context.coordinators.join(" or ");
    contexts.known.insert(name.clone(), context);
    contexts.current = Some(name.clone());
    let file = contexts.write()?;
    note!("logged in to {name} ({place}), which has {runs} benchmarks; kept in {}", file.display());
    note!("verbs act there from now on, and on this machine with --context {HERE}");
    Ok(ExitCode::Success)
}

fn host(address: &str) -> anyhow::Result<String> {
    let host = Url::parse(address).ok().and_then(|url| url.host_str().map(str::to_owned));
    host.ok_or_else(|| {
        usage!("{address} is no address of a coordinator, such as https://kg.example.org:7700")
    })
}

fn listed(contexts: &Contexts) -> Table {
    let mut table = Table::default().left(["", "context", "coordinators", "token", "authority"]);
    let mark = |is_current| if is_current { "*" } else { "" };
    let current = contexts.current.as_deref();
    let shown = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
    table.row([mark(current.is_none()), HERE, "this machine", "", ""].map(str::to_owned).to_vec());
    for (name, FleetContext { coordinators, token, token_file, ca, .. }) in &contexts.known {
        table.row(vec![
            mark(current == Some(name)).to_owned(),
            name.clone(),
            coordinators.join(", "),
            shown(token_file).or_else(|| token.as_ref().map(|_| "kept".to_owned())).unwrap_or_default(),
            shown(ca).unwrap_or_default(),
        ]);
    }
    table
}
