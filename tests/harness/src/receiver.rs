//! A server that stores every request.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Longest wait for what is to be sent.
const WAIT_MAX: Duration = Duration::from_secs(120);

/// Path and body.
pub type Post = (String, Vec<u8>);

/// Takes requests until the test ends.
#[derive(Clone)]
pub struct Receiver {
    address: SocketAddr,
    taken: Arc<Taken>,
}

/// A request that was taken.
#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    /// Method and path.
    pub line: String,
    /// Its headers, a line each.
    pub headers: String,
    pub body: Vec<u8>,
}

#[derive(Default)]
struct Taken {
    requests: Mutex<Vec<ReceivedRequest>>,
    more: Condvar,
}

impl Receiver {
    /// On a free port of the loopback interface. Refuses the first `refused` requests with 503.
    pub fn start(refused: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let all = Arc::new(Taken::default());
        let (taken, left) = (Arc::clone(&all), Arc::new(Mutex::new(refused)));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (taken, left) = (Arc::clone(&taken), Arc::clone(&left));
                std::thread::spawn(move || take(stream, &taken, &left));
            }
        });
        Self { address, taken: all }
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Paths and bodies of what it took so far.
    pub fn posts(&self) -> Vec<Post> {
        let taken = self.taken.requests.lock().unwrap();
        let post = |request: &ReceivedRequest| {
            Some((request.line.split(' ').nth(1)?.to_owned(), request.body.clone()))
        };
        taken.iter().filter_map(post).collect()
    }

    /// Waits until what was taken is so; all of it.
    #[track_caller]
    pub fn until(&self, is_so: impl Fn(&[ReceivedRequest]) -> bool) -> Vec<ReceivedRequest> {
        let taken = self.taken.requests.lock().unwrap();
        let (taken, late) =
            self.taken.more.wait_timeout_while(taken, WAIT_MAX, |taken| !is_so(taken)).unwrap();
        assert!(!late.timed_out(), "what is waited for does not come: {taken:#?}");
        taken.clone()
    }
}

/// Takes the requests of one connection, until the client closes it.
fn take(stream: TcpStream, taken: &Taken, refused: &Mutex<usize>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut request, mut headers, mut length) = (String::new(), String::new(), 0);
        reader.read_line(&mut request).ok().filter(|length| *length > 0)?;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            match line.trim().to_ascii_lowercase().strip_prefix("content-length:") {
                Some(value) => length = value.trim().parse().ok()?,
                None if line.trim().is_empty() => break,
                None => headers.push_str(&line),
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let status = {
            let mut left = refused.lock().unwrap();
            if *left > 0 {
                *left -= 1;
                "503 Service Unavailable"
            } else {
                taken.requests.lock().unwrap().push(ReceivedRequest { line: request, headers, body });
                taken.more.notify_all();
                "200 OK"
            }
        };
        reader
            .get_mut()
            .write_all(format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\n{{}}").as_bytes())
            .ok()?;
    }
}
