//! The verbs of `kgfleet`, a file or a folder for each. A verb uses no other verb. To add one, add its file and its
//! line below; `docs/reference/cli.md` is generated.

use crate::kit::exit_code::ExitCode;
use crate::place::packs;

/// Declares the verbs: each line gives the module, the subcommand and the call.
macro_rules! verbs {
    ($($name:ident = $verb:ident;)+) => {
        $(pub mod $verb;)+

        /// A verb with its arguments.
        #[derive(Debug, clap::Subcommand)]
        pub enum Command {
            $($name(Box<$verb::Arguments>),)+
            /// An evaluation process; started by the other verbs, not by people.
            #[command(name = ::worker::EVALUATOR_COMMAND, hide = true)]
            EvaluationProcess,
        }

        impl Command {
            /// Runs the verb to its exit code.
            ///
            /// # Errors
            /// Why the verb failed, with an exit code.
            pub fn run(self) -> anyhow::Result<ExitCode> {
                match self {
                    $(Self::$name(arguments) => $verb::run(*arguments),)+
                    Self::EvaluationProcess => ::worker::evaluate::sandbox::child::serve(packs::load)
                        .map(|()| ExitCode::Success)
                        .map_err(Into::into),
                }
            }
        }
    };
}

verbs! {
    Run = run;
    Judge = judge;
    Resume = resume;
    Retry = retry;
    Init = init;
    Plan = plan;
    Runs = runs;
    Dialogues = dialogues;
    Doctor = doctor;
    Show = show;
    Export = export;
    Table = table;
    Compare = compare;
    Report = report;
    Bundle = bundle;
    Unbundle = unbundle;
    Push = push;
    Pull = pull;
    Verify = verify;
    Rm = rm;
    Pack = pack;
    Task = task;
    Halu = kghalubench;
    Reevaluate = reevaluate;
    Rejudge = rejudge;
    Simulate = simulate;
    Coordinator = coordinator;
    Worker = worker;
    Conduct = conduct;
    Submit = submit;
    Status = status;
    Watch = watch;
    Pause = pause;
    Cancel = cancel;
    Workers = workers;
    Drain = drain;
    Dlq = dlq;
    Spool = spool;
    Check = check;
    Launch = launch;
    Token = token;
    Secrets = secrets;
    Audit = audit;
}
