//! A line to the server that breaks when the answer to a change is on it: the server has done it, and nobody hears so.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Its port, for a change that is made by that function of the server. One connection goes through it.
pub(crate) fn line_to(server: u16, change: &'static str) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (client, _) = listener.accept().unwrap();
        let server = TcpStream::connect(("127.0.0.1", server)).unwrap();
        let is_asked = Arc::new(AtomicBool::new(false));
        let (from, to, noted) = (client.try_clone().unwrap(), server.try_clone().unwrap(), Arc::clone(&is_asked));
        std::thread::spawn(move || questions(from, to, change.as_bytes(), &noted));
        answers(server, client, &is_asked);
    });
    port
}

fn questions(mut from: TcpStream, mut to: TcpStream, change: &[u8], is_asked: &AtomicBool) {
    let mut buffer = [0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        if buffer[..length].windows(change.len()).any(|part| part == change) {
            is_asked.store(true, Ordering::SeqCst);
        }
        if to.write_all(&buffer[..length]).is_err() {
            return;
        }
    }
}

/// What the server says to the change comes when it has committed.
fn answers(mut from: TcpStream, mut to: TcpStream, is_asked: &AtomicBool) {
    let mut buffer = [0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        if is_asked.load(Ordering::SeqCst) || to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _ = (to.shutdown(Shutdown::Both), from.shutdown(Shutdown::Both));
}
