//! Who is at the other end of a connection.
//!
//! A handler gets it by `request.extensions().get::<Peer>()`. What it says comes from the certificate that the
//! handshake verified, never from anything the peer wrote in a message.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use holdfast_common::id::AgentName;
use holdfast_common::spec::hex;
use holdfast_common::time::Wall;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;
use tokio_rustls::server::TlsStream;
use tonic::transport::server::Connected;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

/// Everything up to the name in an agent's URI SAN.
pub const AGENT_URI_PREFIX: &str = "holdfast://agent/";
const SCHEME: &str = "holdfast:";

/// The other end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The agent, if it presented a certificate whose subject alternative names have exactly one URI of our scheme and
    /// that is `holdfast://agent/NAME` with a valid name. Two such URIs are no identity rather than a choice.
    pub agent: Option<AgentName>,
    /// SHA-256 of the presented certificate's DER, lower-case hex.
    pub fingerprint: Option<String>,
    /// How long that certificate is good.
    pub validity: Option<Validity>,
    /// Where it connects from. Says nothing about who it is.
    pub address: SocketAddr,
}

/// From when to when a certificate is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// Its first instant.
    pub from: Wall,
    /// Its last one.
    pub until: Wall,
}

impl Validity {
    /// Of a certificate in DER; `None` for one that can't be read.
    #[must_use]
    pub fn of(der: &[u8]) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let wall = |seconds: i64| Wall(seconds.saturating_mul(1_000_000));
        let validity = certificate.validity();
        Some(Self { from: wall(validity.not_before.timestamp()), until: wall(validity.not_after.timestamp()) })
    }
}

impl Peer {
    /// From the verified leaf certificate, in DER.
    pub(crate) fn new(certificate: Option<&[u8]>, address: SocketAddr) -> Self {
        Self {
            agent: certificate.and_then(agent_of),
            fingerprint: certificate.map(|der| hex(&Sha256::digest(der))),
            validity: certificate.and_then(Validity::of),
            address,
        }
    }
}

fn agent_of(der: &[u8]) -> Option<AgentName> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let names = certificate.subject_alternative_name().ok()??;
    let mut ours = names.value.general_names.iter().filter_map(our_uri);
    match (ours.next(), ours.next()) {
        (Some(uri), None) => AgentName::new(uri.strip_prefix(AGENT_URI_PREFIX)?).ok(),
        (None, _) | (Some(_), Some(_)) => None,
    }
}

fn our_uri<'a>(name: &GeneralName<'a>) -> Option<&'a str> {
    let GeneralName::URI(uri) = name else { return None };
    let scheme = uri.get(..SCHEME.len())?;
    scheme.eq_ignore_ascii_case(SCHEME).then_some(*uri)
}

/// An accepted TLS connection that knows its [`Peer`], over any byte stream.
///
/// A peer that has shown that it can do TLS and then says nothing is worth no more than one that never did: its
/// connection fails when the HTTP/2 preface is not there in time. From then on the server's pings tell.
#[derive(Debug)]
pub struct PeerStream<S> {
    stream: TlsStream<S>,
    peer: Peer,
    preface: Option<Preface>,
}

/// The first words of an HTTP/2 client, that are still to come.
#[derive(Debug)]
struct Preface {
    bytes_left: usize,
    limit: Pin<Box<Sleep>>,
}

impl Preface {
    /// Of `PRI * HTTP/2.0`, two line ends, `SM`, two line ends.
    const BYTES: usize = 24;

    fn within(limit: Duration) -> Self {
        Self { bytes_left: Self::BYTES, limit: Box::pin(tokio::time::sleep(limit)) }
    }
}

impl<S> PeerStream<S> {
    /// Longest time from a complete handshake to the HTTP/2 preface.
    pub const PREFACE_LIMIT: Duration = Duration::from_secs(10);

    pub(crate) fn new(stream: TlsStream<S>, peer: Peer) -> Self {
        Self { stream, peer, preface: Some(Preface::within(Self::PREFACE_LIMIT)) }
    }

    /// The other end.
    #[must_use]
    pub fn peer(&self) -> &Peer {
        &self.peer
    }
}

impl<S> Connected for PeerStream<S> {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer.clone()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for PeerStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Some(preface) = &mut self.preface else { return Pin::new(&mut self.stream).poll_read(cx, buffer) };
        if preface.limit.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        let read = buffer.filled().len() - before;
        self.preface = self.preface.take().filter(|preface| preface.bytes_left > read).map(|mut preface| {
            preface.bytes_left -= read;
            preface
        });
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for PeerStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
