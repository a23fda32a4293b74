//! Health checks as real processes against real servers.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use holdfast_agent::checks::{HELD, NOT_HELD};
use holdfast_agent::supervisor::{Body, ExitRecord, Launch};
use holdfast_common::outcome::Exit;
use holdfast_common::spec::{CheckSpec, Probe, StepEffect};
use holdfast_common::time::Millis;

use crate::host::Host;
use crate::support::eventually;

/// A server that answers each connection with the next of these texts, the last one again and again.
struct Server {
    address: SocketAddr,
    asked: Arc<AtomicUsize>,
}

impl Server {
    fn new(answers: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let answers: Vec<String> = answers.iter().map(|answer| (*answer).to_owned()).collect();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let at = count.fetch_add(1, Ordering::SeqCst);
                let mut head = [0; 4096];
                let _read = stream.read(&mut head);
                let _written = stream.write_all(answers[at.min(answers.len() - 1)].as_bytes());
            }
        });
        Self { address, asked }
    }

    fn url(&self) -> String {
        format!("http://{}/healthz", self.address)
    }
}

fn answer(status: u16, body: &str) -> String {
    format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

fn http(url: &str, expect_body: Option<&str>) -> Probe {
    Probe::Http { url: url.to_owned(), expect_status: 200, expect_body: expect_body.map(str::to_owned) }
}

fn spec(probe: Probe, hold: u64, give_up: u64) -> CheckSpec {
    CheckSpec { probe, hold: Millis(hold), interval: Millis(100), give_up: Millis(give_up) }
}

fn launch(host: &Host, check: CheckSpec) -> Launch {
    Launch { effect: StepEffect::None, body: Body::Check { check }, ..host.launch(&["true"]) }
}

/// Its exit record, and the last line of its standard error.
fn run(check: CheckSpec) -> (ExitRecord, String) {
    let host = Host::new();
    let record = host.run(&launch(&host, check));
    let said = std::fs::read_to_string(host.step(1).stderr()).unwrap();
    (record, said.lines().last().unwrap_or_default().to_owned())
}

#[track_caller]
fn held(check: CheckSpec) -> String {
    let (record, said) = run(check);
    assert_eq!(record.exit, Exit::Exited(HELD.into()), "{said}");
    said
}

#[track_caller]
fn not_held(check: CheckSpec) -> String {
    let (record, said) = run(check);
    assert_eq!(record.exit, Exit::Exited(NOT_HELD.into()), "{said}");
    said
}

#[test]
fn an_answer_with_the_wanted_status_is_healthy_and_a_redirect_is_not_followed() {
    let server = Server::new(&[&answer(200, "ok")]);
    let said = held(spec(http(&server.url(), None), 0, 20_000));
    assert!(said.starts_with(&format!("{} went well (1 look in ", server.url())), "{said}");
    let other = Server::new(&[&answer(200, "elsewhere")]);
    let redirect = format!("HTTP/1.1 302 Found\r\nLocation: {}\r\nContent-Length: 0\r\n\r\n", other.url());
    let server = Server::new(&[&redirect]);
    let said = not_held(spec(http(&server.url(), None), 0, 400));
    assert!(said.contains(": status 302 ("), "{said}");
    assert_eq!(other.asked.load(Ordering::SeqCst), 0);
}

#[test]
fn a_window_is_begun_anew_by_a_failure_and_must_pass_whole() {
    let ok = answer(200, "ok");
    let server = Server::new(&[&answer(503, ""), &ok, &ok, &answer(503, ""), &ok]);
    let said = held(spec(http(&server.url(), None), 500, 30_000));
    assert!(said.contains("went well for "), "{said}");
    assert!(server.asked.load(Ordering::SeqCst) >= 4 + 5, "500 ms by looks every 100 ms after the last failure");
}

#[test]
fn the_wanted_text_must_be_in_the_answer_and_an_endless_answer_is_read_in_part() {
    let server = Server::new(&[&answer(200, "version v2 is up")]);
    held(spec(http(&server.url(), Some("v2")), 0, 20_000));
    let said = not_held(spec(http(&server.url(), Some("v3")), 0, 300));
    assert!(said.contains("status 200, and \"v3\" is not in its first 16 bytes"), "{said}");
    let endless = format!("HTTP/1.1 200 X\r\n\r\n{}", "x".repeat(1 << 20));
    let server = Server::new(&[&endless]);
    let said = not_held(spec(http(&server.url(), Some("v3")), 0, 300));
    assert!(said.contains("65536 bytes"), "{said}");
}

#[test]
fn what_is_no_answer_is_told_and_never_healthy() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let said = not_held(spec(http(&format!("http://{closed}/"), None), 0, 300));
    assert!(said.contains("could not connect: Connection refused") && said.contains("never ok"), "{said}");
    let garbage = Server::new(&["\u{1b}[31mSSH-2.0-x\r\n"]);
    let said = not_held(spec(http(&garbage.url(), None), 0, 300));
    assert!(said.contains("no HTTP answer: ") && !said.contains('\u{1b}'), "{said}");
    let huge = format!("HTTP/1.1 200 X\r\nX: {}\r\n\r\n", "x".repeat(2_000_000));
    let huge = Server::new(&[&huge]);
    let said = not_held(spec(http(&huge.url(), None), 0, 300));
    assert!(said.contains("no HTTP answer: "), "{said}");
    // Accepts, and never says a word.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let said = not_held(spec(http(&format!("http://{}/", silent.local_addr().unwrap()), None), 0, 300));
    assert!(said.contains("no answer within 1 s") && said.contains("(1 look in "), "{said}");
}

#[test]
fn a_connection_that_is_accepted_is_healthy() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    held(spec(Probe::Tcp { address: address.clone() }, 0, 20_000));
    drop(listener);
    let said = not_held(spec(Probe::Tcp { address: address.clone() }, 0, 300));
    assert!(said.starts_with(&format!("tcp {address}: could not connect: Connection refused")), "{said}");
    let said = not_held(spec(Probe::Tcp { address: "no-such-host.invalid:80".to_owned() }, 0, 300));
    assert!(said.contains("could not resolve no-such-host.invalid"), "{said}");
}

fn command(script: &str, give_up: u64) -> CheckSpec {
    let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
    spec(Probe::Command { argv }, 0, give_up)
}

#[test]
fn a_command_that_exits_with_0_is_healthy_and_its_last_line_says_why_not() {
    held(command("true", 20_000));
    let said = not_held(command("echo first >&2; printf '\\033[31mdown\\n' >&2; exit 3", 300));
    assert!(said.contains(": exit 3: \\u{1b}[31mdown ("), "{said}");
    let missing = Probe::Command { argv: vec!["/no/such/program".to_owned()] };
    let said = not_held(spec(missing, 0, 300));
    assert!(said.contains("could not start \"/no/such/program\""), "{said}");
    // Comes up while it is looked at.
    held(command("test -e up || { touch up; exit 1; }", 20_000));
}

#[test]
fn a_look_leaves_nothing_behind_not_even_when_it_hangs() {
    let host = Host::new();
    let record =
        host.run(&launch(&host, command("setsid sleep 1000 & echo $! > left; sleep 1000 & exec sleep 1000", 400)));
    assert_eq!((record.exit, record.survivors.len()), (Exit::Exited(NOT_HELD.into()), 0));
    assert!(!host.process("left").is_alive(), "a child that left the group is below the check all the same");
    let said = std::fs::read_to_string(host.step(1).stderr()).unwrap();
    assert!(said.contains("no answer within 1 s"), "{said}");
}

#[test]
fn a_stop_ends_a_check_at_once_with_everything_that_it_started() {
    let host = Host::new();
    let step = host.step(1);
    host.supervisor.start(&step, &launch(&host, command("echo $$ > body; exec sleep 1000", 60_000))).unwrap();
    let body = host.process("body");
    host.supervisor.request_stop(&step, Millis(60_000)).unwrap();
    let record = host.ended(&step);
    assert_eq!(record.exit, Exit::Signaled { signal: 15, by_us: true });
    assert!(record.stopped_by_us && record.survivors.is_empty());
    assert!(!body.is_alive());
}

#[test]
fn what_a_check_sees_is_its_output_told_once_for_each_change() {
    let host = Host::new();
    let step = host.step(1);
    let server = Server::new(&[&answer(503, ""), &answer(503, ""), &answer(503, ""), &answer(200, "")]);
    let record = host.run(&launch(&host, spec(http(&server.url(), None), 0, 30_000)));
    assert_eq!(record.exit, Exit::Exited(0));
    let said = std::fs::read_to_string(step.stdout()).unwrap();
    let url = server.url();
    assert_eq!(said, format!("looking: {url} answers 200, once within 30s\n{url}: status 503\n{url}: ok\n"));
}

#[test]
fn tls_is_spoken_to_the_hosts_own_authorities_and_to_no_other() {
    let mut parameters = rcgen::CertificateParams::new(Vec::<String>::new()).unwrap();
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let (ca_key, key) = (rcgen::KeyPair::generate().unwrap(), rcgen::KeyPair::generate().unwrap());
    let ca = parameters.self_signed(&ca_key).unwrap();
    let issuer = rcgen::Issuer::new(parameters, ca_key);
    let leaf = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let private = rustls::pki_types::PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], private)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://localhost:{}/", listener.local_addr().unwrap().port());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut session = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = rustls::Stream::new(&mut session, &mut stream);
            let mut head = [0; 4096];
            if stream.read(&mut head).is_ok() {
                let _written = stream.write_all(answer(200, "over TLS").as_bytes());
            }
        }
    });
    let host = Host::new();
    let mut trusting = launch(&host, spec(http(&url, Some("over TLS")), 0, 20_000));
    let file = trusting.work.join("ca.pem");
    std::fs::write(&file, ca.pem()).unwrap();
    trusting.environment.insert("SSL_CERT_FILE".to_owned(), file.to_str().unwrap().to_owned());
    assert_eq!(host.run(&trusting).exit, Exit::Exited(0), "{:?}", std::fs::read_to_string(host.step(1).stderr()));
    let said = not_held(spec(http(&url, None), 0, 3_000));
    assert!(said.contains("could not connect: invalid peer certificate"), "{said}");
}

#[test]
fn a_check_lives_on_while_nobody_watches_it() {
    let host = Host::new();
    let step = host.step(1);
    let server = Server::new(&[&answer(503, "")]);
    host.supervisor.start(&step, &launch(&host, spec(http(&server.url(), None), 0, 60_000))).unwrap();
    // A supervisor that knows nothing of it, as after a restart.
    let restarted = Host::new().supervisor;
    eventually("looks go on", || (server.asked.load(Ordering::SeqCst) >= 3).then_some(()));
    assert!(matches!(restarted.survey(&step), Ok(holdfast_agent::supervisor::Known::Running)));
    restarted.request_stop(&step, Millis(1_000)).unwrap();
    let known = restarted.wait(&step, Duration::from_secs(20)).unwrap();
    assert!(matches!(known, holdfast_agent::supervisor::Known::Ended(record) if record.stopped_by_us));
}
