//! Completions, asked for as shells do: by the script that a shell reads, with the names that there are at that moment.

use std::process::Command;

use crate::harness::terminal::Terminal;
use crate::harness::{Data, Finished, NT_TASK, Running, free_port, process, server, skip, wait_until};

/// Reads the script in bash and asks for the last word of the line.
const BASH: &str = r#"
. <("$KGFLEET" completions bash)
asked=$(complete -p kgfleet) && asked=${asked#*-F } && asked=${asked%% *}
COMP_WORDS=(kgfleet "$@") COMP_CWORD=$#
"$asked" kgfleet "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
[ ${#COMPREPLY[@]} -eq 0 ] || printf '%s\n' "${COMPREPLY[@]}"
"#;

/// The same in zsh, where the function that shows offers prints them.
const ZSH: &str = r#"
fpath=("$FUNCTIONS" $fpath)
autoload -Uz compinit && compinit -D -u
[[ -n $_comps[kgfleet] ]] || source <("$KGFLEET" completions zsh)
_describe() {
  local word
  for word; do
    if [[ $word =~ '^[a-z_]+$' && ${(Pt)word} == array* ]]; then print -rl -- "${(@P)word}"; fi
  done
}
words=(kgfleet "$@") CURRENT=$(($# + 1))
$_comps[kgfleet]
"#;

/// The same in fish.
const FISH: &str = r#"
$KGFLEET completions fish | source
complete --do-complete (string join ' ' -- kgfleet $argv)
"#;

/// A shell for the user of this folder, who has no settings.
fn shell(data: &Data, program: &str) -> Command {
    let mut command = Command::new(program);
    process::shield(&mut command);
    command.current_dir(data.path()).env("KGFLEET", env!("CARGO_BIN_EXE_kgfleet"));
    command.env("KGFLEET_DATA_DIR", data.path()).env("XDG_STATE_HOME", data.state());
    command.env("KGFLEET_LOGIN", data.state().join("login.toml"));
    command.env("FUNCTIONS", data.state().join("functions"));
    for home in ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"] {
        command.env(home, data.state());
    }
    command
}

/// What a shell printed, which must have nothing to say: a prompt is on the screen.
#[track_caller]
fn lines(finished: Finished) -> Vec<String> {
    assert!(finished.stderr.is_empty(), "{finished}");
    finished.stdout.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[track_caller]
fn bash(data: &Data, words: &[&str]) -> Vec<String> {
    let mut command = shell(data, "bash");
    lines(process::finish(command.args(["--norc", "-c", BASH, "bash"]).args(words)))
}

/// Offers without their descriptions.
#[track_caller]
fn zsh(data: &Data, words: &[&str]) -> Vec<String> {
    let mut command = shell(data, "zsh");
    let offered = lines(process::finish(command.args(["-f", "-c", ZSH, "zsh"]).args(words)));
    let value = |line: String| line.replace("\\:", "\n").split(':').next().unwrap().replace('\n', ":");
    offered.into_iter().map(value).collect()
}

#[track_caller]
fn fish(data: &Data, words: &[&str]) -> Vec<String> {
    let mut command = shell(data, "fish");
    let offered = lines(process::finish(command.args(["--no-config", "-c", FISH]).args(words)));
    offered.into_iter().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
}

/// What a shell offers for the last word of a line.
type Ask = fn(&Data, &[&str]) -> Vec<String>;

/// The shells that are installed here; others are skipped aloud.
fn shells() -> Vec<(&'static str, Ask)> {
    let known: [(&str, Ask); 3] = [("bash", bash), ("zsh", zsh), ("fish", fish)];
    let is_there = |name: &str| {
        let there = Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success());
        if !there {
            skip(&format!("there is no {name}: tests/setup installs it"));
        }
        there
    };
    known.into_iter().filter(|(name, _)| is_there(name)).collect()
}

/// Offers in one order, as some shells sort them, and without the strokes at their ends, some of which zsh adds by itself.
fn alike(offers: &[impl AsRef<str>]) -> Vec<String> {
    let mut alike: Vec<String> =
        offers.iter().map(|offer| offer.as_ref().trim_end_matches('/').to_owned()).collect();
    alike.sort();
    alike
}

/// A folder with one run of three models.
fn with_run() -> (Data, String) {
    let data = Data::new();
    data.kgfleet(&["run", "--task", NT_TASK, "--iterations", "2"]).expect(0);
    let name = data.run().name().to_owned();
    (data, name)
}

#[test]
fn every_shell_offers_the_names_that_there_are() {
    let (data, run) = with_run();
    let (first, second) = (format!("sim-weak/{NT_TASK}/0"), format!("sim-weak/{NT_TASK}/1"));
    let model = format!("sim-weak/{}", &NT_TASK[..5]);
    let task = format!("sim-weak/{NT_TASK}/");
    let expected: [(&[&str], &[&str]); 12] = [
        (&["verif"], &["verify"]),
        (&["show", ""], &[&run]),
        (&["show", &run[..9]], &[&run]),
        (&["show", "lat"], &["latest"]),
        (&["show", "latest", "sim-w"], &["sim-weak/"]),
        (&["show", &run, &model], &[&task]),
        (&["show", &run, &task], &[&first, &second]),
        (&["show", "--plain"], &["--plaintext"]),
        (&["show", "latest", "--model", ""], &["sim-strong", "sim-middling", "sim-weak"]),
        (&["table", &run, "--task", "Rdf"], &[NT_TASK]),
        (&["run", "qui"], &["quick"]),
        (&["completions", ""], &["bash", "zsh", "fish"]),
    ];
    for (name, ask) in shells() {
        for (words, offers) in expected {
            assert_eq!(alike(&ask(&data, words)), alike(offers), "{name}, {words:?}");
        }
    }
}

#[test]
fn a_key_in_a_real_bash_writes_the_only_name_out() {
    let (data, run) = with_run();
    // In a session of its own, so that it takes no other terminal than this one.
    let mut command = shell(&data, "setsid");
    command.args(["--ctty", "bash", "--norc", "--noprofile", "-i"]).env("TERM", "dumb");
    let mut terminal = Terminal::start(&mut command, 120, 24);
    let is_shown = |text: String| move |lines: &[String]| lines.iter().any(|line| line.starts_with(&text));
    terminal.press(". <(\"$KGFLEET\" completions bash); PS1='ready> '\n");
    terminal.until(is_shown("ready>".to_owned()));
    terminal.press("kgfleet show \t");
    terminal.until(is_shown(format!("ready> kgfleet show {run}")));
    // Bash takes words apart at the `=`.
    terminal.press("\u{15}kgfleet show latest --model=sim-w\t");
    terminal.until(is_shown("ready> kgfleet show latest --model=sim-weak".to_owned()));
    terminal.press("\u{15}exit\n");
    terminal.finish();
}

/// A coordinator with its queue in memory.
fn coordinator(data: &Data) -> (Running, String) {
    let port = free_port();
    let listen = format!("127.0.0.1:{port}");
    let mut process = data.start(&["coordinator", "--listen", &listen, "--metrics", "127.0.0.1:0"]);
    process.until_it_says("serving on");
    (process, format!("http://{listen}"))
}

#[test]
fn names_are_those_of_the_fleet_that_the_user_has_logged_in_to() {
    let (fleet, user) = (Data::new(), Data::new());
    let (_coordinator, url) = coordinator(&fleet);
    let model = server::MODEL;
    let file = user.write(
        "fleet.toml",
        format!(
            "name = 'fleet'\niterations = 2\ntasks = ['{NT_TASK}']\n[[models]]\nlabel = '{model}'\n\
             connector = 'openai-compatible'\n"
        ),
    );
    user.kgfleet(&["fleet", "login", &url]).expect(0);
    let run = user.kgfleet(&["submit", file.to_str().unwrap()]).expect(0).stdout.trim().to_owned();
    // A coordinator that takes longer than a person waits is not waited for; this machine may be busy.
    let offered = |words: &[&str], offers: &[String]| {
        wait_until(&format!("{words:?} offers {offers:?}"), || bash(&user, words) == offers);
    };
    for verb in ["pause", "show", "export", "status"] {
        offered(&[verb, ""], std::slice::from_ref(&run));
    }
    offered(&["show", "latest", ""], &[format!("{model}/")]);
    offered(&["show", &run, &format!("{model}/")], &[format!("{model}/{NT_TASK}/")]);
    offered(&["show", &run, "--model", ""], &[model.to_owned()]);
    // This machine has no run.
    assert!(!bash(&user, &["run", "--resume", ""]).contains(&run));
    assert!(!bash(&user, &["show", "--fleet", "here", ""]).contains(&run));
}

#[test]
fn what_cannot_be_read_offers_nothing_and_says_nothing() {
    let data = Data::new();
    let names = |words: &[&str]| -> Vec<String> {
        bash(&data, words).into_iter().filter(|offer| !offer.starts_with('-')).collect()
    };
    let none: [String; 0] = [];
    assert_eq!(names(&["pause", "--fleet", "here", ""]), none);
    assert_eq!(names(&["pause", "--fleet", "http", ":", "//127.0.0.1", ":", "9", ""]), none);
    std::fs::write(data.state().join("login.toml"), "no login").unwrap();
    assert_eq!(names(&["show", ""]), none);
    assert_eq!(names(&["show", "x", ""]), none);
    let run = data.path().join("runs/20260101-000000-a");
    std::fs::create_dir_all(&run).unwrap();
    std::fs::write(run.join("manifest.json"), "{").unwrap();
    assert_eq!(names(&["show", "--fleet", "here", ""]), ["20260101-000000-a"]);
    assert_eq!(names(&["show", "--fleet", "here", "20260101-000000-a", ""]), none);
    let unknown = process::finish(data.command::<&str>(&[]).env("KGFLEET_COMPLETE", "tcsh")).expect(2);
    assert!(unknown.stdout.is_empty() && unknown.stderr.is_empty(), "{unknown}");
}

#[test]
fn zsh_finds_the_script_among_its_functions() {
    if !shells().iter().any(|(name, _)| *name == "zsh") {
        return;
    }
    let (data, run) = with_run();
    let functions = data.state().join("functions");
    std::fs::create_dir(&functions).unwrap();
    let script = data.kgfleet(&["completions", "zsh"]).expect(0).stdout;
    std::fs::write(functions.join("_kgfleet"), script).unwrap();
    assert_eq!(zsh(&data, &["show", ""]), [run], "with the first key");
}
