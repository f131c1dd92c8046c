//! A part of a server of several nodes: the first part takes the work, the others only run.

use std::sync::Arc;

use service_kit::http::Probes;
use service_kit::metrics::Metrics;
use service_kit::shutdown::{self, Stop, reached};
use worker::{OwnServer, ServerCommand, ServerState};

use crate::kit::exit_code::ExitCode;
use crate::kit::output::say;
use crate::kit::runtime::serve_probes;
use crate::verbs::worker::until::Signalled;

/// Runs the command of a part, if there is one, until the part is told to end. A part that ends by itself takes the server
/// with it.
pub fn run(
    command: Option<ServerCommand>,
    address: Option<&str>,
    metrics: Metrics,
) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let (stopper, stop) = shutdown::channel();
        let signalled = Signalled::default();
        let noted = signalled.clone();
        shutdown::on_signals(stopper, move |_, signal| {
            noted.note(signal);
            say("ending this part of the server");
        })?;
        let probes = Probes { ready: Arc::new(|| Ok(())), metrics };
        serve_probes(address, probes, reached(stop.clone(), Stop::Abort)).await?;
        eprintln!("a part of a server: waits for the end");
        let Some(command) = command else {
            reached(stop, Stop::Drain).await;
            return Ok(signalled.exit_code());
        };
        let server = OwnServer::start(command);
        let mut states = server.states();
        let lost = tokio::select! {
            state = states.wait_for(|state| matches!(state, ServerState::Lost { .. })) => match state.as_deref() {
                Ok(ServerState::Lost { reason }) => Some(reason.clone()),
                _ => Some("the server is not looked after any more".to_owned()),
            },
            () = reached(stop, Stop::Drain) => None,
        };
        server.end().await;
        match lost {
            Some(reason) => Err(anyhow::anyhow!("{reason}")),
            None => Ok(signalled.exit_code()),
        }
    })
}
