//! The rules of a session.

use holdfast_proto::v1;
use holdfast_proto::v1::connect_request::Message as Say;
use holdfast_proto::v1::connect_response::Message as Hear;
use tonic::codegen::http::uri::PathAndQuery;
use tonic_prost::ProstCodec;

use crate::agent::{Agent, hello};
use crate::world::{World, soon};

fn claim(fence: u64) -> v1::Claim {
    v1::Claim { deployment: uuid::Uuid::from_u128(1).to_string(), attempt: uuid::Uuid::from_u128(2).to_string(), fence }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_welcome_says_who_the_agent_is_and_where_the_store_stands() {
    let world = World::new().await;
    let mut agent = Agent::silent(&world, "web-07").await;
    agent.say(Say::Hello(hello(1))).await;
    let welcome = agent.welcome().await;
    assert_eq!((welcome.agent.as_str(), welcome.protocol_version), ("web-07", 1));
    assert_eq!(welcome.position.expect("a position").epoch, 1);
    assert!(welcome.session_token.len() > 60 && welcome.max_log_bytes > 0);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_hello_of_this_version_gets_a_goodbye_with_its_code() {
    let world = World::new().await;
    let heartbeat = Say::Heartbeat(v1::Heartbeat::default());
    let cases = [
        (Some(heartbeat), "HF-5003", "first message"),
        (None, "HF-5003", "message"),
        (Some(Say::Hello(v1::Hello { protocol_versions: vec![2, 99], ..hello(1) })), "HF-5004", "[2, 99]"),
        (Some(Say::Hello(v1::Hello { protocol_versions: vec![], ..hello(1) })), "HF-5004", "[]"),
        (Some(Say::Hello(v1::Hello { incarnation: "x".to_owned(), ..hello(1) })), "HF-5003", "hello.incarnation"),
        (Some(Say::Hello(v1::Hello { adapters: vec!["\u{7}".to_owned()], ..hello(1) })), "HF-5003", "hello.adapters"),
    ];
    for (first, code, named) in cases {
        let mut agent = Agent::silent(&world, "web-07").await;
        match first {
            Some(message) => agent.say(message).await,
            None => agent.say_nothing().await,
        }
        let bye = agent.bye().await;
        assert_eq!(bye.code, code, "{bye:?}");
        assert!(bye.detail.contains(named), "{named}: {bye:?}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_newest_session_of_an_agent_replaces_the_older() {
    let world = World::new().await;
    let mut older = Agent::greeted(&world, "web-07", 1).await;
    let mut newer = Agent::greeted(&world, "web-07", 1).await;
    assert_eq!(older.bye().await.code, "HF-5005");
    assert_eq!(newer.heartbeat(vec![claim(3)]).await, [v1::LeaseAnswer::Superseded], "the newer one goes on");
    let mut admin = world.admin().await;
    let agents = admin.list_agents(v1::ListAgentsRequest::default()).await.unwrap().into_inner().agents;
    assert_eq!(agents.len(), 1);
    assert_eq!(agents[0].contact(), v1::Contact::Connected);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_breaks_the_protocol_ends_its_session_with_the_field_named() {
    let world = World::new().await;
    let offer_answer =
        |kind, reason| Say::OfferAnswer(v1::OfferAnswer { claim: Some(claim(3)), kind, reason, ..Default::default() });
    let permit = |claim, step: &str, digest: &str| {
        Say::PermitRequest(v1::PermitRequest { claim, step: step.to_owned(), plan_digest: digest.to_owned() })
    };
    let digest = "a".repeat(64);
    let report = |body| {
        Say::Report(v1::Report {
            claim: Some(claim(3)),
            sequence: 1,
            said_at: Some(prost_types::Timestamp::default()),
            body,
        })
    };
    let end = |kind, class| {
        report(Some(v1::report::Body::StepEnded(v1::StepEnded {
            step: "switch".to_owned(),
            end: Some(v1::StepEnd { kind, class, maybe_partial: false }),
            ..v1::StepEnded::default()
        })))
    };
    let reread = |detail| {
        let found = Some(v1::reread::Found::Failed(v1::RereadFailed { detail }));
        report(Some(v1::report::Body::Reread(v1::Reread { step: "app".to_owned(), found })))
    };
    let cases = [
        (Say::Hello(hello(1)), "one Hello"),
        (Say::Heartbeat(v1::Heartbeat { number: 1, claims: vec![claim(3), claim(0)], no_room: None }), "claim.fence"),
        (offer_answer(0, 0), "offer_answer.kind"),
        (offer_answer(99, 0), "offer_answer.kind"),
        (offer_answer(2, 0), "offer_answer.reason"),
        (permit(None, "switch", &digest), "claim"),
        (permit(Some(claim(0)), "switch", &digest), "claim.fence"),
        (permit(Some(claim(3)), "../x", &digest), "permit_request.step"),
        (permit(Some(claim(3)), "switch", "A"), "permit_request.plan_digest"),
        (report(None), "body"),
        (end(0, 0), "end.kind"),
        (end(77, 0), "end.kind"),
        (end(2, 0), "end.class"),
        (report(Some(v1::report::Body::CancelActed(v1::CancelActed { detail: "x".repeat(100_000) }))), "report.detail"),
        (report(Some(v1::report::Body::Reread(v1::Reread { step: "app".to_owned(), found: None }))), "found"),
        (reread("x".repeat(100_000)), "report.detail"),
        (Say::InquiryAnswer(v1::InquiryAnswer { id: String::new(), finding: None }), "inquiry_answer.id"),
        (Say::InquiryAnswer(v1::InquiryAnswer { id: claim(1).attempt, finding: None }), "inquiry_answer.finding"),
    ];
    for (message, named) in cases {
        let mut agent = Agent::greeted(&world, "web-07", 1).await;
        agent.say(message.clone()).await;
        let bye = agent.bye().await;
        assert_eq!(bye.code, "HF-5003", "{message:?}: {bye:?}");
        assert!(bye.detail.contains(named), "{named}: {bye:?}");
    }
    let mut admin = world.admin().await;
    let none = admin.list_deployments(v1::ListDeploymentsRequest::default()).await.unwrap().into_inner();
    assert!(none.deployments.is_empty());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_of_random_bytes_are_refused_and_the_coordinator_goes_on() {
    let world = World::new().await;
    let channel = world.channel(Some("web-07")).await;
    for seed in 0_u32..64 {
        // A frame that is a message of another kind: its bytes stand where a Hello's fields would.
        let bytes: Vec<u8> = (0..seed * 7).map(|at| (at.wrapping_mul(2_654_435_761) ^ seed) as u8).collect();
        let mut client = tonic::client::Grpc::new(channel.clone());
        soon("readiness", client.ready()).await.expect("a connection");
        let codec: ProstCodec<Vec<u8>, v1::ConnectResponse> = ProstCodec::default();
        let path = PathAndQuery::from_static("/holdfast.v1.AgentService/Connect");
        let request = tonic::Request::new(tokio_stream::iter([bytes]));
        let mut answers = soon("a stream", client.streaming(request, path, codec)).await.unwrap().into_inner();
        let answer = soon("an answer", answers.message()).await;
        let said = answer.ok().flatten().and_then(|response| response.message);
        let refused = matches!(&said, Some(v1::connect_response::Message::Bye(bye)) if bye.code.starts_with("HF-500"));
        assert!(refused, "seed {seed}: {said:?}");
    }
    Agent::greeted(&world, "web-07", 1).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_above_the_bound_is_refused() {
    let world = World::new().await;
    let mut agent = Agent::greeted(&world, "web-07", 1).await;
    let reason = "x".repeat(holdfast_proto::MAX_MESSAGE_BYTES + 1);
    agent.say(Say::Detach(v1::Detach { reason, ..Default::default() })).await;
    assert_eq!(agent.bye().await.code, "HF-5003");
    Agent::greeted(&world, "web-07", 1).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_is_told_to_every_session_and_is_over_in_time() {
    let world = World::new().await;
    let mut agent = Agent::greeted(&world, "web-07", 1).await;
    let (bye, ()) = tokio::join!(agent.bye(), world.stop());
    assert_eq!(bye.code, "HF-6004");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_waits_for_nobody_who_says_nothing() {
    let world = World::new().await;
    let mut admin = world.admin().await;
    crate::requests::declare(&mut admin).await;
    crate::requests::submit(&mut admin, 1).await;
    let watch = v1::WatchEventsRequest { deployment: "shop@prod#1".to_owned(), from_sequence: 0, follow: true };
    let mut events = admin.watch_events(watch).await.expect("watched").into_inner();
    let silent_socket = tokio::net::TcpStream::connect(world.address).await.expect("connected");
    let silent_session = Agent::silent(&world, "web-07").await;
    world.stop().await;
    let end = soon("the end of the events", async {
        loop {
            match events.message().await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("the end of a watch says why"),
                Err(status) => return status,
            }
        }
    });
    assert_eq!(crate::world::problem(&end.await).code.to_string(), "HF-6004");
    drop((silent_socket, silent_session));
}

/// The Hello of one process of an agent, with the token of its last Welcome.
fn of_process(instance: &str, token: &str) -> Say {
    Say::Hello(v1::Hello { instance: instance.to_owned(), session_token: token.to_owned(), ..hello(1) })
}

async fn said(world: &World, first: Say) -> Agent {
    let agent = Agent::silent(world, "web-07").await;
    agent.say(first).await;
    agent
}

async fn ping(agent: &mut Agent) -> u64 {
    match agent.hear().await {
        Some(Hear::Ping(v1::Ping { number })) => number,
        other => panic!("no ping: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_process_beside_one_that_answers_is_a_copy_and_the_session_stands() {
    let world = World::new().await;
    let mut older = said(&world, of_process("one", "")).await;
    let token = older.welcome().await.session_token;
    older.say(Say::WelcomeKept(v1::WelcomeKept {})).await;
    let mut newer = said(&world, of_process("two", &token)).await;
    let number = ping(&mut older).await;
    older.say(Say::Pong(v1::Pong { number: number + 1 })).await;
    older.say(Say::Pong(v1::Pong { number })).await;
    let bye = newer.bye().await;
    assert_eq!(bye.code, "HF-4018");
    assert!(bye.detail.contains("in another process"), "{bye:?}");
    assert_eq!(older.heartbeat(vec![claim(3)]).await, [v1::LeaseAnswer::Superseded], "the older one goes on");
    let mut admin = world.admin().await;
    let agents = admin.list_agents(v1::ListAgentsRequest::default()).await.unwrap().into_inner().agents;
    assert!(agents[0].lock.is_some() && agents[0].contact() == v1::Contact::Connected, "{agents:?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_process_waits_for_one_that_does_not_answer_and_is_welcome_once_that_is_gone() {
    let world = World::new().await;
    let mut older = said(&world, of_process("one", "")).await;
    let token = older.welcome().await.session_token;
    older.say(Say::WelcomeKept(v1::WelcomeKept {})).await;
    let mut newer = said(&world, of_process("two", &token)).await;
    ping(&mut older).await;
    assert_eq!(newer.bye().await.code, "HF-5001", "it is told to try again, and nothing is concluded");
    let mut admin = world.admin().await;
    let agents = admin.list_agents(v1::ListAgentsRequest::default()).await.unwrap().into_inner().agents;
    assert!(agents[0].lock.is_none() && agents[0].contact() == v1::Contact::Connected, "{agents:?}");

    // The end of the older one is seen while the newer one waits.
    let mut newer = said(&world, of_process("two", &token)).await;
    ping(&mut older).await;
    drop(older);
    let token = newer.welcome().await.session_token;
    newer.say(Say::WelcomeKept(v1::WelcomeKept {})).await;
    // The same process again: nobody is asked.
    let mut again = said(&world, of_process("two", &token)).await;
    again.welcome().await;
    assert_eq!(newer.bye().await.code, "HF-5005");
    world.stop().await;
}
