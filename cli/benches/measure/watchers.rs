//! A scraper, to measure what it costs a cluster.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Reads `/metrics` of these ports every second until dropped.
pub struct Scraper {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Scraper {
    pub fn start(ports: Vec<u16>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                for port in &ports {
                    // Workers are still starting, or ending.
                    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", *port)) else { continue };
                    let mut page = String::new();
                    let asked = stream.write_all(b"GET /metrics HTTP/1.0\r\nhost: bench\r\n\r\n");
                    let _ = asked.and_then(|()| stream.read_to_string(&mut page));
                }
                std::thread::sleep(Duration::from_secs(1));
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Scraper {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Two-sided 95 % points of Student's distribution, for 1 to 15 degrees of freedom.
const STUDENT: [f64; 15] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
];

/// Mean of ratios, which are at least two, and the ends of its 95 % interval. Of their logarithms, so that a ratio and its
/// inverse count the same.
pub fn ratio(ratios: &[f64]) -> [f64; 3] {
    let count = ratios.len() as f64;
    let mean = ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / count;
    let variance = ratios.iter().map(|ratio| (ratio.ln() - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let freedom = (ratios.len() - 1).min(STUDENT.len());
    let half = STUDENT[freedom - 1] * (variance / count).sqrt();
    [mean, mean - half, mean + half].map(f64::exp)
}
