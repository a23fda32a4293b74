//! Frames that no client of ours sends: cut, changed, oversized, nested, of another shape. Each is refused or taken whole, what
//! was refused changed nothing, and the coordinator goes on.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use holdfast_net::channel::{self, Limits};
use holdfast_proto::MAX_MESSAGE_BYTES;
use holdfast_proto::v1::connect_request::Message as Says;
use holdfast_proto::v1::connect_response::Message as Hears;
use holdfast_proto::v1::{
    ApplyTargetRequest, AttemptEnd, AttestRequest, CancelDeploymentRequest, Claim, ConnectRequest, ConnectResponse,
    DecideRequest, GetDeploymentRequest, Heartbeat, Hello, InspectDeploymentRequest, LogStream, SubmitRequest,
    UploadLogRequest, UploadLogResponse,
};
use holdfast_tests::api::id_of;
use holdfast_tests::cluster::{Cluster, LONG, Plan};
use holdfast_tests::files::{DeploymentFile, command_target};
use holdfast_tests::peer::{applied, ended, hello, report, started};
use holdfast_tests::wait;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use prost::Message as _;
use rusqlite::{Connection, OpenFlags};
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::Service as _;
use tonic::codegen::http;
use tonic::transport::Channel;
use tonic::{Code, Request, Status, Streaming};
use uuid::Uuid;

use crate::PROGRAM;

/// Cases for each of the two services.
const CASES: u32 = 96;

/// Messages as they are, and answers as they come: nothing in between checks them.
#[derive(Clone, Copy, Debug, Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
    type Encoder = Raw;
    type Decoder = Raw;

    fn encoder(&mut self) -> Raw {
        Raw
    }

    fn decoder(&mut self) -> Raw {
        Raw
    }
}

impl Encoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, item: Vec<u8>, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        use prost::bytes::BufMut as _;
        into.put_slice(&item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, Status> {
        use prost::bytes::Buf as _;
        let mut item = vec![0; from.remaining()];
        from.copy_to_slice(&mut item);
        Ok(Some(item))
    }
}

/// A running attempt, and who may speak of it.
struct Scene {
    cluster: Cluster,
    agent: Channel,
    operator: Channel,
    hello: Hello,
    claim: Claim,
    deployment: String,
}

async fn scene() -> Scene {
    let mut cluster = Plan::new(PROGRAM).agents(&[]).start().await;
    let operator = cluster.operator();
    operator.apply_target(&command_target("box@test", true)).await;
    let hello = hello(Uuid::new_v4());
    let mut peer = cluster.peer("web-01", hello.clone()).await.expect("a session");
    let job = DeploymentFile::new("box@test", LONG).mutates("change", "unsafe", &["true".to_owned()]);
    let deployment = id_of(&operator.submit(job.text()).await);
    let offer = peer.take_offer().await;
    let claim = offer.claim.clone().expect("an offer has its claim");
    peer.heartbeat(std::slice::from_ref(&claim)).await;
    let _granted = peer.permit(&offer, "change").await;
    let address = format!("https://{}", cluster.coordinator().address());
    let open = |tls| channel::connect_lazy(&address, &tls, &Limits::default()).expect("a test's address is sound");
    let (agent, plain) = (open(cluster.agent_tls("web-01")), open(cluster.tls(None)));
    Scene { cluster, agent, operator: plain, hello, claim, deployment }
}

impl Scene {
    /// Everything that the store keeps for good.
    fn kept(&mut self) -> i64 {
        let path = self.cluster.coordinator().store();
        let store = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("the store");
        let sum = "SELECT (SELECT count(*) FROM events) + (SELECT count(*) FROM deployments)
                        + (SELECT count(*) FROM targets) + (SELECT count(*) FROM orphan_reports)";
        store.query_row(sum, [], |row| row.get(0)).expect("a number")
    }

    /// What an agent sends, encoded.
    fn agents_words(&self) -> Vec<Vec<u8>> {
        let claim = Some(&self.claim);
        let messages = [
            Says::Hello(self.hello.clone()),
            Says::Heartbeat(Heartbeat { number: 5, claims: vec![self.claim.clone()], no_room: None }),
            Says::Report(report(claim, 1, started("change"))),
            Says::Report(report(claim, 2, applied("change"))),
            Says::Report(report(claim, 3, ended(AttemptEnd::Succeeded))),
        ];
        messages.map(|message| ConnectRequest { message: Some(message) }.encode_to_vec()).into()
    }

    /// What an operator sends, by method, encoded.
    fn operators_words(&self) -> Vec<(&'static str, Vec<u8>)> {
        let deployment = self.deployment.clone();
        let job = DeploymentFile::new("box@test", LONG).mutates("change", "unsafe", &["true".to_owned()]);
        let submit = SubmitRequest {
            request_id: Uuid::now_v7().to_string(),
            file: job.text().to_owned(),
            inputs: [("a".to_owned(), "b".to_owned())].into(),
            ..SubmitRequest::default()
        };
        let cancel = CancelDeploymentRequest { deployment: deployment.clone(), reason: "a test".to_owned() };
        let attest = AttestRequest {
            deployment: deployment.clone(),
            runner: 1,
            target_state: 1,
            how: "a test looked".to_owned(),
            confirm: "box@test".to_owned(),
            ..AttestRequest::default()
        };
        let decide = DecideRequest {
            deployment: deployment.clone(),
            kind: 7,
            reason: "a test decides".to_owned(),
            evidence_sequence: 1,
            confirm: "box@test".to_owned(),
        };
        let target = command_target("box@other", true);
        vec![
            ("Submit", submit.encode_to_vec()),
            ("Cancel", cancel.encode_to_vec()),
            ("Attest", attest.encode_to_vec()),
            ("Decide", decide.encode_to_vec()),
            ("ApplyTarget", ApplyTargetRequest { file: target }.encode_to_vec()),
            ("GetDeployment", GetDeploymentRequest { deployment: deployment.clone() }.encode_to_vec()),
            ("InspectDeployment", InspectDeploymentRequest { deployment, wait: None }.encode_to_vec()),
        ]
    }

    /// Calls an operator's method with these bytes as its message.
    async fn ask(&mut self, method: &str, message: Vec<u8>) -> Result<Vec<u8>, Status> {
        let token = self.cluster.coordinator().admin().to_owned();
        let mut request = Request::new(message);
        request.metadata_mut().insert("authorization", format!("Bearer {token}").parse().expect("plain text"));
        let path = format!("/holdfast.v1.OperatorService/{method}").parse().expect("a path");
        let mut client = tonic::client::Grpc::new(self.operator.clone());
        client.ready().await.map_err(|error| Status::unknown(error.to_string()))?;
        let call = client.unary(request, path, Raw);
        wait::within("an answer", wait::SOON, call).await.map(tonic::Response::into_inner)
    }

    /// Says these after one another in a call of an agent's method.
    async fn say(&self, method: &str, messages: Vec<Vec<u8>>) -> Result<Streaming<Vec<u8>>, Status> {
        let path = format!("/holdfast.v1.AgentService/{method}").parse().expect("a path");
        let mut client = tonic::client::Grpc::new(self.agent.clone());
        client.ready().await.map_err(|error| Status::unknown(error.to_string()))?;
        let call = client.streaming(Request::new(tokio_stream::iter(messages)), path, Raw);
        wait::within("an answer", wait::SOON, call).await.map(tonic::Response::into_inner)
    }

    /// Opens a session, says the message and then a heartbeat. `Ok` where the heartbeat is answered: the message was taken.
    async fn session_with(&mut self, message: Vec<u8>) -> (i64, Result<(), String>) {
        const BEFORE: u64 = 1_000_001;
        const AFTER: u64 = 1_000_002;
        let beat = |number| {
            let message = Some(Says::Heartbeat(Heartbeat { number, claims: Vec::new(), no_room: None }));
            ConnectRequest { message }.encode_to_vec()
        };
        let (sender, outbox) = tokio::sync::mpsc::channel(16);
        let path = "/holdfast.v1.AgentService/Connect".parse().expect("a path");
        let mut client = tonic::client::Grpc::new(self.agent.clone());
        client.ready().await.expect("a connection");
        let hello = ConnectRequest { message: Some(Says::Hello(self.hello.clone())) }.encode_to_vec();
        for first in [hello, beat(BEFORE)] {
            sender.send(first).await.expect("nobody has closed it");
        }
        let outbox = tokio_stream::wrappers::ReceiverStream::new(outbox);
        let call = client.streaming(Request::new(outbox), path, Raw);
        let mut answers = wait::within("a stream", wait::SOON, call).await.expect("a session").into_inner();
        let mut kept = None;
        let outcome = wait::within("an answer to a frame", wait::SOON, async {
            loop {
                let answer = match answers.message().await {
                    Ok(Some(bytes)) => ConnectResponse::decode(bytes.as_slice()).expect("a coordinator's own message"),
                    Ok(None) => return Err("closed".to_owned()),
                    Err(status) => return Err(status.to_string()),
                };
                match answer.message {
                    Some(Hears::HeartbeatAnswer(answer)) if answer.number == BEFORE => {
                        kept = Some(self.kept());
                        for next in [message.clone(), beat(AFTER)] {
                            let _closed_already = sender.send(next).await;
                        }
                    }
                    Some(Hears::HeartbeatAnswer(answer)) if answer.number == AFTER => return Ok(()),
                    Some(Hears::Bye(bye)) => return Err(format!("{}: {}", bye.code, bye.detail)),
                    Some(_) | None => {}
                }
            }
        })
        .await;
        (kept.expect("the session was up before"), outcome)
    }

    /// It serves, it never panicked, and its store is whole.
    async fn goes_on(mut self) {
        self.cluster.operator().deployment(&self.deployment).await;
        let log = std::fs::read_to_string(self.cluster.folder().join("coordinator.log")).expect("a log");
        assert!(!log.contains("panicked"), "{log}");
        assert!(self.cluster.coordinator().terminate().await.success());
        let _said = self.cluster.coordinator().run(&["verify"]);
    }
}

/// What is done to a message.
#[derive(Clone, Debug)]
enum Change {
    Cut(prop::sample::Index),
    Flip(Vec<(prop::sample::Index, u8)>),
    Insert(prop::sample::Index, Vec<u8>),
    Repeat(u8),
    Replace(Vec<u8>),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        any::<prop::sample::Index>().prop_map(Change::Cut),
        prop::collection::vec((any::<prop::sample::Index>(), 1..=255_u8), 1..6).prop_map(Change::Flip),
        (any::<prop::sample::Index>(), prop::collection::vec(any::<u8>(), 1..40))
            .prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        (2..5_u8).prop_map(Change::Repeat),
        prop::collection::vec(any::<u8>(), 0..200).prop_map(Change::Replace),
    ]
}

fn apply(change: &Change, message: &[u8]) -> Vec<u8> {
    let mut bytes = message.to_vec();
    match change {
        Change::Cut(at) => bytes.truncate(at.index(bytes.len().max(1))),
        Change::Flip(flips) => {
            for (at, mask) in flips {
                let at = at.index(bytes.len().max(1));
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= mask;
                }
            }
        }
        Change::Insert(at, new) => {
            let at = at.index(bytes.len() + 1);
            bytes.splice(at..at, new.iter().copied());
        }
        Change::Repeat(times) => bytes = bytes.repeat(usize::from(*times)),
        Change::Replace(new) => bytes.clone_from(new),
    }
    bytes
}

/// Every case meets the same processes: only the frames differ.
fn fuzz(mut case: impl AsyncFnMut(&mut Scene, prop::sample::Index, Change)) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let world = RefCell::new((runtime.block_on(scene()), &mut case));
    let config = Config { cases: CASES, failure_persistence: None, max_shrink_iters: 100, ..Config::default() };
    let result = TestRunner::new(config).run(&(any::<prop::sample::Index>(), change()), |(which, change)| {
        let (scene, case) = &mut *world.borrow_mut();
        runtime.block_on(case(scene, which, change));
        Ok(())
    });
    let (scene, _) = world.into_inner();
    if let Err(error) = result {
        let log = holdfast_tests::process::last_lines(&scene.cluster.folder().join("coordinator.log"), 20);
        panic!("{error}\n{log}");
    }
    runtime.block_on(scene.goes_on());
}

/// F41, T15
#[test]
fn a_mutated_word_of_an_agent_is_taken_whole_or_refused_and_changes_nothing() {
    let (mut taken, mut refused) = (0, 0);
    fuzz(async |scene, which, change| {
        let words = scene.agents_words();
        let message = apply(&change, which.get(words.as_slice()).as_slice());
        let (before, outcome) = scene.session_with(message).await;
        match outcome {
            Ok(()) => taken += 1,
            Err(why) => {
                assert!(why.starts_with("HF-500"), "no clear refusal: {why}");
                assert_eq!(scene.kept(), before, "refused with {why}, and something changed");
                refused += 1;
            }
        }
    });
    assert!(refused > 20, "{taken} taken, {refused} refused: these mutations hurt nobody");
}

/// F41, T15
#[test]
fn a_mutated_request_of_an_operator_is_answered_or_refused_and_changes_nothing() {
    let (mut taken, mut refused) = (0, 0);
    fuzz(async |scene, which, change| {
        let words = scene.operators_words();
        let (method, message) = which.get(&words);
        let before = scene.kept();
        match scene.ask(method, apply(&change, message)).await {
            Ok(_) => taken += 1,
            Err(status) => {
                let is_clear = match status.code() {
                    Code::InvalidArgument | Code::NotFound | Code::FailedPrecondition | Code::Aborted => true,
                    Code::Internal => status.message().contains("decode"),
                    _ => false,
                };
                assert!(is_clear, "{method}: no clear refusal: {status:?}");
                assert_eq!(scene.kept(), before, "{method} was refused with {status}, and something changed");
                refused += 1;
            }
        }
    });
    assert!(refused > 20, "{taken} taken, {refused} refused: these mutations hurt nobody");
}

/// T15, F41
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn oversized_deep_and_misspelt_messages_are_refused_by_name() {
    let mut scene = scene().await;
    let before = scene.kept();
    let with_text = |text: &[u8]| {
        // Field 2 of a submission, its file.
        let mut bytes = vec![0x12];
        prost::encoding::encode_varint(text.len() as u64, &mut bytes);
        bytes.extend(text);
        bytes
    };
    let cases: [(&str, Vec<u8>, &str); 5] = [
        ("oversized", with_text(&vec![b'x'; MAX_MESSAGE_BYTES + 1]), "too large"),
        ("not UTF-8", with_text(b"\xff\xfe"), "UTF-8"),
        ("cut", with_text(b"abc")[..3].to_vec(), "decode"),
        // A group in a group in a group.
        ("deep", vec![0x7b; 200_000], "recursion"),
        ("a length beyond its end", vec![0x12, 0xff, 0xff, 0xff, 0xff, 0x07], "decode"),
    ];
    for (what, message, says) in cases {
        let status = scene.ask("Submit", message.clone()).await.expect_err(what);
        assert!(status.message().contains(says), "{what}: {status:?}");
        let refused = scene.session_with(message).await.1.expect_err(what);
        assert!(refused.starts_with("HF-500"), "{what}: {refused}");
    }
    assert_eq!(scene.kept(), before);
    scene.goes_on().await;
}

/// The frame around the message: cut short, of an unknown compression, longer than any message may be.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn broken_frames_end_their_call_and_nothing_else() {
    let mut scene = scene().await;
    let before = scene.kept();
    let token = scene.cluster.coordinator().admin().to_owned();
    for (what, body) in [
        ("nothing", ""),
        ("half a head", "\0\0\0"),
        ("less than it says", "\0\0\0\0\x05abc"),
        ("a compression that was not agreed on", "\x01\0\0\0\x01a"),
        ("a compression that nobody knows", "\x02\0\0\0\x01a"),
        ("two gigabytes", "\0\x7f\x7f\x7f\x7fabc"),
        ("no frame", "GET / HTTP/1.1\r\n\r\n"),
    ] {
        for (path, channel) in [
            ("/holdfast.v1.OperatorService/Submit", &scene.operator),
            ("/holdfast.v1.AgentService/Connect", &scene.agent),
            ("/holdfast.v1.AgentService/UploadLog", &scene.agent),
        ] {
            let request = http::Request::builder()
                .method("POST")
                .uri(path)
                .header("content-type", "application/grpc")
                .header("te", "trailers")
                .header("authorization", format!("Bearer {token}"))
                .body(Body::new(body.to_owned()))
                .expect("a request");
            let mut channel = channel.clone();
            let answer = wait::within(what, wait::SOON, async {
                std::future::poll_fn(|cx| channel.poll_ready(cx)).await?;
                channel.call(request).await
            });
            let answer = answer.await.expect("the connection lives");
            let refused = match answer.headers().get("grpc-status") {
                Some(status) => status != "0",
                // The answer of a stream says it at its end, or in a goodbye.
                None => !path.ends_with("Submit"),
            };
            assert!(refused, "{path} took {what}: {answer:?}");
        }
    }
    assert_eq!(scene.kept(), before);
    scene.goes_on().await;
}

/// T14: what an agent calls an output is a name and never a path.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_of_outputs_that_are_paths_are_refused_and_make_no_file() {
    let scene = scene().await;
    let data = scene.cluster.folder().join("coordinator");
    let long = "a".repeat(4096);
    for step in ["../../evil", "/tmp/evil", "change\0evil", "change/../evil", ".", "..", "", long.as_str()] {
        let upload = UploadLogRequest {
            claim: Some(scene.claim.clone()),
            step: step.to_owned(),
            stream: LogStream::Stdout.into(),
            data: b"evil".to_vec(),
            ..UploadLogRequest::default()
        };
        let mut answers = scene.say("UploadLog", vec![upload.encode_to_vec()]).await.expect("a stream");
        let answer = wait::within("an answer", wait::SOON, answers.message()).await;
        let status = answer.expect_err("a path was taken for a name");
        assert!(matches!(status.code(), Code::InvalidArgument | Code::NotFound), "{step:?}: {status:?}");
    }
    let upload = UploadLogRequest {
        claim: Some(scene.claim.clone()),
        step: "change".to_owned(),
        stream: LogStream::Stdout.into(),
        data: b"kept".to_vec(),
        ..UploadLogRequest::default()
    };
    let mut answers = scene.say("UploadLog", vec![upload.encode_to_vec()]).await.expect("a stream");
    let answer = answers.message().await.expect("its own output is taken").expect("an answer");
    assert_eq!(UploadLogResponse::decode(answer.as_slice()).expect("an answer").next_offset, 4);
    let evil = files_below(&data).into_iter().chain(files_below(scene.cluster.folder().path()));
    let evil: Vec<_> = evil.filter(|path| path.to_string_lossy().contains("evil")).collect();
    assert!(evil.is_empty(), "{evil:?}");
    scene.goes_on().await;
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}
