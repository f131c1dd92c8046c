//! A headless Chromium, told what to do over two pipes, for tests of pages.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use base64::Engine as _;
use serde_json::{Value, json};

/// Longer than anything takes on a busy machine; passed only where the browser is stuck.
const PATIENCE: Duration = Duration::from_secs(120);

/// A browser with one page.
pub struct Browser {
    child: Child,
    commands: File,
    messages: Receiver<Value>,
    events: VecDeque<Value>,
    session: Option<String>,
    sent: u64,
    _home: tempfile::TempDir,
}

impl Browser {
    /// `None`, said aloud, without Chromium.
    pub fn start() -> Option<Self> {
        let found = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| {
            Command::new(name)
                .arg("--version")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|s| s.success())
        });
        let Some(program) = found else {
            crate::skip("there is no chromium");
            return None;
        };
        let home = tempfile::tempdir().unwrap();
        let pipe = |name: &str| {
            let path = home.path().join(name);
            assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
            path
        };
        let (to, from) = (pipe("to"), pipe("from"));
        // Opened both ways, so that neither waits for the other side.
        let open = |path: &PathBuf| OpenOptions::new().read(true).write(true).open(path).unwrap();
        let (commands, mut answers) = (open(&to), open(&from));
        let child = Command::new("sh")
            .args(["-c", "exec \"$@\" 3<\"$TO\" 4>\"$FROM\"", "sh", program])
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
            ])
            .arg("--remote-debugging-pipe")
            .arg(format!("--user-data-dir={}", home.path().join("profile").display()))
            .arg("about:blank")
            .env("TO", &to)
            .env("FROM", &from)
            .env("HOME", home.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (sender, messages) = channel();
        // Ends with the test's process: a pipe that is open both ways has no end.
        std::thread::spawn(move || {
            let (mut open, mut piece) = (Vec::new(), vec![0; 64 << 10]);
            while let Ok(read) = answers.read(&mut piece) {
                open.extend_from_slice(&piece[..read]);
                while let Some(end) = open.iter().position(|byte| *byte == 0) {
                    let message: Vec<u8> = open.drain(..=end).collect();
                    if sender.send(serde_json::from_slice(&message[..end]).unwrap()).is_err() {
                        return;
                    }
                }
            }
        });
        let mut browser =
            Self { child, commands, messages, events: VecDeque::new(), session: None, sent: 0, _home: home };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}))["targetId"].clone();
        let session = browser.call("Target.attachToTarget", json!({"targetId": target, "flatten": true}));
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        browser.call("Page.enable", json!({}));
        browser.call("Log.enable", json!({}));
        browser.call("Runtime.enable", json!({}));
        Some(browser)
    }

    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.sent += 1;
        let mut message = json!({"id": self.sent, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        let mut bytes = serde_json::to_vec(&message).unwrap();
        bytes.push(0);
        self.commands.write_all(&bytes).unwrap();
        loop {
            let message =
                self.messages.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("{method} has no answer"));
            if message["id"] == self.sent {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].clone();
            }
            self.events.push_back(message);
        }
    }

    /// The value of an expression, awaited.
    #[track_caller]
    pub fn value(&mut self, expression: &str) -> Value {
        let parameters = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let result = self.call("Runtime.evaluate", parameters);
        assert!(result["exceptionDetails"].is_null(), "{expression}: {result}");
        result["result"]["value"].clone()
    }

    /// Waits until an expression holds, whenever something on the page changes.
    #[track_caller]
    pub fn until(&mut self, expression: &str) {
        let milliseconds = PATIENCE.as_millis() / 2;
        let wait = format!(
            "new Promise((resolve, reject) => {{ \
               const check = () => {{ if ({expression}) resolve(true); }}; \
               new MutationObserver(check).observe(document, \
                 {{subtree: true, childList: true, attributes: true, characterData: true}}); \
               setTimeout(() => reject(new Error(document.body.innerText)), {milliseconds}); check(); }})"
        );
        self.value(&wait);
    }

    /// Opens an address.
    pub fn open(&mut self, url: &str) {
        self.loads(|browser| {
            browser.call("Page.navigate", json!({"url": url}));
        });
    }

    /// Does something that leads to another page.
    #[track_caller]
    pub fn follow(&mut self, expression: &str) {
        // Not awaited: its page goes away.
        self.loads(|browser| {
            let result = browser.call("Runtime.evaluate", json!({"expression": expression}));
            assert!(result["exceptionDetails"].is_null(), "{expression}: {result}");
        });
    }

    fn loads(&mut self, act: impl FnOnce(&mut Self)) {
        self.events.retain(|event| event["method"] != "Page.loadEventFired");
        act(self);
        let deadline = Instant::now() + PATIENCE;
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let left = deadline.saturating_duration_since(Instant::now());
            self.events.push_back(self.messages.recv_timeout(left).expect("the page loads"));
        }
    }

    /// A page of this size, light or dark.
    pub fn set_appearance(&mut self, width: u32, dark: bool) {
        let metrics = json!({"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 600});
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        let scheme = if dark { "dark" } else { "light" };
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call("Emulation.setEmulatedMedia", features);
    }

    /// Paper of this width, whose reader prefers dark screens.
    pub fn set_print(&mut self, width: u32) {
        self.set_appearance(width, true);
        let features = json!([{"name": "prefers-color-scheme", "value": "dark"}]);
        self.call("Emulation.setEmulatedMedia", json!({"media": "print", "features": features}));
    }

    /// Presses a key: a letter, or one with a name, such as `Enter`, `Tab` or `ArrowDown`.
    pub fn press(&mut self, key: &str) {
        for kind in ["rawKeyDown", "char", "keyUp"] {
            let (code, text) = match key {
                "Enter" => (13, "\r"),
                "Tab" => (9, ""),
                "Escape" => (27, ""),
                "ArrowLeft" => (37, ""),
                "ArrowUp" => (38, ""),
                "ArrowRight" => (39, ""),
                "ArrowDown" => (40, ""),
                letter => (u32::from(letter.as_bytes()[0].to_ascii_uppercase()), letter),
            };
            if kind != "char" || !text.is_empty() {
                let event = json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text});
                self.call("Input.dispatchKeyEvent", event);
            }
        }
    }

    /// What the accessibility checker [`axe`] finds on the page that is open.
    #[track_caller]
    pub fn barriers(&mut self, axe: &str) -> Value {
        self.value(&format!("{axe}; true"));
        self.value(
            "axe.run().then((found) => found.violations.map((one) => \
             one.id + ': ' + one.nodes.map((node) => node.html).join(' | ')))",
        )
    }

    /// Writes a picture of the whole page, as PNG, into the folder that `KGFLEET_PICTURES` names, if it names one.
    pub fn keep_picture(&mut self, name: &str) {
        let Some(folder) = std::env::var_os("KGFLEET_PICTURES").map(PathBuf::from) else { return };
        let wanted = json!({"format": "png", "captureBeyondViewport": true});
        let taken = self.call("Page.captureScreenshot", wanted);
        let picture = base64::engine::general_purpose::STANDARD.decode(taken["data"].as_str().unwrap());
        std::fs::write(folder.join(format!("{name}.png")), picture.unwrap()).unwrap();
    }

    /// What the browser complained about, and windows that a page opened.
    pub fn complaints(&self) -> Vec<String> {
        let told = self.events.iter().filter(|event| match event["method"].as_str().unwrap_or_default() {
            "Page.javascriptDialogOpening" | "Runtime.exceptionThrown" => true,
            "Log.entryAdded" => event["params"]["entry"]["level"] == "error",
            _ => false,
        });
        told.map(Value::to_string).collect()
    }
}

/// The accessibility checker, where it is installed; `None`, said aloud, where it is not.
pub fn axe() -> Option<String> {
    let named = std::env::var_os("KGFLEET_AXE").map(PathBuf::from);
    let beside =
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/axe/node_modules/axe-core/axe.min.js");
    let found = std::fs::read_to_string(named.unwrap_or_else(beside)).ok();
    if found.is_none() {
        crate::skip("axe-core is not installed: tests/setup does it, or KGFLEET_AXE names axe.min.js");
    }
    found
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
