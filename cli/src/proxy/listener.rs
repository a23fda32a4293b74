//! The listening side.
//!
//! A second socket is bound to the port for as long as the proxy lives, without ever listening: it keeps the port while
//! the proxy is cut, and connecting to it is refused as if nobody were there.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::Status;
use super::connection;
use super::state::State;

pub(super) struct Listener {
    address: SocketAddr,
    /// Keeps the port.
    _guard: TcpSocket,
    socket: Option<TcpListener>,
}

impl Listener {
    pub(super) fn bind(address: SocketAddr) -> io::Result<(Self, SocketAddr)> {
        let guard = bind(address)?;
        let address = guard.local_addr()?;
        let socket = Some(listen(address)?);
        Ok((Self { address, _guard: guard, socket }, address))
    }

    pub(super) async fn run(mut self, mut control: watch::Receiver<State>, report: watch::Sender<Status>) {
        let mut connections = JoinSet::new();
        loop {
            let state = *control.borrow_and_update();
            let now = self.follow(&state);
            report.send_modify(|status| *status = Status { listening: self.socket.is_some(), open: connections.len() });
            tokio::select! {
                changed = control.changed() => if changed.is_err() { break },
                Some(_) = connections.join_next() => {}
                accepted = accept(self.socket.as_ref()) => match accepted {
                    Ok(client) => { connections.spawn(connection::carry(client, control.clone())); }
                    Err(error) => pause(&error).await,
                },
                () = tokio::time::sleep(RETRY), if now.is_err() => {}
            }
        }
        self.socket = None;
        // Each sees that the control is gone, and resets.
        while connections.join_next().await.is_some() {}
    }

    /// Opens or closes the socket as the state wants it.
    fn follow(&mut self, state: &State) -> io::Result<()> {
        if state.is_cut() {
            self.socket = None;
        } else if self.socket.is_none() {
            self.socket = Some(listen(self.address)?);
        }
        Ok(())
    }
}

const RETRY: Duration = Duration::from_millis(50);

async fn pause(error: &io::Error) {
    tracing::warn!(%error, "the proxy could not accept a connection, trying again");
    tokio::time::sleep(RETRY).await;
}

async fn accept(socket: Option<&TcpListener>) -> io::Result<TcpStream> {
    match socket {
        Some(socket) => socket.accept().await.map(|(stream, _)| stream),
        None => std::future::pending().await,
    }
}

fn bind(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(true)?;
    socket.bind(address)?;
    Ok(socket)
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    bind(address)?.listen(1024)
}
