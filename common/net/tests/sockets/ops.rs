//! Health and metrics over real sockets: what is asked politely is answered, everything else is bounded.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use holdfast_net::ops::{self, Address, Form, Health, Pages, Server, Settings, State};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const BOUND: Duration = Duration::from_secs(20);

struct World {
    address: SocketAddr,
    broken: Arc<AtomicBool>,
    _server: Server,
}

async fn world() -> World {
    let settings =
        Settings { address: Some(Address::At("127.0.0.1:0".parse().expect("an address"))), ..Settings::default() };
    let listener = ops::listen(&settings, 1).await.expect("a free port").expect("it is on");
    let address = listener.local_addr().expect("a bound socket");
    let broken = Arc::new(AtomicBool::new(false));
    let health = Health::new();
    let look = Arc::clone(&broken);
    health.alive("work loop", || State::Ok);
    health.ready("store", move || State::of(!look.load(Ordering::Relaxed), || "it can't be written".to_owned()));
    let pages = Pages::new(health, |form| match form {
        Form::Prometheus => "holdfast_x 1\n".to_owned(),
        Form::OpenMetrics => "holdfast_x 1\n# EOF\n".to_owned(),
    });
    World { address, broken, _server: Server::start(listener, pages) }
}

impl World {
    /// Sends bytes and reads to the end of the connection.
    async fn exchange(&self, bytes: &[u8]) -> String {
        let mut socket = TcpStream::connect(self.address).await.expect("a server is there");
        // The server may have closed in the middle of what it refuses.
        let _refused = socket.write_all(bytes).await;
        let mut answer = Vec::new();
        let read = tokio::time::timeout(BOUND, socket.read_to_end(&mut answer)).await.expect("the connection ends");
        drop(read);
        String::from_utf8(answer).expect("answers are text")
    }

    async fn get(&self, path: &str, headers: &str) -> String {
        self.exchange(format!("GET {path} HTTP/1.1\r\nHost: x\r\n{headers}\r\n").as_bytes()).await
    }
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}

#[tokio::test]
async fn health_and_metrics_answer_over_plain_http() {
    let world = world().await;
    let live = world.get("/livez", "").await;
    assert_eq!((status(&live), body(&live)), ("200", "alive\n"));
    let ready = world.get("/readyz?verbose", "").await;
    assert_eq!((status(&ready), body(&ready)), ("200", "ready\n[ok]   store\n"));
    world.broken.store(true, Ordering::Relaxed);
    let unready = world.get("/readyz", "").await;
    assert_eq!((status(&unready), body(&unready)), ("503", "not ready\nstore: it can't be written\n"));
    let told = world.get("/readyz", "Accept: application/json\r\n").await;
    assert!(told.contains("content-type: application/json") && body(&told).contains("it can't be written"), "{told}");
    assert_eq!(status(&world.get("/livez", "").await), "200");
    assert_eq!(body(&world.get("/metrics", "").await), "holdfast_x 1\n");
    let open = world.get("/metrics", "Accept: application/openmetrics-text; version=1.0.0\r\n").await;
    assert!(open.contains("application/openmetrics-text") && body(&open).ends_with("# EOF\n"), "{open}");
    let head = world.exchange(b"HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert_eq!((status(&head), body(&head)), ("200", ""));
}

#[tokio::test]
async fn what_is_no_question_is_refused_and_harms_nobody() {
    let world = world().await;
    assert_eq!(status(&world.get("/", "").await), "404");
    assert_eq!(status(&world.get("/debug/pprof", "").await), "404");
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "BREW"] {
        let answer = world.exchange(format!("{method} /livez HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await;
        assert_eq!(status(&answer), "405", "{method}: {answer}");
    }
    let upload = world.exchange(b"POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\nabc").await;
    assert_eq!(status(&upload), "405");
    let long = "a".repeat(100_000);
    let many: String = (0..1000).map(|number| format!("X-{number}: 1\r\n")).collect();
    for (what, bytes) in [
        ("a long path", format!("GET /{long} HTTP/1.1\r\nHost: x\r\n\r\n").into_bytes()),
        ("a long header", format!("GET /livez HTTP/1.1\r\nHost: x\r\nX: {long}\r\n\r\n").into_bytes()),
        ("many headers", format!("GET /livez HTTP/1.1\r\nHost: x\r\n{many}\r\n").into_bytes()),
        ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n".to_vec()),
        ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec()),
        ("no HTTP", b"\0\0\0\0\0\0\r\n\r\n".to_vec()),
        ("a line feed", b"\n\n\n\nGET\n\n".to_vec()),
        ("two requests", b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\nGET /readyz HTTP/1.1\r\nHost: x\r\n\r\n".to_vec()),
    ] {
        let answer = world.exchange(&bytes).await;
        assert!(!answer.contains("ready\n"), "{what}: {answer}");
        assert!(what == "two requests" || status(&answer) != "200", "{what}: {answer}");
    }
    assert_eq!(status(&world.get("/livez", "").await), "200");
}

#[tokio::test]
async fn connections_that_say_nothing_keep_nobody_out() {
    let world = world().await;
    let mut silent = Vec::new();
    for _ in 0..200 {
        silent.push(TcpStream::connect(world.address).await.expect("a server is there"));
    }
    assert_eq!(status(&world.get("/livez", "").await), "200");
    // The oldest made room; the others are closed when their time is over.
    for mut socket in silent {
        let mut byte = [0];
        let read = tokio::time::timeout(BOUND, socket.read(&mut byte)).await.expect("closed in time");
        assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    }
}

#[tokio::test]
async fn a_part_that_hangs_is_not_ready_and_the_process_is_still_alive() {
    let (release, held) = std::sync::mpsc::channel::<()>();
    let held = std::sync::Mutex::new(held);
    let health = Health::new();
    health.ready("store", move || {
        drop(held.lock().map(|held| held.recv()));
        State::Ok
    });
    let settings =
        Settings { address: Some(Address::At("127.0.0.1:0".parse().expect("an address"))), ..Settings::default() };
    let listener = ops::listen(&settings, 1).await.expect("a free port").expect("it is on");
    let address = listener.local_addr().expect("a bound socket");
    let server = Server::start(listener, Pages::new(health, |_| String::new()));
    let world = World { address, broken: Arc::default(), _server: server };
    let answer = world.get("/readyz", "").await;
    assert_eq!((status(&answer), body(&answer)), ("503", "not ready\na part did not answer in time\n"));
    assert_eq!(status(&world.get("/livez", "").await), "200");
    drop(release);
}

#[tokio::test]
async fn a_chosen_address_must_be_free_and_the_default_one_need_not() {
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = taken.local_addr().expect("a bound socket");
    let chosen = Settings { address: Some(Address::At(address)), ..Settings::default() };
    assert!(ops::listen(&chosen, 1).await.expect_err("taken").to_string().contains(&address.to_string()));
    assert!(ops::listen(&Settings::default(), address.port()).await.expect("no error").is_none());
    let off = Settings { address: Some(Address::Off), ..Settings::default() };
    assert!(ops::listen(&off, 0).await.expect("no error").is_none());
}
