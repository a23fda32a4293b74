//! A small HTTP server around `git http-backend`, which is git's own: one request for each connection.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// "deploy:geheimnis".
const CREDENTIALS: &str = "Basic ZGVwbG95OmdlaGVpbW5pcw==";

/// How it behaves.
#[derive(Default)]
pub(crate) struct Ways {
    /// Nobody gets in without user "deploy" and password "geheimnis".
    pub(crate) locked: AtomicBool,
    /// A push takes effect, and its answer is never sent.
    pub(crate) cuts_answers: AtomicBool,
    ends: AtomicBool,
}

/// Serves every repository below a folder, until it is dropped.
pub(crate) struct Server {
    address: SocketAddr,
    pub(crate) ways: Arc<Ways>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn of(root: &Path) -> Self {
        Self::at(root, "127.0.0.1:0".parse().unwrap())
    }

    /// On a port that one had before.
    pub(crate) fn at(root: &Path, address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let ways = Arc::<Ways>::default();
        let (root, shared) = (root.to_owned(), Arc::clone(&ways));
        let thread = std::thread::spawn(move || serve(&listener, &root, &shared));
        Self { address, ways, thread: Some(thread) }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn url(&self, repository: &str) -> String {
        format!("http://{}/{repository}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ways.ends.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(listener: &TcpListener, root: &Path, ways: &Arc<Ways>) {
    for stream in listener.incoming() {
        if ways.ends.load(Ordering::SeqCst) {
            return;
        }
        let (root, ways) = (root.to_owned(), Arc::clone(ways));
        // A client that goes away in the middle is no fault of the server's.
        std::thread::spawn(move || stream.and_then(|stream| answer(&stream, &root, &ways)));
    }
}

fn answer(stream: &TcpStream, root: &Path, ways: &Ways) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let headers = headers(&mut reader)?;
    let body = body(&mut reader, &headers)?;
    let mut stream = stream;
    if ways.locked.load(Ordering::SeqCst) && headers.get("authorization").map(String::as_str) != Some(CREDENTIALS) {
        let head = "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"git\"\r\n";
        return stream.write_all(format!("{head}Content-Length: 0\r\nConnection: close\r\n\r\n").as_bytes());
    }
    let mut words = first.split_whitespace();
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let said = backend(root, method, target, &headers, &body)?;
    if ways.cuts_answers.load(Ordering::SeqCst) && method == "POST" && target.ends_with("git-receive-pack") {
        return stream.shutdown(Shutdown::Both);
    }
    let end = said.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(said.len());
    let head = String::from_utf8_lossy(&said[..end]).into_owned();
    let status = head.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK");
    stream.write_all(format!("HTTP/1.1 {status}\r\nConnection: close\r\n{head}").as_bytes())?;
    stream.write_all(&said[end..])?;
    stream.shutdown(Shutdown::Write)
}

fn headers(reader: &mut impl BufRead) -> std::io::Result<BTreeMap<String, String>> {
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.split_once(':') else { return Ok(headers) };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
}

fn body(reader: &mut impl BufRead, headers: &BTreeMap<String, String>) -> std::io::Result<Vec<u8>> {
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(body)
}

fn backend(
    root: &Path,
    method: &str,
    target: &str,
    headers: &BTreeMap<String, String>,
    body: &[u8],
) -> std::io::Result<Vec<u8>> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let header = |name: &str| headers.get(name).map_or("", String::as_str);
    let mut command = Command::new("git");
    command.arg("http-backend").env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    for (key, value) in [
        ("GIT_HTTP_EXPORT_ALL", "1"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("PATH_INFO", path),
        ("QUERY_STRING", query),
        ("REQUEST_METHOD", method),
        ("REMOTE_ADDR", "127.0.0.1"),
        ("CONTENT_TYPE", header("content-type")),
        ("HTTP_CONTENT_ENCODING", header("content-encoding")),
        ("GIT_PROTOCOL", header("git-protocol")),
        ("CONTENT_LENGTH", &body.len().to_string()),
    ] {
        command.env(key, value);
    }
    command.env("GIT_PROJECT_ROOT", root).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let mut stdin = child.stdin.take().expect("asked for");
    let body = body.to_vec();
    let feeder = std::thread::spawn(move || stdin.write_all(&body));
    let output = child.wait_with_output()?;
    let _ = feeder.join();
    Ok(output.stdout)
}
