//! Redis behind TLS: the system's authorities suffice, and a client certificate is sent if the server asks for one.

use std::path::Path;
use std::process::Command;

use crate::harness::{Data, RedisServer, Running, free_port};

const INFRASTRUCTURE: i32 = 3;

/// A certificate of its own for 127.0.0.1, with its key; `false` where openssl cannot make one.
pub fn certificate(folder: &Path, name: &str) -> bool {
    let file = |kind: &str| folder.join(format!("{name}.{kind}"));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"])
        .args([
            "-days",
            "2",
            "-subj",
            &format!("/CN={name}"),
            "-addext",
            "basicConstraints=critical,CA:FALSE",
        ])
        .args(["-addext", "subjectAltName=IP:127.0.0.1", "-keyout"])
        .arg(file("key"))
        .arg("-out")
        .arg(file("pem"))
        .output();
    made.is_ok_and(|made| made.status.success())
}

/// `kgfleet coordinator` at this Redis, with the authorities of this file as the system's.
fn coordinator(data: &Data, url: &str, system: &Path, more: &[&str]) -> Command {
    let arguments = ["coordinator", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--queue", url];
    let mut command = data.command(&[&arguments[..], more].concat());
    command.env("SSL_CERT_FILE", system).env_remove("SSL_CERT_DIR");
    command
}

#[test]
fn redis_is_trusted_by_system_roots_and_asks_for_a_certificate() {
    let data = Data::new();
    let file = |name: &str| data.path().join(name);
    if !["redis", "fleet", "stranger"].iter().all(|name| certificate(data.path(), name)) {
        crate::harness::skip("openssl cannot make a certificate here");
        return;
    }
    let text = |name: &str| file(name).to_str().unwrap().to_owned();
    let port = free_port().to_string();
    let (certificate, key, clients) = (text("redis.pem"), text("redis.key"), text("fleet.pem"));
    let tls = ["--tls-port", &port, "--tls-cert-file", &certificate, "--tls-key-file", &key];
    let rest = ["--tls-auth-clients", "no", "--tls-ca-cert-file", &clients, "--save", ""];
    let Some(redis) = RedisServer::start_with(&[&tls[..], &rest[..]].concat()) else { return };
    let url = format!("rediss://127.0.0.1:{port}/0");
    let serves = |more: &[&str]| {
        Running::start(&mut coordinator(&data, &url, &file("redis.pem"), more)).until_it_says("serving on");
    };
    let refused = |system: &str, more: &[&str]| {
        crate::harness::process::finish(&mut coordinator(&data, &url, &file(system), more))
            .expect(INFRASTRUCTURE)
    };

    serves(&[]);
    refused("stranger.pem", &[]).says(&["certificate"]);

    // From now on Redis wants to know who is there.
    redis.say::<()>("CONFIG SET tls-auth-clients yes");
    refused("redis.pem", &[]);
    let shown = |name: &str| {
        [
            format!("--queue-cert={}", text(&format!("{name}.pem"))),
            format!("--queue-key={}", text(&format!("{name}.key"))),
        ]
    };
    let fleet = shown("fleet");
    serves(&[&fleet[0], &fleet[1]]);
    let stranger = shown("stranger");
    refused("redis.pem", &[&stranger[0], &stranger[1]]);
}
