//! The server beside a worker: one that it starts itself, one that spans several nodes, and what is told of it.

use std::path::PathBuf;

use domain::MadeAt;
use worker::ServerCommand;

use crate::kit::exit_code::usage;
use crate::verbs::worker::made_at;
use crate::verbs::worker::targets::{ScrapeTarget, TargetsFile};

/// Maximum number of nodes of a server.
const PARTS_MAX: u32 = 1_024;

/// Options about the server beside a worker.
#[derive(Debug, clap::Args)]
pub struct ServerOptions {
    /// Which part of a server of several nodes this is, from 0. Parts other than 0 take no work: they run the command after
    /// `--`, if there is one, and wait for SIGTERM.
    #[arg(long, value_name = "N", conflicts_with = "rank_from")]
    rank: Option<u32>,
    /// Environment variable with the rank, such as SLURM_PROCID.
    #[arg(long, value_name = "VAR")]
    rank_from: Option<String>,
    /// On how many nodes the server runs.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(PARTS_MAX)))]
    parts: u32,
    /// The pool that this worker belongs to, for status and metrics.
    #[arg(long, value_name = "NAME", env = "KGFLEET_POOL")]
    pub pool: Option<String>,
    /// The machine of its server, for status and metrics.
    #[arg(long, value_name = "NAME", env = "KGFLEET_NODE")]
    pub node: Option<String>,
    /// GPUs of its server, for status and metrics.
    #[arg(long, value_name = "N", env = "KGFLEET_GPUS")]
    pub gpus: Option<u32>,
    /// Image of this worker, for records. Default: a digest of its program.
    #[arg(long, value_name = "IMAGE", env = "KGFLEET_IMAGE")]
    image: Option<String>,
    /// Image of its server, for records.
    #[arg(long, value_name = "IMAGE", env = "KGFLEET_SERVER_IMAGE")]
    server_image: Option<String>,
    /// Revision of the model that its server loads, for records. Default: the one in the path of its weights, if any.
    #[arg(long, value_name = "REVISION", env = "KGFLEET_MODEL_REVISION")]
    model_revision: Option<String>,
    /// Kind of the GPUs of its server, for records. Default: what the driver of this machine says.
    #[arg(long, value_name = "KIND", env = "KGFLEET_GPU_KIND")]
    gpu_kind: Option<String>,
    /// Write a file for Prometheus' file_sd that names the --metrics address of this worker, and the server that it started;
    /// it goes with the worker.
    #[arg(long, value_name = "FILE", requires = "metrics")]
    targets: Option<PathBuf>,
    /// The command of a server to start, such as `vllm serve MODEL --port {port}`: {port} is a free port, {rank} the rank,
    /// and an argument {headless} becomes --headless for parts other than 0. A server that ends is started again; it ends
    /// with the worker.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

impl ServerOptions {
    /// Which part of a server this is.
    pub fn rank(&self) -> anyhow::Result<u32> {
        let rank = match (&self.rank, &self.rank_from) {
            (Some(rank), _) => *rank,
            (None, None) => 0,
            (None, Some(variable)) => {
                let value = std::env::var(variable).unwrap_or_default();
                value
                    .parse()
                    .map_err(|_| usage!("--rank-from {variable}: `{value}` is no number of a part, from 0"))?
            }
        };
        if rank >= self.parts {
            return Err(usage!("rank {rank} of a server of {} parts: ranks begin at 0", self.parts));
        }
        Ok(rank)
    }

    /// The command to start, if there is one. `elsewhere` says whether other servers are named.
    pub fn command(&self, elsewhere: bool) -> anyhow::Result<Option<ServerCommand>> {
        let rank = self.rank()?;
        let Some((program, arguments)) = self.command.split_first() else { return Ok(None) };
        if elsewhere {
            return Err(usage!(
                "the command after `--` is the server: leave out --endpoint and --endpoints-file"
            ));
        }
        if !arguments.iter().any(|argument| argument.contains("{port}")) {
            return Err(usage!(
                "the command after `--` has no {{port}}: the server's port is chosen by the worker"
            ));
        }
        let (program, arguments) = (program.clone(), arguments.to_vec());
        Ok(Some(ServerCommand { program, arguments, rank, parts: self.parts }))
    }

    /// Where the records of this worker are made, as far as that is known before its server answers.
    pub fn made_at(&self, host: &str) -> MadeAt {
        let (gpu, gpus) = made_at::gpus_of_this_machine();
        MadeAt {
            program: self.image.clone().or_else(made_at::digest_of_this_program),
            server_command: (!self.command.is_empty()).then(|| made_at::without_keys(&self.command)),
            server_image: self.server_image.clone(),
            revision: self.model_revision.clone(),
            gpu: self.gpu_kind.clone().or(gpu),
            gpus: self.gpus.or(gpus),
            node: self.node.clone().or_else(|| Some(host.to_owned())),
            ..MadeAt::default()
        }
        .bounded()
    }

    /// Writes the targets for Prometheus, if asked for, and keeps them right.
    pub fn targets(&self, target: ScrapeTarget) -> anyhow::Result<Option<TargetsFile>> {
        self.targets.clone().map(|file| TargetsFile::write(file, target)).transpose()
    }
}
