//! Starts what a pod's specification says, as processes of this machine.
//!
//! A pod has an address of the loopback network instead of a network of its own, and folders of a test instead of
//! mounts: both are put into the arguments where the manifest names `0.0.0.0`, `127.0.0.1` or a mounted path. Names of
//! Services stand for the addresses of their pods. In place of `vllm` the simulator is started, as the model that the
//! arguments name. Everything else is done as the manifest says.

use std::fs::File;

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::manifests::texts;
use crate::harness::http;
use crate::harness::process::{Finished, finish, kgfleet, shield};

/// Time between two probes.
const PROBE_EVERY: Duration = Duration::from_millis(50);

/// The objects of a release, and the folder that stands for its volumes.
pub struct Namespace {
    pub folder: PathBuf,
    pub objects: Vec<Value>,
    /// Names of Services and what they stand for.
    pub names: Vec<(String, String)>,
}

/// A pod that runs: its sidecars first.
pub struct Pod {
    pub name: String,
    pub address: String,
    spec: Value,
    processes: Vec<Child>,
}

impl Namespace {
    /// The object of this kind and name.
    pub fn object(&self, kind: &str, name: &str) -> &Value {
        let found =
            self.objects.iter().find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
        found.unwrap_or_else(|| panic!("the chart makes no {kind} {name}"))
    }

    fn secret(&self, name: &Value, key: &Value) -> String {
        let secret = self.object("Secret", name.as_str().unwrap());
        secret["stringData"][key.as_str().unwrap()]
            .as_str()
            .unwrap_or_else(|| panic!("no {key} in {name}"))
            .to_owned()
    }

    /// The folder that a volume of a pod is.
    fn volume(&self, pod: &str, volume: &Value) -> PathBuf {
        if let Some(claim) = volume["persistentVolumeClaim"]["claimName"].as_str() {
            self.object("PersistentVolumeClaim", claim);
            return self.claim(claim);
        }
        let folder = self.folder.join(pod).join(volume["name"].as_str().unwrap());
        std::fs::create_dir_all(&folder).unwrap();
        if let Some(name) = volume["secret"].get("secretName") {
            let secret = self.object("Secret", name.as_str().unwrap());
            let items: Vec<(String, String)> = match volume["secret"]["items"].as_array() {
                Some(items) => {
                    let text = |value: &Value| value.as_str().unwrap().to_owned();
                    items.iter().map(|item| (text(&item["key"]), text(&item["path"]))).collect()
                }
                None => {
                    let keys = secret["stringData"].as_object().unwrap().keys();
                    keys.map(|key| (key.clone(), key.clone())).collect()
                }
            };
            for (key, path) in items {
                std::fs::write(folder.join(path), self.secret(name, &Value::from(key))).unwrap();
            }
        } else if let Some(name) = volume["configMap"]["name"].as_str() {
            for (key, text) in self.object("ConfigMap", name)["data"].as_object().unwrap() {
                std::fs::write(folder.join(key), text.as_str().unwrap()).unwrap();
            }
        } else {
            assert!(volume.get("emptyDir").is_some(), "a volume of an unknown kind: {volume}");
        }
        folder
    }

    /// The folder of a claim.
    pub fn claim(&self, claim: &str) -> PathBuf {
        let folder = self.folder.join("claims").join(claim);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// The command of a container of a pod.
    fn command(&self, pod: &str, address: &str, spec: &Value, container: &Value) -> Command {
        let mut paths: Vec<(String, PathBuf)> = Vec::new();
        for mount in container["volumeMounts"].as_array().into_iter().flatten() {
            let mut volumes = spec["volumes"].as_array().unwrap().iter();
            let volume = volumes.find(|volume| volume["name"] == mount["name"]).unwrap();
            paths.push((mount["mountPath"].as_str().unwrap().to_owned(), self.volume(pod, volume)));
        }
        let here = |text: String| self.here(&text, address, &paths);
        let line = [texts(&container["command"]), texts(&container["args"])].concat();
        let mut command = match line[0].as_str() {
            "kgfleet" => kgfleet(),
            "vllm" => {
                let option =
                    |name: &str| line[line.iter().position(|text| text == name).unwrap() + 1].clone();
                let mut command = kgfleet();
                let listen = here(format!("{}:{}", option("--host"), option("--port")));
                command.args(["simulate", "--profile", "l40s", "--listen", &listen, "--model"]);
                command.arg(option("--served-model-name"));
                return command;
            }
            program => {
                let mut command = Command::new(program);
                shield(&mut command);
                command
            }
        };
        command.args(line[1..].iter().cloned().map(here));
        for variable in container["env"].as_array().into_iter().flatten() {
            let from = &variable["valueFrom"];
            let value = match (variable["value"].as_str(), from["fieldRef"]["fieldPath"].as_str()) {
                (Some(value), _) => value.to_owned(),
                (None, Some("metadata.name")) => pod.to_owned(),
                (None, Some("spec.nodeName")) => format!("node-of-{pod}"),
                (None, _) => self.secret(&from["secretKeyRef"]["name"], &from["secretKeyRef"]["key"]),
            };
            command.env(variable["name"].as_str().unwrap(), here(value));
        }
        command
    }

    /// An argument as it reads on this machine.
    fn here(&self, text: &str, address: &str, paths: &[(String, PathBuf)]) -> String {
        for (path, folder) in paths {
            let below = text.strip_prefix(path.as_str());
            if let Some(rest) = below.filter(|rest| rest.is_empty() || rest.starts_with('/')) {
                return format!("{}{rest}", folder.display());
            }
        }
        let mut text =
            text.replace("0.0.0.0:", &format!("{address}:")).replace("127.0.0.1:", &format!("{address}:"));
        if text == "0.0.0.0" {
            text = address.to_owned();
        }
        for (name, stands_for) in &self.names {
            text = text.replace(name, stands_for);
        }
        text
    }

    /// Runs the only container of a pod to its end, as a Job does.
    pub fn run(&self, name: &str, spec: &Value) -> Finished {
        let container = &spec["containers"][0];
        finish(&mut self.command(name, "127.0.0.1", spec, container))
    }

    /// Starts a pod, and waits until it is ready.
    pub fn start(&self, name: &str, address: &str, spec: &Value) -> Pod {
        let mut pod = Pod {
            name: name.to_owned(),
            address: address.to_owned(),
            spec: spec.clone(),
            processes: Vec::new(),
        };
        for list in ["initContainers", "containers"] {
            for container in spec[list].as_array().into_iter().flatten() {
                let log = self.folder.join(format!("{name}.{}.log", container["name"].as_str().unwrap()));
                let mut command = self.command(name, address, spec, container);
                command.stdout(Stdio::null()).stderr(File::create(&log).unwrap());
                pod.processes.push(command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}")));
                // A sidecar must have started before the next container is.
                pod.probe(container, "startupProbe", &log);
                if list == "containers" {
                    pod.probe(container, "readinessProbe", &log);
                }
            }
        }
        pod
    }
}

impl Pod {
    /// Waits until a probe succeeds. Fails if the container ends.
    fn probe(&mut self, container: &Value, probe: &str, log: &Path) {
        let probe = &container[probe];
        let port = |name: &Value| -> u64 {
            let ports = container["ports"].as_array().unwrap();
            ports.iter().find(|port| port["name"] == *name).unwrap()["containerPort"].as_u64().unwrap()
        };
        loop {
            let passed = match (probe.get("httpGet"), probe.get("tcpSocket")) {
                (Some(get), _) => {
                    let path = get["path"].as_str().unwrap();
                    get_text(&format!("{}:{}", self.address, port(&get["port"])), path).is_some()
                }
                (None, Some(socket)) => {
                    TcpStream::connect(format!("{}:{}", self.address, port(&socket["port"]))).is_ok()
                }
                (None, None) => panic!("a probe of an unknown kind: {probe}"),
            };
            if passed {
                return;
            }
            let ended = self.processes.last_mut().unwrap().try_wait().unwrap();
            let said = || std::fs::read_to_string(log).unwrap_or_default();
            assert!(
                ended.is_none(),
                "{} of {} ended with {ended:?}:\n{}",
                container["name"],
                self.name,
                said()
            );
            std::thread::sleep(PROBE_EVERY);
        }
    }

    /// Takes the pod away as Kubernetes does: preStop, SIGTERM, and sidecars after the containers. All must end well.
    pub fn stop(mut self) {
        let containers = self.spec["containers"].as_array().unwrap().clone();
        let sidecars = self.processes.len() - containers.len();
        for container in &containers {
            if let Some(seconds) = container["lifecycle"]["preStop"]["sleep"]["seconds"].as_u64() {
                std::thread::sleep(Duration::from_secs(seconds));
            }
        }
        let mut main = self.processes.split_off(sidecars);
        for process in main.iter().map(Pid::from_child) {
            kill_process(process, Signal::TERM).unwrap();
        }
        for process in &mut main {
            let status = process.wait().unwrap();
            assert!(status.success(), "{} ended with {status}", self.name);
        }
        for process in self.processes.iter().map(Pid::from_child) {
            kill_process(process, Signal::TERM).unwrap();
        }
    }

    /// Cuts the pod off for good: nothing ends well, and nothing of it comes back.
    pub fn cut_off(mut self) {
        for process in &mut self.processes {
            process.kill().unwrap();
        }
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        for process in &mut self.processes {
            // It may have ended already.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// The body of a page; none unless the status is 200.
fn get_text(address: &str, path: &str) -> Option<String> {
    http::get(address, path).filter(|(status, _)| *status == 200).map(|(_, body)| body)
}
