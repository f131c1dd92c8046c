//! A pseudo-terminal for one test, whose lines can be read and which takes keys.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// A process on a terminal. One that is dropped is killed.
pub struct Terminal {
    child: Child,
    keys: File,
    shown: Arc<Shown>,
    // Open until everything is wanted, so that what the process wrote last can be read.
    line: Option<File>,
    reader: Option<JoinHandle<()>>,
}

struct Shown {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    written: Vec<u8>,
    ended: bool,
}

impl Terminal {
    /// Starts a command on a terminal of this size.
    pub fn start(command: &mut Command, columns: u16, rows: u16) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, size).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let open = || {
            let flags = i32::try_from(OFlags::NOCTTY.bits()).unwrap();
            File::options().read(true).write(true).custom_flags(flags).open(&name).unwrap()
        };
        let child = command.stdin(open()).stdout(open()).stderr(open()).spawn().unwrap();
        // The command keeps its ends of the line open as long as it lives.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let state = State { written: Vec::new(), ended: false };
        let shown = Arc::new(Shown { state: Mutex::new(state), changed: Condvar::new() });
        let keys = File::from(master);
        let (mut output, reads) = (keys.try_clone().unwrap(), Arc::clone(&shown));
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // A terminal that everybody has left is an error.
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                reads.state.lock().unwrap().written.extend(&bytes[..count]);
                reads.changed.notify_all();
            }
        });
        Self { child, keys, shown, line: Some(open()), reader: Some(reader) }
    }

    /// Waits until the screen is as wanted; its lines then. Fails when the process ends before.
    #[track_caller]
    pub fn until(&mut self, wanted: impl Fn(&[String]) -> bool) -> Vec<String> {
        let mut state = self.shown.state.lock().unwrap();
        loop {
            let lines = lines(&state.written);
            if wanted(&lines) {
                return lines;
            }
            assert!(!state.ended, "the process ended before the screen was as wanted:\n{}", lines.join("\n"));
            state.ended = self.child.try_wait().unwrap().is_some();
            let wait = std::time::Duration::from_millis(200);
            state = self.shown.changed.wait_timeout(state, wait).unwrap().0;
        }
    }

    /// Types.
    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for the end.
    pub fn finish(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    /// Waits for the end, and until all that was written is on the screen; its lines then.
    pub fn finish_whole(mut self) -> (ExitStatus, Vec<String>) {
        let status = self.finish();
        // Reading ends behind the last byte when nobody has the line any more.
        self.line = None;
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        let shown = lines(&self.shown.state.lock().unwrap().written);
        (status, shown)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The lines that were written, as a person sees them in the end. Of what steers a terminal, only going back in a line is known;
/// the rest is left out.
fn lines(written: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(written);
    let (mut lines, mut column) = (vec![Vec::new()], 0_usize);
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        let line: &mut Vec<char> = lines.last_mut().unwrap();
        match c {
            '\n' => lines.push(Vec::new()),
            '\r' => column = 0,
            '\u{8}' => column = column.saturating_sub(1),
            // A sequence such as `ESC [ 1 m` ends with a letter.
            '\u{1b}' => drop(characters.find(char::is_ascii_alphabetic)),
            c if c.is_control() => {}
            c => {
                line.resize(line.len().max(column + 1), ' ');
                line[column] = c;
                column += 1;
            }
        }
        if c == '\n' {
            column = 0;
        }
    }
    lines.into_iter().map(|line| String::from_iter(line).trim_end().to_owned()).collect()
}
