//! Answers shells that ask how a command line goes on. Their scripts, and what the declaration of the command line offers,
//! are those of `clap_complete`; here is what shells and people expect beyond that.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Command;
use clap_complete::engine;
use clap_complete::env::{Bash, CompleteEnv, EnvCompleter, Fish, Shells, Zsh};

use crate::kit::completion::joined;
use crate::kit::exit_code::ExitCode;
use crate::kit::output;

/// Environment variable by which the scripts ask: it holds the name of the shell.
const ASKED_ENV: &str = "KGFLEET_COMPLETE";

/// Environment variable with the place of the word to complete, which the scripts of bash and zsh set.
const PLACE_ENV: &str = "_CLAP_COMPLETE_INDEX";

/// Environment variable with what the scripts of bash and zsh expect between two offers.
const SEPARATOR_ENV: &str = "_CLAP_IFS";

/// The name of the program that is completed.
pub const PROGRAM: &str = "kgfleet";

/// A script in the folder of zsh's functions is run by the first key, and must offer something then.
const OF_ZSH_FUNCTION: &str =
    "if [[ ${funcstack[1]-} == _kgfleet ]]; then _clap_dynamic_completer_kgfleet; fi\n";

/// A shell that is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum KnownShell {
    Bash,
    Zsh,
    Fish,
}

/// Answers a shell if one asks; `None` if none does. A prompt is on the screen: whatever fails, nothing is said.
pub fn answer(command_line: fn() -> Command) -> Option<ExitCode> {
    std::env::var_os(ASKED_ENV).filter(|shell| !shell.is_empty())?;
    output::be_quiet();
    let folder = std::env::current_dir().ok();
    let asked = CompleteEnv::with_factory(command_line)
        .var(ASKED_ENV)
        .shells(Shells(&[&KnownShell::Bash, &KnownShell::Zsh, &KnownShell::Fish]))
        .try_complete(std::env::args_os(), folder.as_deref());
    match asked {
        Ok(true) => Some(ExitCode::Success),
        Ok(false) => None,
        Err(_) => Some(ExitCode::Usage),
    }
}

impl KnownShell {
    /// The script that makes the shell ask this program, by the name or path by which it is found.
    ///
    /// # Errors
    /// None: it is written into memory.
    pub fn script(self, program: &str) -> io::Result<Vec<u8>> {
        let mut script = Vec::new();
        self.write_registration(ASKED_ENV, PROGRAM, PROGRAM, program, &mut script)?;
        Ok(script)
    }

    fn of_library(self) -> &'static dyn EnvCompleter {
        match self {
            Self::Bash => &Bash,
            Self::Zsh => &Zsh,
            Self::Fish => &Fish,
        }
    }
}

impl EnvCompleter for KnownShell {
    fn name(&self) -> &'static str {
        self.of_library().name()
    }

    fn is(&self, name: &str) -> bool {
        self.of_library().is(name)
    }

    fn write_registration(
        &self,
        var: &str,
        name: &str,
        bin: &str,
        completer: &str,
        buf: &mut dyn Write,
    ) -> io::Result<()> {
        self.of_library().write_registration(var, name, bin, completer, buf)?;
        if *self == Self::Zsh {
            buf.write_all(OF_ZSH_FUNCTION.as_bytes())?;
        }
        Ok(())
    }

    fn write_complete(
        &self,
        cmd: &mut Command,
        args: Vec<OsString>,
        current_dir: Option<&Path>,
        buf: &mut dyn Write,
    ) -> io::Result<()> {
        let place = std::env::var(PLACE_ENV).ok().and_then(|place| place.parse().ok());
        let place = place.unwrap_or_else(|| args.len().saturating_sub(1));
        if args.get(place).is_none_or(|word| word.is_empty()) {
            *cmd = names_first(std::mem::take(cmd));
        }
        match self {
            Self::Bash => {
                let offered = of_bash(cmd, args, place, current_dir)?;
                let separator = std::env::var(SEPARATOR_ENV);
                buf.write_all(offered.join(separator.as_deref().unwrap_or("\n")).as_bytes())
            }
            Self::Zsh | Self::Fish => self.of_library().write_complete(cmd, args, current_dir, buf),
        }
    }
}

/// How this program was called: by its name alone, or by its path, wherever the shell is later.
pub fn called() -> String {
    let called = std::env::args_os().next().map_or_else(|| PathBuf::from(PROGRAM), PathBuf::from);
    let is_path = called.components().count() > 1;
    let whole = if is_path { std::path::absolute(&called).unwrap_or(called) } else { called };
    whole.to_string_lossy().into_owned()
}

/// A command line that offers options only where nothing else fits: before anything is typed, people look for names, and a
/// name that is the only one is then written out.
fn names_first(command: Command) -> Command {
    let hidden = |argument: clap::Arg| if argument.is_positional() { argument } else { argument.hide(true) };
    command.mut_args(hidden).mut_subcommands(names_first)
}

/// What bash is offered. It writes offers down as they are, in place of the part of the word after the last `=` or `:`.
fn of_bash(
    command: &mut Command,
    mut words: Vec<OsString>,
    place: usize,
    folder: Option<&Path>,
) -> io::Result<Vec<String>> {
    words.truncate(place.saturating_add(1));
    let typed = words.get(place).map(|word| unescaped(word)).unwrap_or_default();
    let (mut words, place) = joined(words, place);
    if let Some(word) = words.get_mut(place) {
        *word = unescaped(word);
    }
    let whole = words.get(place).map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    let kept = whole.strip_suffix(&*typed.to_string_lossy()).unwrap_or_default();
    let offered = engine::complete(command, words, place, folder)?;
    let rest = |value: &OsStr| {
        let value = value.to_string_lossy();
        escaped(value.strip_prefix(kept).unwrap_or(&value))
    };
    Ok(offered.iter().map(|offer| rest(offer.get_value())).collect())
}

/// A text as one word of bash. A tilde stays what it is, since it begins paths.
fn escaped(text: &str) -> String {
    let mut word = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_whitespace() || "\\'\"`$&|;<>()*?[]{}#!^".contains(c) {
            word.push('\\');
        }
        word.push(c);
    }
    word
}

/// A word of bash as the program would get it, but for quotes: a shell that completes inside of them leaves them out.
fn unescaped(word: &OsStr) -> OsString {
    let Some(word) = word.to_str() else { return word.to_owned() };
    let (mut text, mut is_escaped) = (String::with_capacity(word.len()), false);
    for c in word.chars() {
        is_escaped = c == '\\' && !is_escaped;
        if !is_escaped {
            text.push(c);
        }
    }
    text.into()
}

#[cfg(test)]
mod tests {
    use clap::Arg;
    use clap_complete::engine::ArgValueCompleter;

    use super::*;
    use crate::kit::completion::completer;

    fn models() -> ArgValueCompleter {
        completer(|_| ["sim-strong", "ChatGPT 4o", "ChatGPT $(x)", "host:7b"].map(str::to_owned).into())
    }

    /// `kgfleet show RUN --model MODEL`, and what bash is offered for its last word.
    fn offered(words: &[&str]) -> Vec<String> {
        let run = Arg::new("run").add(completer(|_| vec!["latest".to_owned()]));
        let model = Arg::new("model").long("model").add(models());
        let mut command = Command::new("kgfleet").subcommand(Command::new("show").arg(run).arg(model));
        command.build();
        if words.last() == Some(&"") {
            command = names_first(command);
        }
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let last = words.len() - 1;
        of_bash(&mut command, words, last, None).unwrap()
    }

    #[test]
    fn names_come_first_and_options_where_they_are_begun() {
        assert_eq!(offered(&["kgfleet", "sh"]), ["show"]);
        assert_eq!(offered(&["kgfleet", "show", ""]), ["latest"]);
        assert_eq!(offered(&["kgfleet", "show", "--m"]), ["--model"]);
        assert!(offered(&["kgfleet", "show", "latest", ""]).contains(&"--model".to_owned()));
    }

    #[test]
    fn bash_gets_words_and_their_rest_after_a_break() {
        assert_eq!(offered(&["kgfleet", "show", "--model", "sim"]), ["sim-strong"]);
        assert_eq!(offered(&["kgfleet", "show", "--model", "=", "sim"]), ["sim-strong"]);
        assert_eq!(offered(&["kgfleet", "show", "--model", "host", ":", "7"]), ["7b"]);
        assert_eq!(offered(&["kgfleet", "show", "--model=host", ":", "7"]), ["7b"]);
    }

    #[test]
    fn a_label_is_one_word_and_runs_nothing() {
        let both = ["ChatGPT\\ 4o", "ChatGPT\\ \\$\\(x\\)"];
        assert_eq!(offered(&["kgfleet", "show", "--model", "Chat"]), both);
        assert_eq!(offered(&["kgfleet", "show", "--model", "ChatGPT\\ "]), both);
        assert_eq!(unescaped(OsStr::new("a\\\\b\\ c")), "a\\b c");
        assert_eq!(escaped("~/a b/é*"), "~/a\\ b/é\\*");
    }

    #[test]
    fn each_shell_gets_a_script_that_asks_by_the_variable() {
        for (shell, name) in
            [(KnownShell::Bash, "bash"), (KnownShell::Zsh, "zsh"), (KnownShell::Fish, "fish")]
        {
            assert_eq!(shell.name(), name);
            let script = String::from_utf8(shell.script("/opt/it/kgfleet").unwrap()).unwrap();
            assert!(script.contains(ASKED_ENV) && script.contains("/opt/it/kgfleet"), "{script}");
        }
        let of_zsh = String::from_utf8(KnownShell::Zsh.script(PROGRAM).unwrap()).unwrap();
        assert!(of_zsh.contains("function _clap_dynamic_completer_kgfleet()"), "{of_zsh}");
        assert!(of_zsh.ends_with(OF_ZSH_FUNCTION), "{of_zsh}");
    }
}
