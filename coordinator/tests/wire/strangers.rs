//! What another agent gets for claims and ids that are not its own, by every method and every kind of message: what does not
//! exist. And what an agent gets for its own words said again, or for a false one.

use std::collections::BTreeSet;

use holdfast_coordinator::auth::methods::{Demand, METHODS};
use holdfast_coordinator::auth::renewals::AT_ONCE;
use holdfast_coordinator::serve::wall;
use holdfast_coordinator::store::sqlite::SqliteStore;
use holdfast_coordinator::store::{Reader, Store};
use holdfast_proto::json::pool;
use holdfast_proto::v1;
use holdfast_proto::v1::connect_request::Message as Say;
use holdfast_proto::v1::connect_response::Message as Hear;
use holdfast_proto::v1::enroll_service_client::EnrollServiceClient;
use holdfast_proto::v1::report::Body;
use rcgen::{CertificateParams, KeyPair, SanType};
use tonic::{Code, Status};
use uuid::Uuid;

use crate::agent::{Agent, applied, hello, report, started, succeeded};
use crate::requests::{RELEASE_FILE, RELEASE_TARGET, at_work, permit, submission, uncertain_release};
use crate::world::{Operators, World, problem, soon};

const THIEF: &str = "web-66";
const DEPLOYMENT: &str = "shop@prod#1";

/// What is spoken of.
#[derive(Clone)]
struct About {
    claim: v1::Claim,
    inquiry: String,
    plan_digest: String,
}

impl About {
    /// The same of what does not exist.
    fn made_up(&self) -> Self {
        let [deployment, attempt, inquiry] = [5, 6, 7].map(|number| Uuid::from_u128(number).to_string());
        Self { claim: v1::Claim { deployment, attempt, ..self.claim.clone() }, inquiry, ..self.clone() }
    }

    /// A text without what it speaks of.
    fn taken_out_of(&self, text: &str) -> String {
        let Self { claim, inquiry, .. } = self;
        let ids = [(&claim.deployment, "DEPLOYMENT"), (&claim.attempt, "ATTEMPT"), (inquiry, "INQUIRY")];
        ids.into_iter().fold(text.to_owned(), |text, (id, word)| text.replace(id, word))
    }
}

/// What is known of one kind of message.
struct Row {
    /// Its field in the protocol.
    field: &'static str,
    /// How many answers it gets.
    answers: usize,
    /// How its refusal is kept; `None` where it speaks of nothing.
    kept: Option<&'static str>,
}

/// A new kind of message does not compile here until it has its row, and does not pass until [`messages`] has one.
fn row(message: &Say) -> Row {
    let row = |field, answers, kept| Row { field, answers, kept };
    match message {
        Say::Hello(_) => row("hello", 1, Some("a journal's word")),
        Say::Heartbeat(_) => row("heartbeat", 1, Some("a heartbeat")),
        Say::OfferAnswer(_) => row("offer_answer", 0, Some("an answer to an offer")),
        Say::PermitRequest(_) => row("permit_request", 1, Some("a permit")),
        Say::Report(_) => row("report", 1, Some("a report")),
        Say::InquiryAnswer(_) => row("inquiry_answer", 0, Some("an answer to inquiry")),
        Say::Detach(_) => row("detach", 0, Some("an absence")),
        Say::WelcomeKept(_) => row("welcome_kept", 0, None),
        Say::Pong(_) => row("pong", 0, None),
    }
}

/// The same of what a report says.
fn body(body: &Body) -> &'static str {
    match body {
        Body::StepStarted(_) => "step_started",
        Body::StepEnded(_) => "step_ended",
        Body::AttemptEnded(_) => "attempt_ended",
        Body::CancelReceived(_) => "cancel_received",
        Body::CancelActed(_) => "cancel_acted",
        Body::Reread(_) => "reread",
    }
}

/// One of every kind, and of every kind of report.
fn messages(about: &About) -> Vec<Say> {
    let claim = Some(about.claim.clone());
    let reading = || v1::Reading { state: v1::OperationState::Applied as i32, ..v1::Reading::default() };
    let held = v1::HeldAttempt { claim: claim.clone(), state: v1::JournalState::Ended as i32, step: String::new() };
    let found = Some(v1::reread::Found::Read(reading()));
    let bodies = [
        started("switch"),
        applied("switch"),
        succeeded(),
        Body::CancelReceived(v1::CancelReceived::default()),
        Body::CancelActed(v1::CancelActed { detail: "stopped".to_owned() }),
        Body::Reread(v1::Reread { step: "switch".to_owned(), found }),
    ];
    let told: BTreeSet<String> = bodies.iter().map(|one| body(one).to_owned()).collect();
    assert_eq!(told, fields("holdfast.v1.Report"), "one report of every kind");
    let reports = (1..).zip(bodies).map(|(sequence, body)| Say::Report(report(&about.claim, sequence, body)));
    let accepted = v1::OfferAnswerKind::Accepted as i32;
    let mut all = vec![
        Say::Hello(v1::Hello { held: vec![held], ..hello(66) }),
        Say::Heartbeat(v1::Heartbeat { number: 1, claims: vec![about.claim.clone()], no_room: None }),
        Say::OfferAnswer(v1::OfferAnswer { claim: claim.clone(), kind: accepted, ..v1::OfferAnswer::default() }),
        Say::PermitRequest(v1::PermitRequest {
            claim: claim.clone(),
            step: "switch".to_owned(),
            plan_digest: about.plan_digest.clone(),
        }),
        Say::InquiryAnswer(v1::InquiryAnswer {
            id: about.inquiry.clone(),
            finding: Some(v1::inquiry_answer::Finding::Read(reading())),
        }),
        Say::Detach(v1::Detach { claims: claim.into_iter().collect(), ..v1::Detach::default() }),
        Say::WelcomeKept(v1::WelcomeKept {}),
        Say::Pong(v1::Pong { number: 1 }),
    ];
    all.extend(reports);
    let kinds: BTreeSet<String> = all.iter().map(|message| row(message).field.to_owned()).collect();
    assert_eq!(kinds, fields("holdfast.v1.ConnectRequest"), "one message of every kind");
    all
}

/// Of the one choice in a message.
fn fields(message: &str) -> BTreeSet<String> {
    let described = pool().get_message_by_name(message).expect("it is in the protocol");
    let choice = described.oneofs().next().expect("it has a choice");
    choice.fields().map(|field| field.name().to_owned()).collect()
}

/// All that a session of the thief is answered to that message, as text. `token` is that of its last session, and then of
/// this one.
async fn answers(world: &World, message: Say, claim: &v1::Claim, token: &mut String) -> Vec<String> {
    const LAST: u64 = 99;
    let Row { answers, .. } = row(&message);
    let mut agent = Agent::silent(world, THIEF).await;
    let (hello, then) = match message {
        Say::Hello(hello) => (hello, None),
        other => (hello(66), Some(other)),
    };
    agent.say(Say::Hello(v1::Hello { session_token: token.clone(), ..hello })).await;
    *token = agent.welcome().await.session_token;
    if let Some(message) = then {
        agent.say(message).await;
    }
    // Decided behind it, so that what it was answered is here by then.
    let _after_a_detach_the_stream_is_over =
        agent.try_say(Say::Heartbeat(v1::Heartbeat { number: LAST, claims: vec![claim.clone()], no_room: None })).await;
    let (mut heard, mut last) = (Vec::new(), false);
    while !last || heard.len() < answers {
        match agent.hear().await {
            Some(Hear::HeartbeatAnswer(answer)) if answer.number == LAST => last = true,
            Some(other) => heard.push(format!("{other:?}")),
            None => break,
        }
    }
    heard
}

fn reader(world: &World) -> Reader {
    let store = SqliteStore::open_beside(&world.store(), holdfast_common::id::StoreId(Uuid::nil()), wall());
    store.expect("the store").reader()
}

async fn kept(reader: &Reader, what: &str, id: &str) {
    soon(&format!("the record of {what} about {id}"), async {
        let is_it = |row: &holdfast_coordinator::store::RefusalRow| {
            row.who == format!("agent {THIEF}") && row.what.starts_with(what) && row.what.contains(id)
        };
        while !reader.refusals(1000).expect("read").iter().any(is_it) {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// All that is on record of the deployment.
async fn on_record(admin: &mut Operators) -> String {
    let request = v1::GetDeploymentRequest { deployment: DEPLOYMENT.to_owned() };
    let shown = admin.get_deployment(request).await.expect("there").into_inner().deployment.expect("it");
    let steps: Vec<_> = shown.attempts.iter().map(|attempt| &attempt.steps).collect();
    let state = shown.summary.as_ref().expect("a summary").state();
    let watch = v1::WatchEventsRequest { deployment: DEPLOYMENT.to_owned(), from_sequence: 0, follow: false };
    let mut events = admin.watch_events(watch).await.expect("watched").into_inner();
    let mut hashes = Vec::new();
    while let Some(event) = soon("an event", events.message()).await.expect("a stream") {
        hashes.extend(event.event.map(|event| event.hash));
    }
    let evidence = v1::ListEvidenceRequest { deployment: DEPLOYMENT.to_owned() };
    let evidence = admin.list_evidence(evidence).await.expect("listed").into_inner().evidence;
    format!("{state:?} {steps:?} {hashes:?} {evidence:?}")
}

/// Says every kind of message about that and about what does not exist, as another agent.
async fn walk(world: &World, admin: &mut Operators, about: &About) {
    let (before, none, reader) = (on_record(admin).await, about.made_up(), reader(world));
    let mut token = String::new();
    for (real, made_up) in messages(about).into_iter().zip(messages(&none)) {
        let Row { field, answers: count, kept: refused } = row(&real);
        let told = answers(world, real, &about.claim, &mut token).await;
        let other = answers(world, made_up, &none.claim, &mut token).await;
        let [told, other] = [(about, told), (&none, other)]
            .map(|(about, heard)| heard.iter().map(|one| about.taken_out_of(one)).collect::<Vec<_>>());
        assert_eq!(told, other, "{field}: the answer tells that it exists");
        assert_eq!(told.len(), count, "{field}: {told:?}");
        if let Some(what) = refused {
            for About { claim, inquiry, .. } in [about, &none] {
                kept(&reader, what, if field == "inquiry_answer" { inquiry } else { &claim.attempt }).await;
            }
        }
    }
    assert_eq!(on_record(admin).await, before, "nothing was changed by it");
}

/// All that a refusal tells.
fn told(status: &Status) -> String {
    let mut head = status.metadata().clone().into_headers();
    head.remove("date");
    format!("{:?} {} {:?} {head:?}", status.code(), status.message(), status.details())
}

/// What the method answers to the thief.
async fn call(world: &World, path: &str, about: &About) -> String {
    let (claim, step) = (Some(about.claim.clone()), "switch".to_owned());
    let mut client = world.agents(THIEF).await;
    let status = match path.rsplit('/').next().expect("a path") {
        "UploadLog" => {
            let stream = v1::LogStream::Stdout as i32;
            let chunk =
                v1::UploadLogRequest { claim, step, stream, data: b"mine".to_vec(), kept: 4, ..Default::default() };
            let mut answers = client.upload_log(tokio_stream::iter([chunk])).await.expect("let in").into_inner();
            soon("an answer", answers.message()).await.expect_err("not its own")
        }
        "FetchArchive" => {
            let asked = client.fetch_archive(v1::FetchArchiveRequest { claim, step, offset: 0 });
            soon("an answer", asked).await.expect_err("not its own")
        }
        other => panic!("{other} has no call here: a new method for agents needs one"),
    };
    assert_eq!(status.code(), Code::NotFound, "{path}: {status:?}");
    about.taken_out_of(&told(&status))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_another_agent_says_by_any_method_is_answered_like_what_does_not_exist_and_kept() {
    let world = World::with(|config| drop(config.authority().create(wall()).expect("an authority"))).await;
    let mut admin = world.admin().await;
    let (mut owner, offer) = at_work(&world, &mut admin).await;
    owner.permit(permit(&offer, "switch")).await;
    let claim = offer.claim.clone().expect("a claim");
    let inquiry = Uuid::from_u128(8).to_string();
    let about = About { claim: claim.clone(), inquiry, plan_digest: offer.plan_digest.clone() };
    walk(&world, &mut admin, &about).await;
    let (before, reader) = (on_record(&mut admin).await, reader(&world));
    for method in METHODS.iter().filter(|method| method.demand == Demand::AgentCertificate) {
        match method.path.rsplit('/').next().expect("a path") {
            // Walked above, each kind of message by itself.
            "Connect" => {}
            // Names nothing: who it is for, the certificate says, whatever the request does.
            "Renew" => {
                let key = KeyPair::generate().expect("a key");
                let mut params = CertificateParams::default();
                params.subject_alt_names = vec![SanType::URI("holdfast://agent/web-07".try_into().expect("a URI"))];
                let request = params.serialize_request(&key).expect("a request").der().to_vec();
                let mut client = EnrollServiceClient::new(world.channel(Some(THIEF)).await);
                let renewed = client.renew(v1::RenewRequest { request }).await.expect("its own").into_inner();
                assert_eq!(renewed.certificate.expect("a certificate").agent, THIEF);
            }
            _ => {
                let none = about.made_up();
                let answers = (call(&world, method.path, &about).await, call(&world, method.path, &none).await);
                assert_eq!(answers.0, answers.1, "{}", method.path);
                let what = if method.path.ends_with("UploadLog") { "output" } else { "archive" };
                for about in [&about, &none] {
                    kept(&reader, what, &about.claim.attempt).await;
                }
            }
        }
    }
    assert_eq!(on_record(&mut admin).await, before, "nothing was changed by it");
    assert_eq!(owner.heartbeat(vec![claim]).await, [v1::LeaseAnswer::Renewed], "and the owner goes on");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_another_agent_says_of_an_uncertain_deployment_and_its_inquiry_is_no_word_either() {
    let world = World::new().await;
    let mut admin = world.admin().await;
    let (mut owner, claim) = uncertain_release(&world, &mut admin).await;
    let inspect = v1::InspectDeploymentRequest { deployment: DEPLOYMENT.to_owned(), wait: None };
    admin.inspect_deployment(inspect).await.expect("asked");
    let inquiry = inquiry(&mut owner).await.id;
    walk(&world, &mut admin, &About { claim, inquiry, plan_digest: "0".repeat(64) }).await;
    world.stop().await;
}

async fn inquiry(agent: &mut Agent) -> v1::Inquiry {
    loop {
        match agent.hear().await {
            Some(Hear::Inquiry(inquiry)) => return inquiry,
            Some(_) => {}
            None => panic!("no inquiry came"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recorded_frames_said_again_in_later_sessions_change_nothing() {
    let world = World::new().await;
    let mut admin = world.admin().await;
    let (mut first, offer) = at_work(&world, &mut admin).await;
    let claim = offer.claim.clone().expect("a claim");
    let kind = v1::OfferAnswerKind::Accepted as i32;
    let answer = Say::OfferAnswer(v1::OfferAnswer { claim: Some(claim.clone()), kind, ..Default::default() });
    let asked = permit(&offer, "switch");
    assert_eq!(first.permit(asked.clone()).await.kind(), v1::PermitAnswerKind::Granted);
    let begun = report(&claim, 1, started("switch"));
    assert_eq!(first.report(begun.clone()).await.kind(), v1::DispositionKind::Accepted);

    let mut second = Agent::greeted(&world, "web-07", 7).await;
    assert_eq!(first.bye().await.code, "HF-5005");
    assert!(!first.try_say(answer.clone()).await || first.hear().await.is_none(), "the old session hears nothing more");
    let before = on_record(&mut admin).await;
    second.say(answer.clone()).await;
    let again = second.permit(asked.clone()).await;
    assert_ne!(again.kind(), v1::PermitAnswerKind::Granted, "the step has begun: {again:?}");
    assert_eq!(second.report(begun.clone()).await.kind(), v1::DispositionKind::Duplicate);
    assert_eq!(on_record(&mut admin).await, before);

    let rest = [report(&claim, 2, applied("switch")), report(&claim, 3, succeeded())];
    for said in &rest {
        assert_eq!(second.report(said.clone()).await.kind(), v1::DispositionKind::Accepted);
    }
    let mut third = Agent::greeted(&world, "web-07", 7).await;
    let before = on_record(&mut admin).await;
    third.say(answer).await;
    assert_eq!(third.permit(asked).await.kind(), v1::PermitAnswerKind::Denied);
    for said in std::iter::once(&begun).chain(&rest) {
        assert_eq!(third.report(said.clone()).await.kind(), v1::DispositionKind::Duplicate);
    }
    assert_eq!(third.heartbeat(vec![claim]).await, [v1::LeaseAnswer::Superseded]);
    assert_eq!(on_record(&mut admin).await, before);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn never_started_of_what_its_resource_shows_as_applied_locks_the_agent_and_is_told() {
    let world = World::new().await;
    let mut admin = world.admin().await;
    admin.apply_target(v1::ApplyTargetRequest { file: RELEASE_TARGET.to_owned() }).await.expect("declared");
    let mut agent = Agent::greeted(&world, "web-07", 7).await;
    let file = RELEASE_FILE.replace("\n[[step]]", "\n[lease]\nttl = \"1s\"\n\n[[step]]");
    admin.submit(v1::SubmitRequest { file, ..submission(1) }).await.expect("taken");
    let offer = agent.offer().await;
    let claim = offer.claim.clone().expect("a claim");
    assert_eq!(agent.permit(permit(&offer, "switch")).await.kind(), v1::PermitAnswerKind::Granted);
    soon("the lease to lapse", async {
        let request = || v1::GetDeploymentRequest { deployment: DEPLOYMENT.to_owned() };
        loop {
            let found = admin.get_deployment(request()).await.expect("there").into_inner().deployment.expect("it");
            if found.summary.expect("a summary").state() == v1::DeploymentState::Uncertain {
                return;
            }
        }
    })
    .await;
    let end = Some(v1::StepEnd { kind: v1::StepEndKind::NotStarted as i32, ..v1::StepEnd::default() });
    let never = Body::StepEnded(v1::StepEnded { step: "switch".to_owned(), end, ..v1::StepEnded::default() });
    assert_eq!(agent.report(report(&claim, 1, never)).await.kind(), v1::DispositionKind::Filed);
    let inspect = v1::InspectDeploymentRequest { deployment: DEPLOYMENT.to_owned(), wait: None };
    admin.inspect_deployment(inspect).await.expect("asked");
    let asked = inquiry(&mut agent).await;
    let reading = v1::Reading {
        resource_identity: "site-1".to_owned(),
        state: v1::OperationState::Applied as i32,
        highest_fence: claim.fence,
        ..v1::Reading::default()
    };
    let finding = Some(v1::inquiry_answer::Finding::Read(reading));
    agent.say(Say::InquiryAnswer(v1::InquiryAnswer { id: asked.id, finding })).await;
    let lock = soon("the lock", async {
        loop {
            let agents = admin.list_agents(v1::ListAgentsRequest::default()).await.expect("listed").into_inner().agents;
            if let Some(lock) = agents[0].lock.clone() {
                return lock;
            }
        }
    });
    assert!(lock.await.why.contains("never started"), "and says why");
    soon("the evidence of it", async {
        loop {
            let request = v1::ListEvidenceRequest { deployment: DEPLOYMENT.to_owned() };
            let evidence = admin.list_evidence(request).await.expect("listed").into_inner().evidence;
            if evidence.iter().any(|one| one.kind == "identity_locked") {
                return;
            }
        }
    })
    .await;
    let acts = reader(&world).latest_acts(holdfast_common::time::Wall(i64::MAX), 100).expect("read");
    assert!(acts.iter().any(|act| act.kind == "agent_locked" && act.about == "web-07"), "{acts:?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asks_for_certificates_again_and_again_waits_and_others_do_not() {
    let world = World::with(|config| drop(config.authority().create(wall()).expect("an authority"))).await;
    let key = KeyPair::generate().expect("a key");
    let request = CertificateParams::default().serialize_request(&key).expect("a request").der().to_vec();
    let asked = || v1::RenewRequest { request: request.clone() };
    let mut client = EnrollServiceClient::new(world.channel(Some(THIEF)).await);
    for _ in 0..AT_ONCE {
        client.renew(asked()).await.expect("renewed");
    }
    let refused = client.renew(asked()).await.expect_err("too often");
    assert_eq!((problem(&refused).code.to_string().as_str(), refused.code()), ("HF-4021", Code::ResourceExhausted));
    kept(&reader(&world), "renew its certificate", "").await;
    let mut other = EnrollServiceClient::new(world.channel(Some("web-07")).await);
    other.renew(asked()).await.expect("it did nothing");
    world.stop().await;
}
