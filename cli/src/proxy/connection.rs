//! One connection through the proxy.
//!
//! Each direction is a reader and a writer with a bounded queue between them, so that a delay holds back every byte
//! alike instead of adding up. Faults are looked up at the moment they matter: loss when bytes are read and written, delay
//! and stall before they are written.

use std::future::pending;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::state::{Recycle, State, Way};

/// Pieces that wait in one direction, of at most [`PIECE`] bytes each.
const QUEUE: usize = 64;
const PIECE: usize = 16 * 1024;

/// Why a connection is torn down rather than ended: an end was reset, the upstream refused, or the proxy wants it.
struct Broken;

struct Piece {
    read_at: Instant,
    what: What,
}

enum What {
    Bytes(Vec<u8>),
    /// The sender has ended its direction.
    End,
    /// The sender has reset the connection.
    Reset,
}

/// Carries a connection until both directions ended or it broke. Broken ones are reset on both sides.
pub(super) async fn carry(mut client: TcpStream, control: watch::Receiver<State>) {
    let begun = *control.borrow();
    if begun.is_dark(Way::Up) && begun.is_dark(Way::Down) {
        swallow(&mut client, control).await;
        return reset(&client);
    }
    let Ok(mut server) = TcpStream::connect(begun.upstream).await else { return reset(&client) };
    if both_ways(&mut client, &mut server, &begun, control).await.is_err() {
        reset(&client);
        reset(&server);
    }
}

/// A connection that was made into the dark: nobody at the other end ever hears of it.
async fn swallow(client: &mut TcpStream, mut control: watch::Receiver<State>) {
    let light = control.wait_for(|state| !(state.is_dark(Way::Up) && state.is_dark(Way::Down)));
    let read = async {
        let mut nothing = [0; PIECE];
        while client.read(&mut nothing).await.is_ok_and(|length| length > 0) {}
    };
    tokio::select! {
        _ = light => {}
        () = read => {}
    }
}

/// Makes the coming drop a reset instead of an orderly end.
fn reset(stream: &TcpStream) {
    // Fails only on a socket that is already gone.
    let _ = stream.set_zero_linger();
}

async fn both_ways(
    client: &mut TcpStream,
    server: &mut TcpStream,
    begun: &State,
    control: watch::Receiver<State>,
) -> Result<(), Broken> {
    // Fails only on a socket that is already gone.
    let _ = client.set_nodelay(true).and_then(|()| server.set_nodelay(true));
    let lost = [AtomicBool::new(false), AtomicBool::new(false)];
    let heard = Mutex::new(Instant::now());
    let (client_read, client_write) = client.split();
    let (server_read, server_write) = server.split();
    let up = Direction { way: Way::Up, begun, control: control.clone(), lost: &lost[0], heard: &heard };
    let down = Direction { way: Way::Down, begun, control: control.clone(), lost: &lost[1], heard: &heard };
    let both = async { tokio::try_join!(up.carry(client_read, server_write), down.carry(server_read, client_write)) };
    tokio::select! {
        biased;
        broken = until_reset(begun, &lost, control.clone()) => Err(broken),
        () = until_recycled(&heard, control) => Ok(()),
        ended = both => ended.map(|_| ()),
    }
}

async fn until_reset(begun: &State, lost: &[AtomicBool; 2], mut control: watch::Receiver<State>) -> Broken {
    loop {
        let state = *control.borrow_and_update();
        let hole = |way, lost: &AtomicBool| lost.load(Ordering::Relaxed) && !state.is_dark(way);
        let wanted = state.is_cut() || state.resets != begun.resets;
        if wanted || hole(Way::Up, &lost[0]) || hole(Way::Down, &lost[1]) || control.changed().await.is_err() {
            return Broken;
        }
    }
}

/// Returns when the connection is too old, or was silent for too long.
async fn until_recycled(heard: &Mutex<Instant>, mut control: watch::Receiver<State>) {
    let begun = Instant::now();
    loop {
        let Recycle { age, idle } = control.borrow_and_update().recycle;
        let last = *heard.lock().unwrap_or_else(PoisonError::into_inner);
        let ends = [age.map(|age| begun + age), idle.map(|idle| last + idle)];
        let Some(end) = ends.into_iter().flatten().min() else {
            match control.changed().await {
                Ok(()) => continue,
                Err(_) => return pending().await,
            }
        };
        if end <= Instant::now() {
            return;
        }
        tokio::select! {
            // Without the control, the proxy ends, and resets what is open.
            changed = control.changed() => if changed.is_err() { return pending().await },
            () = tokio::time::sleep_until(end) => {}
        }
    }
}

struct Direction<'a> {
    way: Way,
    begun: &'a State,
    control: watch::Receiver<State>,
    lost: &'a AtomicBool,
    /// When something was last read, in either direction.
    heard: &'a Mutex<Instant>,
}

impl Direction<'_> {
    async fn carry(self, read: ReadHalf<'_>, write: WriteHalf<'_>) -> Result<(), Broken> {
        let (sender, queue) = mpsc::channel(QUEUE);
        let ((), written) = tokio::join!(self.read(read, sender), self.write(queue, write));
        written
    }

    /// Whether bytes vanish now; remembers that some did.
    fn swallows(&self) -> bool {
        let dark = self.control.borrow().is_dark(self.way);
        if dark {
            self.lost.store(true, Ordering::Relaxed);
        }
        dark
    }

    /// Reads until the sender ends or resets.
    async fn read(&self, mut read: ReadHalf<'_>, queue: mpsc::Sender<Piece>) {
        let mut buffer = vec![0; PIECE];
        loop {
            let result = read.read(&mut buffer).await;
            let read_at = Instant::now();
            *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = read_at;
            if matches!(result, Ok(length) if length > 0) && self.swallows() {
                continue;
            }
            let (what, last) = piece(result, &buffer);
            if queue.send(Piece { read_at, what }).await.is_err() || last {
                return;
            }
        }
    }

    async fn write(&self, mut queue: mpsc::Receiver<Piece>, mut write: WriteHalf<'_>) -> Result<(), Broken> {
        let mut control = self.control.clone();
        let mut head = None;
        let mut ended = false;
        loop {
            let state = *control.borrow_and_update();
            if !ended && state.ends(self.way) != self.begun.ends(self.way) {
                ended = true;
                end(&mut write).await?;
            }
            let piece = tokio::select! {
                changed = control.changed() => match changed {
                    Ok(()) => continue,
                    Err(_) => return Err(Broken),
                },
                piece = due(&mut head, &mut queue, &state, self.way) => piece,
            };
            match piece {
                // Whatever was sent into the dark, an end or a reset too, never arrives.
                Some(What::Bytes(_)) if self.swallows() => {}
                Some(What::End | What::Reset) if self.swallows() => return pending().await,
                Some(What::Bytes(_)) if ended => {}
                Some(What::Bytes(bytes)) => write.write_all(&bytes).await.map_err(|_| Broken)?,
                Some(What::End) if ended => return Ok(()),
                Some(What::End) => return end(&mut write).await,
                Some(What::Reset) | None => return Err(Broken),
            }
        }
    }
}

async fn end(write: &mut WriteHalf<'_>) -> Result<(), Broken> {
    write.shutdown().await.map_err(|_| Broken)
}

fn piece(result: io::Result<usize>, buffer: &[u8]) -> (What, bool) {
    match result {
        Ok(0) => (What::End, true),
        Ok(length) => (What::Bytes(buffer[..length].to_owned()), false),
        Err(_) => (What::Reset, true),
    }
}

/// The next piece when its time has come. Nothing is lost when it is dropped before: the piece stays in `head`.
async fn due(head: &mut Option<Piece>, queue: &mut mpsc::Receiver<Piece>, state: &State, way: Way) -> Option<What> {
    if head.is_none() {
        *head = queue.recv().await;
    }
    let read_at = head.as_ref()?.read_at;
    if state.is_stalled(way) {
        pending::<()>().await;
    }
    tokio::time::sleep_until(read_at + state.delay()).await;
    head.take().map(|piece| piece.what)
}
