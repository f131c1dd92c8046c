//! Following a run from beside: `kgfleet status` and `watch`, and what they show of a run on this machine whose server dies.

use std::net::TcpStream;

use rustix::process::Signal;

use crate::harness::terminal::Terminal;
use crate::harness::{Data, NT_TASK, Running, Server, free_port, wait_until};

/// Models of the run: more than a small screen has lines.
const MODELS: usize = 41;

/// Dialogues in flight of a run on this machine.
const IN_FLIGHT: u32 = 4;

/// A coordinator with its queue in memory, a run of many models, and nobody who serves them.
struct Watched {
    data: Data,
    port: u16,
    _coordinator: Running,
    run: String,
}

impl Watched {
    fn start() -> Self {
        let (data, port) = (Data::new(), free_port());
        let listen = format!("127.0.0.1:{port}");
        let mut coordinator = data.start(&["coordinator", "--listen", &listen, "--metrics", "127.0.0.1:0"]);
        coordinator.until_it_says("serving on");
        let models = (0..MODELS)
            .map(|n| format!("[[models]]\nlabel = 'model-{n:02}'\nconnector = 'simulated'\n"))
            .collect::<String>();
        let text = format!("name = 'many'\niterations = 2\ntasks = ['{NT_TASK}']\n{models}");
        let file = data.write("many.toml", text);
        let url = format!("http://127.0.0.1:{port}");
        let submitted = data.kgfleet(&["submit", file.to_str().unwrap(), "--coordinator", &url]).expect(0);
        Self { data, port, _coordinator: coordinator, run: submitted.stdout.trim().to_owned() }
    }
}

/// What `kgfleet status` says of the run of this folder.
fn status(data: &Data) -> String {
    data.kgfleet(&["status", "latest"]).expect(0).stdout
}

#[test]
fn a_run_of_this_machine_is_followed_from_beside() {
    let (server, data) = (Server::start(), Data::new());
    // The first question is asked alone.
    server.gate().close_after(1);
    let process = data.start(&server.run_arguments(&[NT_TASK], 8, IN_FLIGHT));
    server.gate().until_held(IN_FLIGHT as usize);
    wait_until("its process tells", || {
        status(&data).contains("running: 1/8 dialogues, 0 failed, 4 in flight, ETA ")
    });
    let told = data.kgfleet(&["status", "latest", "--json"]).expect(0).json();
    assert_eq!(told["models"][0]["calls"]["in_flight"], IN_FLIGHT);
    data.kgfleet(&["pause", "latest"]).expect(2).says(&["Ctrl-C", "kgfleet resume"]);
    let watcher = data.start(&["watch"]);
    server.gate().open();
    process.finish().expect(0);
    watcher.finish().expect(0).prints(&["finished: 8/8 dialogues, 0 failed", NT_TASK]);
    data.kgfleet(&["verify", "latest"]).expect(0);
    assert!(!data.run().dir.path().join("live.json").exists());
}

#[test]
fn a_server_that_dies_is_named_in_every_terminal() {
    let data = Data::new();
    let listen = format!("127.0.0.1:{}", free_port());
    let server = data.start(&["simulate", "--listen", &listen]);
    wait_until("it serves", || TcpStream::connect(&listen).is_ok());
    let arguments =
        ["run", "--endpoint", &format!("http://{listen}/v1"), "--model", "sim", "--task", NT_TASK];
    let more = ["--iterations", "100000", "--concurrency", "4"];
    let mut process = data.start(&[&arguments[..], &more].concat());
    data.until_recorded(&mut process, 1);
    server.signal(Signal::KILL);
    process.until_it_says("4 calls wait: connection refused since ");
    wait_until("its process tells", || {
        let shown = status(&data).split_whitespace().collect::<Vec<_>>().join(" ");
        shown.contains("4 waiting, ETA -") && shown.contains("4 calls wait: connection refused since ")
    });
    let run = data.run();
    // What a killed process has left is nobody's word.
    let left = std::fs::read(run.dir.path().join("live.json")).unwrap();
    process.signal(Signal::INT);
    process.finish().expect(130).says(&["gave up 4 calls that no server has accepted", "kgfleet resume"]);
    std::fs::write(run.dir.path().join("live.json"), left).unwrap();
    let after = status(&data);
    assert!(after.contains("interrupted") && !after.contains("calls wait"), "{after}");
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
