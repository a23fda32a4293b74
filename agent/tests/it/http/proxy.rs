//! A proxy that loses requests and answers, and counts what was sent.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use super::api::underwent;
use crate::support::eventually;

/// What happens to a POST. Everything else passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    Pass,
    /// It reaches nobody, and the connection ends.
    Swallow,
    /// It is answered here.
    Answer(u16),
    /// The API answers, and the connection ends before the answer came.
    LoseAnswer,
    /// The same, once the change took effect.
    LoseAnswerAfterEffect,
}

#[derive(Debug)]
struct State {
    upstream: SocketAddr,
    data: PathBuf,
    manners: VecDeque<Manner>,
    posts: Vec<String>,
}

/// One request for each connection.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl Proxy {
    pub(crate) fn start(upstream: SocketAddr, data: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State { upstream, data, manners: VecDeque::new(), posts: Vec::new() }));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                // A client that went away ends its own connection only.
                std::thread::spawn(move || serve(client, &shared));
            }
        });
        Self { address, state }
    }

    /// Leads to another API from now on.
    pub(crate) fn lead_to(&self, upstream: SocketAddr, data: PathBuf) {
        let mut state = self.state.lock().unwrap();
        (state.upstream, state.data) = (upstream, data);
    }

    /// What happens to the next POSTs, one after the other; those behind pass.
    pub(crate) fn next(&self, manners: &[Manner]) {
        self.state.lock().unwrap().manners = manners.iter().copied().collect();
    }

    /// The paths of all POSTs, whatever became of them.
    pub(crate) fn posts(&self) -> Vec<String> {
        self.state.lock().unwrap().posts.clone()
    }
}

fn serve(mut client: TcpStream, state: &Mutex<State>) -> std::io::Result<()> {
    let request = message(&mut client)?;
    let line = String::from_utf8_lossy(&request).lines().next().unwrap_or_default().to_owned();
    let (manner, upstream, data) = {
        let mut state = state.lock().unwrap();
        let is_post = line.starts_with("POST ");
        if is_post {
            state.posts.push(line.split(' ').nth(1).unwrap_or_default().to_owned());
        }
        let manner = if is_post { state.manners.pop_front() } else { None };
        (manner.unwrap_or(Manner::Pass), state.upstream, state.data.clone())
    };
    match manner {
        Manner::Pass => client.write_all(&forward(upstream, &request)?),
        Manner::Swallow => Ok(()),
        Manner::Answer(status) => client
            .write_all(format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").as_bytes()),
        Manner::LoseAnswer => forward(upstream, &request).map(drop),
        Manner::LoseAnswerAfterEffect => {
            let before = underwent(&data).len();
            forward(upstream, &request)?;
            eventually("the change took effect", || (underwent(&data).len() > before).then_some(()));
            Ok(())
        }
    }
}

pub(super) fn forward(upstream: SocketAddr, request: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut api = TcpStream::connect(upstream)?;
    api.write_all(request)?;
    message(&mut api)
}

/// Head and body of one message, which tells its length.
pub(super) fn message(stream: &mut impl Read) -> std::io::Result<Vec<u8>> {
    let mut reader = BufReader::new(stream);
    let (mut message, mut length) = (Vec::new(), 0);
    loop {
        let begin = message.len();
        if reader.read_until(b'\n', &mut message)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let line = String::from_utf8_lossy(&message[begin..]).to_ascii_lowercase();
        if let Some(text) = line.strip_prefix("content-length:") {
            length = text.trim().parse().map_err(|_| std::io::ErrorKind::InvalidData)?;
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let head = message.len();
    message.resize(head + length, 0);
    reader.read_exact(&mut message[head..])?;
    Ok(message)
}
