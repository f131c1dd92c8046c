//! A pseudo-terminal for one test, whose screen can be read and resized and which takes keys.

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

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
    parser: vt100::Parser,
    ended: bool,
}

fn nonzero(size: u16) -> NonZeroU16 {
    NonZeroU16::new(size).unwrap()
}

fn size(columns: u16, rows: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

impl Terminal {
    /// Starts a command on a terminal of this size.
    pub fn start(command: &mut Command, columns: u16, rows: u16) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        tcsetwinsize(&master, size(columns, rows)).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let open = || {
            let flags = i32::try_from(OFlags::NOCTTY.bits()).unwrap();
            File::options().read(true).write(true).custom_flags(flags).open(&name).unwrap()
        };
        let child = command.stdin(open()).stdout(open()).stderr(open()).spawn().unwrap();
        let parser = vt100::Parser::new(nonzero(rows), nonzero(columns), 0);
        let state = State { parser, ended: false };
        let shown = Arc::new(Shown { state: Mutex::new(state), changed: Condvar::new() });
        let keys = File::from(master);
        let (mut output, reads) = (keys.try_clone().unwrap(), Arc::clone(&shown));
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // A terminal that everybody has left is an error.
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                reads.state.lock().unwrap().parser.process(&bytes[..count]);
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
            let lines = lines(&state.parser);
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

    /// Another size, as a window manager gives it.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        // As a terminal does: what it shows after that is for the process to say.
        self.shown.state.lock().unwrap().parser.set_size(nonzero(rows), nonzero(columns));
        tcsetwinsize(&self.keys, size(columns, rows)).unwrap();
        // The kernel tells the session that the terminal belongs to; this one has none.
        self.signal(Signal::WINCH);
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Whether the alternate screen is shown.
    pub fn is_alternate(&self) -> bool {
        self.shown.state.lock().unwrap().parser.screen().alternate_screen()
    }

    /// Whether what is typed is shown, as it is where nobody changed that.
    pub fn echoes(&self) -> bool {
        tcgetattr(self.line.as_ref().unwrap()).unwrap().local_modes.contains(LocalModes::ECHO)
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
        let shown = lines(&self.shown.state.lock().unwrap().parser);
        (status, shown)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines(parser: &vt100::Parser) -> Vec<String> {
    let screen = parser.screen();
    let (_, columns) = screen.size();
    screen.rows(0, columns.get()).map(|row| row.trim_end().to_owned()).collect()
}
