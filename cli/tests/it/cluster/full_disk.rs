//! A fleet whose record disk is full.

use std::io::Write;

use crate::disk_full::Mount;
use crate::harness::process::finish;
use crate::harness::{Cluster, NT_TASK, Server, http, wait_until};

/// Room for the records of a test, in KiB.
const ROOM_KIB: u32 = 512;

#[test]
fn a_full_record_disk_pauses_a_run_and_loses_nothing() {
    let Some(cluster) = Cluster::start() else { return };
    let folder = cluster.data.path().join("small");
    let Some(_mount) = Mount::tmpfs(&folder, ROOM_KIB) else {
        // No tool is missing but a right: this may skip anywhere.
        crate::harness::skip_where_nothing_helps("this user cannot mount a small file system");
        return;
    };
    let server = Server::start();
    let port = crate::harness::free_port();
    let listen = format!("127.0.0.1:{port}");
    let redis = cluster.redis.url();
    let data_dir = folder.to_str().unwrap();
    let page = format!("127.0.0.1:{}", crate::harness::free_port());
    let arguments =
        ["coordinator", "--listen", &listen, "--metrics", &page, "--queue", &redis, "--data-dir", data_dir];
    let mut process = cluster.data.start(&arguments);
    process.until_it_says("serving on");
    let coordinator = crate::harness::cluster::Coordinator { process, port };
    let run = cluster.submit(&coordinator, &[NT_TASK], 20);
    // To the last byte.
    let filler = folder.join("filler");
    let mut file = std::fs::File::create(&filler).unwrap();
    while file.write_all(&[7; 1024]).is_ok() {}
    drop(file);
    let mut worker = cluster.worker("worker", &coordinator, &server);
    worker.until_it_says("the disk is full");
    wait_until("readiness says why", || {
        http::get(&page, "/readyz").is_some_and(|(status, why)| status == 503 && why.contains("disk is full"))
    });
    let status = cluster.kgfleet(&coordinator, &["status", &run]).expect(0);
    assert!(status.stdout.contains("disk is full"), "{status}");
    std::fs::remove_file(&filler).unwrap();
    cluster.watch(&coordinator, &run).1.expect(0);
    let mut verify = cluster.data.command(&["verify", &run, "--data-dir", data_dir]);
    finish(&mut verify).expect(0).prints(&["20 dialogues: 20 scored"]);
}
