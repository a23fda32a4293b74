//! A server of one file over https that cuts answers and leads elsewhere.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use holdfast::ca::Pair;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

/// The server. It ends with the test's runtime.
#[derive(Clone, Debug)]
pub struct Https {
    address: SocketAddr,
    served: Arc<Served>,
}

#[derive(Debug)]
struct Served {
    file: Vec<u8>,
    /// Longest body that is sent before a connection is closed in its middle.
    cut_after: usize,
    requests: AtomicUsize,
}

impl Https {
    /// Serves at `/file`; `/moved` leads there, `/down` leads to http. Ranges are honoured.
    pub async fn start(pair: &Pair, file: Vec<u8>, cut_after: usize) -> Self {
        let chain = CertificateDer::pem_file_iter(&pair.certificate).expect("a certificate");
        let chain = chain.collect::<Result<Vec<_>, _>>().expect("a chain");
        let key = PrivateKeyDer::from_pem_file(&pair.key).expect("a key");
        let config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key).expect("they fit");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let served = Arc::new(Served { file, cut_after, requests: AtomicUsize::new(0) });
        let serve = Arc::clone(&served);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, served) = (acceptor.clone(), Arc::clone(&serve));
                tokio::spawn(async move {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        let _client_gone = answer(stream, &served).await;
                    }
                });
            }
        });
        Self { address, served }
    }

    /// The URL of a path.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.address.port())
    }

    /// How many requests there were.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.served.requests.load(Ordering::SeqCst)
    }
}

/// One request for one connection.
async fn answer(stream: impl AsyncRead + AsyncWrite + Unpin, served: &Served) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let (mut path, mut from) = (String::new(), 0);
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        if line.trim().is_empty() {
            break;
        }
        let lower = line.to_ascii_lowercase();
        if let Some(rest) = line.strip_prefix("GET ") {
            path = rest.split(' ').next().unwrap_or_default().to_owned();
        } else if let Some(range) = lower.strip_prefix("range: bytes=") {
            from = range.trim().trim_end_matches('-').parse().unwrap_or(0);
        }
    }
    served.requests.fetch_add(1, Ordering::SeqCst);
    let whole = served.file.len();
    let head = match path.as_str() {
        "/file" if from == 0 => format!("200 OK\r\nContent-Length: {whole}"),
        "/file" if from < whole => {
            let last = whole - 1;
            format!(
                "206 Partial Content\r\nContent-Range: bytes {from}-{last}/{whole}\r\nContent-Length: {}",
                whole - from
            )
        }
        "/file" => "416 Range Not Satisfiable\r\nContent-Length: 0".to_owned(),
        "/moved" => "302 Found\r\nLocation: /file\r\nContent-Length: 0".to_owned(),
        "/down" => "302 Found\r\nLocation: http://localhost:1/file\r\nContent-Length: 0".to_owned(),
        _ => "404 Not Found\r\nContent-Length: 0".to_owned(),
    };
    stream.write_all(format!("HTTP/1.1 {head}\r\nConnection: close\r\n\r\n").as_bytes()).await?;
    if path == "/file" && from < whole {
        let end = whole.min(from + served.cut_after);
        stream.write_all(&served.file[from..end]).await?;
    }
    stream.flush().await?;
    stream.shutdown().await
}
