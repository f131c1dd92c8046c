//! Following a run from beside: `kgfleet status` and `watch`, and what they show of a run on this machine whose server dies.

use std::net::TcpStream;

use rustix::process::Signal;

use crate::harness::{Data, NT_TASK, Server, free_port, wait_until};

/// Dialogues in flight of a run on this machine.
const IN_FLIGHT: u32 = 4;

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
    let watcher = data.start(&["status", "--follow"]);
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
fn a_pipe_gets_lines_and_no_control_characters() {
    let data = Data::new();
    let listen = format!("127.0.0.1:{}", free_port());
    let mut coordinator = data.start(&["coordinator", "--listen", &listen, "--metrics", "127.0.0.1:0"]);
    coordinator.until_it_says("serving on");
    let url = format!("http://{listen}");
    let of_fleet = |arguments: &[&str]| data.kgfleet(&[arguments, &["--fleet", &url]].concat());
    let run = of_fleet(&["submit", "quick"]).expect(0).stdout.trim().to_owned();
    of_fleet(&["cancel", &run]).expect(0);
    let seen = of_fleet(&["status", "--follow", &run]).expect(130);
    assert!(seen.stdout.starts_with(&format!("run {run} cancelled: 0/")), "{seen}");
    assert!(!seen.stdout.contains('\x1b'), "{seen}");
}
