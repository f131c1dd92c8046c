//! A server that takes whatever is posted to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Path and body.
pub type Post = (String, Vec<u8>);

/// Takes posts until the test ends.
#[derive(Clone)]
pub struct Receiver {
    address: SocketAddr,
    posts: Arc<Mutex<Vec<Post>>>,
}

impl Receiver {
    /// On a free port of the loopback interface. Refuses the first `refused` posts with 503.
    pub fn start(refused: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let posts = Arc::new(Mutex::new(Vec::new()));
        let (taken, left) = (Arc::clone(&posts), Arc::new(Mutex::new(refused)));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (taken, left) = (Arc::clone(&taken), Arc::clone(&left));
                std::thread::spawn(move || take(stream, &taken, &left));
            }
        });
        Self { address, posts }
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Paths and bodies of what it took so far.
    pub fn posts(&self) -> Vec<Post> {
        self.posts.lock().unwrap().clone()
    }
}

/// Takes the posts of one connection, until the client closes it.
fn take(stream: TcpStream, posts: &Mutex<Vec<Post>>, refused: &Mutex<usize>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut request, mut length) = (String::new(), 0);
        reader.read_line(&mut request).ok().filter(|length| *length > 0)?;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            match line.trim().to_ascii_lowercase().strip_prefix("content-length:") {
                Some(value) => length = value.trim().parse().ok()?,
                None if line.trim().is_empty() => break,
                None => {}
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
                let path = request.split(' ').nth(1)?.to_owned();
                posts.lock().unwrap().push((path, body));
                "200 OK"
            }
        };
        reader
            .get_mut()
            .write_all(format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\n{{}}").as_bytes())
            .ok()?;
    }
}
