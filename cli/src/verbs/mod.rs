//! The verbs of `kgfleet`, a file or a folder for each. A verb uses no other verb. To add one, add its file and its
//! line below; `docs/reference/cli.md` is generated.

use crate::kit::exit_code::ExitCode;
use crate::place::packs;

/// Declares the verbs by what people want: each line gives the module, the subcommand and the call.
macro_rules! verbs {
    ($($group:literal { $($name:ident = $verb:ident;)+ })+) => {
        $($(pub mod $verb;)+)+

        /// A verb with its arguments.
        #[derive(Debug, clap::Subcommand)]
        pub enum Command {
            $($($name(Box<$verb::Arguments>),)+)+
            /// An evaluation process; started by the other verbs, not by people.
            #[command(name = ::worker::EVALUATOR_COMMAND, hide = true)]
            EvaluationProcess,
        }

        /// The groups of verbs in `--help`, each with its heading.
        const GROUPS: &[(&str, &[&str])] = &[$(($group, &[$(stringify!($name)),+])),+];

        impl Command {
            /// Runs the verb to its exit code.
            ///
            /// # Errors
            /// Why the verb failed, with an exit code.
            pub fn run(self) -> anyhow::Result<ExitCode> {
                match self {
                    $($(Self::$name(arguments) => $verb::run(*arguments),)+)+
                    Self::EvaluationProcess => ::worker::evaluate::sandbox::child::serve(packs::load)
                        .map(|()| ExitCode::Success)
                        .map_err(Into::into),
                }
            }
        }
    };
}

verbs! {
    "Run and follow" {
        Init = init;
        Run = run;
        Submit = submit;
        Plan = plan;
        Status = status;
        Pause = pause;
        Resume = resume;
        Retry = retry;
        Cancel = cancel;
        Rm = rm;
    }
    "Results" {
        Show = show;
        Table = table;
        Compare = compare;
        Report = report;
        Export = export;
        Archive = archive;
        Verify = verify;
        Rejudge = rejudge;
        Reevaluate = reevaluate;
        Score = score;
    }
    "Tasks" {
        Task = task;
        Pack = pack;
        Halu = kghalubench;
    }
    "Fleet" {
        Launch = launch;
        Conduct = conduct;
        Coordinator = coordinator;
        Worker = worker;
        Fleet = fleet;
        Simulate = simulate;
    }
    "This program" {
        Completions = completions;
    }
}

/// Lists the verbs in their groups in the help text of `kgfleet`.
pub fn grouped(command: clap::Command) -> clap::Command {
    let mut text = String::new();
    for (heading, verbs) in GROUPS {
        text.push_str(&format!("{heading}:\n"));
        for verb in *verbs {
            let name = verb.to_lowercase();
            let about = command.find_subcommand(&name).and_then(clap::Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            text.push_str(&format!("  {name:<NAME_WIDTH$}{about}\n"));
        }
        text.push('\n');
    }
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{text}Options:\n{{options}}"
    ))
}

/// Columns of the names of verbs in the help text.
const NAME_WIDTH: usize = 13;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_text_names_every_verb_in_one_group() {
        let command = crate::command_line();
        let help = command.clone().render_help().to_string();
        let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set() && verb.get_name() != "help");
        for verb in shown {
            let line = format!("\n  {:<NAME_WIDTH$}{}\n", verb.get_name(), verb.get_about().unwrap());
            assert_eq!(help.matches(&line).count(), 1, "{line}{help}");
        }
        assert!(GROUPS.iter().all(|(heading, _)| help.contains(&format!("\n{heading}:\n"))), "{help}");
    }
}
