//! Hosts that join, and agents that go.

use std::collections::HashMap;

use holdfast_coordinator::auth::guesses::MOST_WRONG;
use holdfast_coordinator::serve::wall;
use holdfast_coordinator::store::sqlite::SqliteStore;
use holdfast_coordinator::store::{Digest, Reader, Store};
use holdfast_net::bearer::Bearer;
use holdfast_proto::v1;
use holdfast_proto::v1::connect_request::Message as Say;
use holdfast_proto::v1::enroll_service_client::EnrollServiceClient;
use rcgen::{CertificateParams, KeyPair};
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::agent::{Agent, hello, report, started};
use crate::requests::at_work;
use crate::world::{Operators, World, problem, soon};

/// With an authority of its own beside the test's.
async fn signing() -> World {
    World::with(|config| drop(config.authority().create(wall()).expect("an authority"))).await
}

fn reader(world: &World) -> Reader {
    let store = SqliteStore::open_beside(&world.store(), holdfast_common::id::StoreId(uuid::Uuid::nil()), wall());
    store.expect("the store").reader()
}

fn acts(world: &World) -> Vec<holdfast_coordinator::store::ActRow> {
    reader(world).latest_acts(holdfast_common::time::Wall(i64::MAX), 100).expect("read")
}

fn request(key: &KeyPair) -> Vec<u8> {
    CertificateParams::default().serialize_request(key).expect("a request").der().to_vec()
}

async fn token(admin: &mut Operators, agent: &str, seconds: i64) -> v1::CreateJoinTokenResponse {
    let labels = HashMap::from([("role".to_owned(), "shop".to_owned()), ("env".to_owned(), "prod".to_owned())]);
    let life = Some(prost_types::Duration { seconds, nanos: 0 });
    let asked = v1::CreateJoinTokenRequest { labels, life, agent: agent.to_owned() };
    admin.create_join_token(asked).await.expect("made").into_inner()
}

async fn join(world: &World, secret: &str, name: &str, key: &KeyPair) -> Result<v1::EnrollResponse, Status> {
    let bearer = Bearer::new(secret).expect("sound");
    let mut client = EnrollServiceClient::with_interceptor(world.channel(None).await, bearer);
    let asked = v1::EnrollRequest { name: name.to_owned(), request: request(key), ..v1::EnrollRequest::default() };
    soon("an answer", client.enroll(asked)).await.map(tonic::Response::into_inner)
}

async fn channel(world: &World, joined: &v1::EnrollResponse, key: &KeyPair) -> Channel {
    let certificate = joined.certificate.as_ref().expect("a certificate");
    world.channel_showing(&certificate.chain[0], key).await
}

async fn session(channel: Channel) -> (Agent, v1::Welcome) {
    let mut agent = Agent::over(channel).await.expect("let in");
    agent
        .say(Say::Hello(v1::Hello { labels: HashMap::from([("role".to_owned(), "bank".to_owned())]), ..hello(1) }))
        .await;
    let welcome = agent.welcome().await;
    (agent, welcome)
}

fn code(status: &Status) -> String {
    problem(status).code.to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_joins_once_by_a_token_and_is_selected_by_the_tokens_labels_whatever_it_says() {
    let world = signing().await;
    let mut admin = world.admin().await;
    let made = token(&mut admin, "", 60).await;
    assert_eq!(made.ca_fingerprint.len(), 64);
    let key = KeyPair::generate().expect("a key");
    let joined = join(&world, &made.secret, "web-01", &key).await.expect("taken in");
    let certificate = joined.certificate.clone().expect("a certificate");
    assert_eq!((certificate.agent.as_str(), joined.labels.len()), ("web-01", 2));
    assert!(certificate.authorities.len() >= 2, "its own authority and the one that the coordinator presents");

    // It is listed before it ever speaks.
    let agents = admin.list_agents(v1::ListAgentsRequest::default()).await.expect("listed").into_inner().agents;
    assert_eq!((agents.len(), agents[0].name.as_str(), agents[0].contact()), (1, "web-01", v1::Contact::Silent));
    assert_eq!((agents[0].last_heard_at, agents[0].labels["role"].as_str()), (None, "shop"));
    assert_eq!((&agents[0].fingerprint, agents[0].enrolment.is_some()), (&certificate.fingerprint, true));
    let (_agent, welcome) = session(channel(&world, &joined, &key).await).await;
    assert_eq!(welcome.agent, "web-01");
    let agents = admin.list_agents(v1::ListAgentsRequest::default()).await.expect("listed").into_inner().agents;
    assert_eq!((agents[0].labels["role"].as_str(), agents[0].labels["env"].as_str()), ("shop", "prod"));
    let settled = soon("what is stored of it", async {
        loop {
            let agents = admin.list_agents(v1::ListAgentsRequest::default()).await.expect("listed").into_inner().agents;
            if !agents[0].fingerprint.is_empty() {
                return agents[0].clone();
            }
        }
    });
    let settled = settled.await;
    assert_eq!(settled.fingerprint, certificate.fingerprint);
    assert_eq!(settled.certificate_expires_at, certificate.expires_at);

    // The secret is nowhere, its hash is.
    let bytes: Vec<u8> = std::fs::read_dir(world.data())
        .expect("the data folder")
        .flat_map(|entry| std::fs::read(entry.expect("an entry").path()).unwrap_or_default())
        .collect();
    let holds = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(holds(&Digest::of_bytes(made.secret.as_bytes()).to_string()) && !holds(&made.secret[4..]));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_token_with_the_same_key_is_the_same_enrolment_and_with_another_it_is_refused_told_and_kept() {
    let world = signing().await;
    let mut admin = world.admin().await;
    let made = token(&mut admin, "", 60).await;
    let (key, other) = (KeyPair::generate().expect("a key"), KeyPair::generate().expect("a key"));
    join(&world, &made.secret, "web-01", &key).await.expect("taken in");
    let again = join(&world, &made.secret, "web-01", &key).await.expect("an answer that was lost costs nothing");
    let (_agent, welcome) = session(channel(&world, &again, &key).await).await;
    assert_eq!(welcome.agent, "web-01");

    let stolen = join(&world, &made.secret, "web-02", &other).await.expect_err("used");
    assert_eq!((code(&stolen).as_str(), stolen.code()), ("HF-4013", Code::PermissionDenied));
    assert!(stolen.message().contains("web-01"), "{stolen}");
    let renamed = join(&world, &made.secret, "web-02", &key).await.expect_err("used by another name");
    assert_eq!(code(&renamed), "HF-4013");
    let listed = admin.list_join_tokens(v1::ListJoinTokensRequest::default()).await.expect("listed").into_inner();
    assert_eq!(
        (listed.tokens[0].used_by.as_str(), listed.tokens[0].standing()),
        ("web-01", v1::JoinTokenStanding::Used)
    );
    let kept = soon("the refusal", async {
        loop {
            let refusals = reader(&world).refusals(10).expect("read");
            if let Some(row) = refusals.into_iter().find(|row| row.what == "join as web-02" && row.who == "127.0.0.1") {
                return row;
            }
        }
    });
    assert!(kept.await.why.contains("was used"));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_wrong_with_a_token_is_told_by_its_code_and_no_token_takes_a_name_from_a_host() {
    let world = signing().await;
    let mut admin = world.admin().await;
    let key = KeyPair::generate().expect("a key");
    let only = token(&mut admin, "web-09", 60).await;
    let other_name = join(&world, &only.secret, "web-01", &key).await.expect_err("for another name");
    assert!(code(&other_name) == "HF-4003" && other_name.message().contains("web-09"), "{other_name}");
    join(&world, &only.secret, "web-09", &key).await.expect("the refusal did not use it up");

    let next = token(&mut admin, "", 60).await;
    let fresh = KeyPair::generate().expect("a key");
    let taken = join(&world, &next.secret, "web-09", &fresh).await.expect_err("the name is taken");
    assert_eq!((code(&taken).as_str(), taken.code()), ("HF-4014", Code::FailedPrecondition));

    let id = next.token.expect("the token").id;
    let revoked = admin.revoke_join_token(v1::RevokeJoinTokenRequest { id: id.clone() }).await.expect("taken back");
    assert_eq!(revoked.into_inner().token.expect("it").standing(), v1::JoinTokenStanding::Revoked);
    let unknown = join(&world, &next.secret, "web-01", &fresh).await.expect_err("taken back");
    assert_eq!(code(&unknown), "HF-4011");
    let twice = admin.revoke_join_token(v1::RevokeJoinTokenRequest { id }).await.expect_err("it was");
    assert_eq!(code(&twice), "HF-4006");

    let bad = admin.create_join_token(v1::CreateJoinTokenRequest {
        life: Some(prost_types::Duration { seconds: 8 * 86_400, nanos: 0 }),
        ..v1::CreateJoinTokenRequest::default()
    });
    assert_eq!(bad.await.expect_err("longer than allowed").code(), Code::InvalidArgument);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_join_token_is_good_for_its_time_only() {
    let world = signing().await;
    let mut admin = world.admin().await;
    let made = token(&mut admin, "", 1).await;
    let end = made.token.expect("the token").expires_at.expect("an end");
    soon("its end", async {
        while wall().0 / 1_000_000 <= end.seconds {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
    let expired = join(&world, &made.secret, "web-01", &KeyPair::generate().expect("a key")).await.expect_err("over");
    assert_eq!(code(&expired), "HF-4012");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn guesses_are_shut_out_and_told_and_agents_are_not_affected() {
    let world = signing().await;
    let mut admin = world.admin().await;
    let good = token(&mut admin, "", 60).await;
    let key = KeyPair::generate().expect("a key");
    for number in 1..=MOST_WRONG {
        let secret = format!("hfj_{}", "0".repeat(63) + &format!("{number:x}"));
        let wrong = join(&world, &secret, "web-01", &key).await.expect_err("no such token");
        let expected = if number < MOST_WRONG { "HF-4011" } else { "HF-4015" };
        assert_eq!(code(&wrong), expected, "{number}");
    }
    let shut_out = join(&world, &good.secret, "web-01", &key).await.expect_err("not even looked at");
    assert_eq!(code(&shut_out), "HF-4015");
    soon("the alert", async {
        while !reader(&world).refusals(100).expect("read").iter().any(|row| row.why.contains("too many wrong")) {}
    })
    .await;
    // Who has a certificate, or signs in, is somebody else.
    Agent::greeted(&world, "web-07", 1).await;
    admin.who_am_i(v1::WhoAmIRequest {}).await.expect("signed in");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_coordinator_without_a_key_to_sign_with_says_so_and_the_token_stays_good() {
    let world = World::new().await;
    let mut admin = world.admin().await;
    let made = token(&mut admin, "", 60).await;
    let key = KeyPair::generate().expect("a key");
    let closed = join(&world, &made.secret, "web-01", &key).await.expect_err("no authority");
    assert_eq!((code(&closed).as_str(), closed.code()), ("HF-4010", Code::FailedPrecondition));
    assert!(problem(&closed).next.iter().any(|line| line.contains("ca create")), "{closed}");
    let listed = admin.list_join_tokens(v1::ListJoinTokensRequest::default()).await.expect("listed").into_inner();
    assert_eq!(listed.tokens[0].standing(), v1::JoinTokenStanding::Pending);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_renews_its_certificate_and_both_count() {
    let world = signing().await;
    let mut admin = world.admin().await;
    let made = token(&mut admin, "", 60).await;
    let (key, next) = (KeyPair::generate().expect("a key"), KeyPair::generate().expect("a key"));
    let joined = join(&world, &made.secret, "web-01", &key).await.expect("taken in");
    let (mut older, _) = session(channel(&world, &joined, &key).await).await;
    let mut client = EnrollServiceClient::new(channel(&world, &joined, &key).await);
    let renewed = client.renew(v1::RenewRequest { request: request(&next) }).await.expect("renewed").into_inner();
    let certificate = renewed.certificate.expect("a certificate");
    assert_eq!(certificate.agent, "web-01");
    let answers = older.heartbeat(Vec::new()).await;
    assert!(answers.is_empty(), "the session goes on");
    let shown = world.channel_showing(&certificate.chain[0], &next).await;
    assert!(Agent::over(shown).await.is_ok());
    let nobody = EnrollServiceClient::new(world.channel(None).await).renew(v1::RenewRequest::default()).await;
    assert_eq!(nobody.expect_err("no certificate").code(), Code::Unauthenticated);
    let damaged = client.renew(v1::RenewRequest { request: vec![1, 2, 3] }).await.expect_err("no request");
    assert_eq!((code(&damaged).as_str(), damaged.code()), ("HF-4016", Code::InvalidArgument));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removed_agent_is_out_at_once_can_not_report_and_frees_nothing_until_it_joins_anew() {
    let world = signing().await;
    let mut admin = world.admin().await;
    let (mut agent, offer) = at_work(&world, &mut admin).await;
    let claim = offer.claim.clone().expect("a claim");
    let remove = |confirm: &str, reason: &str| v1::RemoveAgentRequest {
        agent: "web-07".to_owned(),
        confirm: confirm.to_owned(),
        reason: reason.to_owned(),
    };
    assert_eq!(code(&admin.remove_agent(remove("web-08", "gone")).await.expect_err("not confirmed")), "HF-3004");
    assert_eq!(code(&admin.remove_agent(remove("web-07", " ")).await.expect_err("no reason")), "HF-3007");
    let removed = admin.remove_agent(remove("web-07", "stolen")).await.expect("removed").into_inner();
    assert!(removed.agent.expect("it").removed);
    assert_eq!(agent.bye().await.code, "HF-4017");
    // A late word on the old stream comes to nothing.
    let _closed = agent.try_say(Say::Report(report(&claim, 1, started("switch")))).await;

    let refused = Agent::over(world.channel(Some("web-07")).await).await.err().expect("refused before any message");
    assert_eq!((code(&refused).as_str(), refused.code()), ("HF-4017", Code::PermissionDenied));
    let target = v1::GetTargetRequest { target: "shop@prod".to_owned() };
    let target = admin.get_target(target).await.expect("there").into_inner().target.expect("the target");
    assert!(format!("{target:?}").contains("shop@prod#1"), "it still holds the target: {target:?}");
    assert!(acts(&world).iter().any(|act| act.kind == "agent_removed" && act.about == "web-07"));

    let made = token(&mut admin, "", 60).await;
    let key = KeyPair::generate().expect("a key");
    let joined = join(&world, &made.secret, "web-07", &key).await.expect("it joins anew");
    let (_agent, welcome) = session(channel(&world, &joined, &key).await).await;
    assert_eq!(welcome.agent, "web-07");
    let older = Agent::over(world.channel(Some("web-07")).await).await.err().expect("from before the removal");
    assert_eq!(code(&older), "HF-4017");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_certificate_opens_nothing_and_the_agents_other_ones_do() {
    let world = signing().await;
    let mut admin = world.admin().await;
    let made = token(&mut admin, "", 60).await;
    let key = KeyPair::generate().expect("a key");
    let first = join(&world, &made.secret, "web-01", &key).await.expect("taken in");
    let second = join(&world, &made.secret, "web-01", &key).await.expect("the same enrolment");
    let (mut agent, _) = session(channel(&world, &first, &key).await).await;
    let fingerprint = first.certificate.as_ref().expect("a certificate").fingerprint.clone();
    let asked = |confirm: &str| v1::RevokeCertificateRequest {
        fingerprint: fingerprint.to_uppercase(),
        reason: "lost".to_owned(),
        confirm: confirm.to_owned(),
    };
    for confirm in ["", "web-02"] {
        let refused = admin.revoke_certificate(asked(confirm)).await.expect_err("another name");
        assert_eq!(code(&refused), "HF-3004");
    }
    let life = Some(prost_types::Duration { seconds: 60, nanos: 0 });
    let useless = v1::CreateJoinTokenRequest { life, agent: "web-01".to_owned(), ..Default::default() };
    let taken = admin.create_join_token(useless).await.expect_err("it would let nobody in");
    assert_eq!(code(&taken), "HF-4014");
    let revoked = admin.revoke_certificate(asked("web-01")).await.expect("revoked").into_inner();
    assert_eq!(revoked.agent, "web-01");
    assert_eq!(agent.bye().await.code, "HF-4017");
    let refused = Agent::over(channel(&world, &first, &key).await).await.err().expect("refused");
    assert_eq!(code(&refused), "HF-4017");
    let mut renewing = EnrollServiceClient::new(channel(&world, &first, &key).await);
    let refused = renewing.renew(v1::RenewRequest { request: request(&key) }).await.expect_err("refused");
    assert_eq!(code(&refused), "HF-4017");
    Agent::over(channel(&world, &second, &key).await).await.map(drop).expect("another certificate");
    world.stop().await;
}
