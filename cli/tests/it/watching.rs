//! `kgfleet watch` on a real terminal: what it shows at several sizes, and how it leaves.

use rustix::process::Signal;

use crate::harness::terminal::Terminal;
use crate::harness::{Data, NT_TASK, Running};

/// Models of the run: more than a small screen has lines.
const MODELS: usize = 41;

const KEYS: &str = "Tab 1 2 3 lists";
const END: &str = "\x1b[F";

/// A coordinator with its queue in a file, a run of many models, and nobody who serves them.
struct Watched {
    data: Data,
    port: u16,
    coordinator: Running,
    run: String,
}

impl Watched {
    fn start() -> Self {
        let (data, port) = (Data::new(), crate::harness::free_port());
        let coordinator = coordinator(&data, port);
        let models = (0..MODELS)
            .map(|n| format!("[[models]]\nlabel = 'model-{n:02}'\nconnector = 'simulated'\n"))
            .collect::<String>();
        let text = format!("name = 'many'\niterations = 2\ntasks = ['{NT_TASK}']\n{models}");
        let file = data.write("many.toml", text);
        let url = format!("http://127.0.0.1:{port}");
        let submitted = data.kgfleet(&["submit", file.to_str().unwrap(), "--coordinator", &url]).expect(0);
        Self { data, port, coordinator, run: submitted.stdout.trim().to_owned() }
    }

    fn watch(&self, columns: u16, rows: u16) -> Terminal {
        let url = format!("http://127.0.0.1:{}", self.port);
        let mut command = self.data.command(&["watch", &self.run, "--coordinator", &url]);
        Terminal::start(command.env("TERM", "xterm-256color"), columns, rows)
    }

    /// The screen when everything is where it belongs.
    #[track_caller]
    fn until_whole(&self, terminal: &mut Terminal, rows: u16, model: usize) -> Vec<String> {
        let head = format!("run {} active: many", self.run);
        let model = format!("model-{model:02}");
        terminal.until(|lines| {
            lines[0] == head
                && lines[1].starts_with("0/82 dialogues, 0 failed, ETA -, 0/s, 0 tokens/s")
                && lines[2]
                    .starts_with("blocked: 41 models, model-00, model-01, model-02 and 38 more (no worker")
                && lines[3].contains("1 Models 41")
                && lines[5..lines.len() - 4].iter().any(|line| line.starts_with(&model))
                && lines.last().is_some_and(|line| line.starts_with(KEYS))
                && lines.iter().filter(|line| line.contains("dialogues, 0 failed")).count() == 1
                && lines.len() == usize::from(rows)
        })
    }
}

impl Watched {
    /// What stands on the screen of before.
    #[track_caller]
    fn until_left(&self, terminal: &mut Terminal) {
        let line = format!("run {} active: 0/82 dialogues", self.run);
        terminal.until(|lines| lines.iter().any(|found| found.starts_with(&line)));
    }
}

fn coordinator(data: &Data, port: u16) -> Running {
    let listen = format!("127.0.0.1:{port}");
    let mut process = data.start(&["coordinator", "--listen", &listen, "--http", "127.0.0.1:0"]);
    process.until_it_says("serving on");
    process
}

#[test]
fn the_screen_is_whole_at_every_size_and_after_a_resize() {
    let watched = Watched::start();
    for (columns, rows) in [(80, 24), (120, 40), (200, 50)] {
        let mut terminal = watched.watch(columns, rows);
        watched.until_whole(&mut terminal, rows, 0);
        assert!(terminal.is_alternate() && !terminal.echoes());
        terminal.press(END);
        watched.until_whole(&mut terminal, rows, MODELS - 1);
        for (columns, rows) in [(80, 24), (132, 30)] {
            terminal.resize(columns, rows);
            watched.until_whole(&mut terminal, rows, MODELS - 1);
        }
        // Sorted by name, then to the first one that is blocked.
        terminal.press("ssss");
        terminal.until(|lines| lines[3].contains("1 Models 41, by name"));
        terminal.press("b");
        terminal.until(|lines| {
            lines[5].starts_with("model-00") && lines.iter().any(|line| line.ends_with("more below"))
        });
        terminal.press("\t");
        terminal.until(|lines| lines[4].starts_with("worker"));
        terminal.press("3");
        terminal.until(|lines| lines[4].contains("cause"));
        terminal.press("q");
        assert_eq!(terminal.finish().code(), Some(0));
        watched.until_left(&mut terminal);
        assert!(!terminal.is_alternate() && terminal.echoes(), "the terminal is as it was");
    }
}

#[test]
fn a_coordinator_that_is_gone_is_told_and_forgotten_when_it_is_back() {
    let mut watched = Watched::start();
    let mut terminal = watched.watch(80, 24);
    watched.until_whole(&mut terminal, 24, 0);
    watched.coordinator.signal(Signal::KILL);
    let lines = terminal.until(|lines| lines[2].starts_with("no answer for "));
    assert!(lines[1].starts_with("0/82 dialogues"), "what it said last stays");
    watched.coordinator = coordinator(&watched.data, watched.port);
    watched.until_whole(&mut terminal, 24, 0);
    terminal.signal(Signal::TERM);
    assert_eq!(terminal.finish().code(), Some(130));
    watched.until_left(&mut terminal);
    assert!(!terminal.is_alternate() && terminal.echoes());
}

#[test]
fn status_fits_a_small_terminal() {
    let watched = Watched::start();
    let url = format!("http://127.0.0.1:{}", watched.port);
    for command in [&["status"][..], &["status", &watched.run]] {
        let mut command = watched.data.command(&[command, &["--coordinator", &url]].concat());
        let mut terminal = Terminal::start(command.env("TERM", "xterm-256color"), 80, 200);
        assert_eq!(terminal.finish().code(), Some(0));
        // Sentences are wrapped between any two words.
        let says = |lines: &[String]| lines.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
        let lines = terminal.until(|lines| says(lines).contains("no worker"));
        // A line that did not fit would go on at the beginning of the next one, which no table has.
        let rules: Vec<&String> = lines.iter().filter(|line| line.starts_with("---")).collect();
        assert!(!rules.is_empty() && rules.iter().all(|rule| rule.chars().count() < 80), "{lines:#?}");
        assert!(lines.iter().any(|line| line.starts_with("run") || line.starts_with("model")), "{lines:#?}");
    }
}

#[test]
fn a_pipe_gets_lines_and_no_control_characters() {
    let watched = Watched::start();
    let url = format!("http://127.0.0.1:{}", watched.port);
    let to = ["--coordinator", &url];
    watched.data.kgfleet(&[&["cancel", &watched.run][..], &to].concat()).expect(0);
    let seen = watched.data.kgfleet(&[&["watch", &watched.run][..], &to].concat()).expect(130);
    assert!(seen.stdout.starts_with(&format!("run {} cancelled: 0/82 dialogues", watched.run)), "{seen}");
    assert!(!seen.stdout.contains('\x1b'), "{seen}");
}
