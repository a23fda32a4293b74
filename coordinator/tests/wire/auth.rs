//! Who may call what, method by method.

use holdfast_common::time::{Millis, Wall};
use holdfast_coordinator::auth::methods::{Demand, METHODS, method};
use holdfast_coordinator::auth::{Permission, Role};
use holdfast_coordinator::serve::wall;
use holdfast_coordinator::tokens;
use holdfast_proto::json::pool;
use holdfast_proto::v1;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

use crate::world::{World, problem, soon};

/// Calls any method with an empty message, as a client that knows nothing would.
async fn call(channel: &Channel, path: &str, token: Option<&str>) -> Result<(), Status> {
    let mut client = tonic::client::Grpc::new(channel.clone());
    soon("readiness", client.ready()).await.expect("a connection");
    let mut request = Request::new(tokio_stream::iter([()]));
    if let Some(token) = token {
        request.metadata_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
    }
    let path = PathAndQuery::try_from(path).expect("a path");
    let codec: ProstCodec<(), ()> = ProstCodec::default();
    let answer = soon("an answer", client.streaming(request, path, codec)).await?;
    soon("a message", answer.into_inner().message()).await.map(|_| ())
}

fn described() -> Vec<String> {
    let methods = pool().services().flat_map(|service| service.methods().collect::<Vec<_>>());
    methods.map(|method| format!("/{}/{}", method.parent_service().full_name(), method.name())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_method_but_health_is_closed_to_whoever_shows_nothing() {
    let world = World::new().await;
    let channel = world.channel(None).await;
    let paths = described();
    assert!(paths.len() >= 20);
    for path in paths {
        let status = call(&channel, &path, None).await.expect_err(&path);
        assert_eq!(status.code(), Code::Unauthenticated, "{path}: {status:?}");
        let code = problem(&status).code.to_string();
        assert!(["HF-4001", "HF-4004"].contains(&code.as_str()), "{path}: {code}");
    }
    call(&channel, "/grpc.health.v1.Health/Check", None).await.expect("health demands nothing");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_opens_no_operators_method_and_a_token_no_agents_method() {
    let world = World::new().await;
    let token = world.token("anna", Role::Admin, Millis::from_secs(60), wall());
    let (certified, plain) = (world.channel(Some("web-07")).await, world.channel(None).await);
    for row in METHODS {
        let (channel, token) = match row.demand {
            Demand::Nothing => continue,
            Demand::AgentCertificate => (&plain, Some(token.as_str())),
            Demand::JoinToken | Demand::SignedIn | Demand::Token(..) => (&certified, None),
        };
        let status = call(channel, row.path, token).await.expect_err(row.path);
        assert_eq!(status.code(), Code::Unauthenticated, "{}: {status:?}", row.path);
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_viewer_reads_and_nothing_else() {
    let world = World::new().await;
    let token = world.token("vera", Role::Viewer, Millis::from_secs(60), wall());
    let channel = world.channel(None).await;
    for row in METHODS {
        let Demand::Token(permission, _) = row.demand else { continue };
        let answer = call(&channel, row.path, Some(&token)).await;
        let denied = matches!(&answer, Err(status) if status.code() == Code::PermissionDenied);
        assert_eq!(denied, permission != Permission::View, "{}: {answer:?}", row.path);
        if let (true, Err(status)) = (denied, answer) {
            assert_eq!(problem(&status).code.to_string(), "HF-4003");
        }
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_expired_and_revoked_tokens_open_nothing() {
    let world = World::new().await;
    let expired = world.token("old", Role::Admin, Millis::from_secs(1), Wall(1_000_000));
    let revoked = world.token("gone", Role::Admin, Millis::from_secs(60), wall());
    let channel = world.channel(None).await;
    let path = "/holdfast.v1.OperatorService/WhoAmI";
    call(&channel, path, Some(&revoked)).await.expect("valid until it is revoked");
    tokens::revoke(&world.store(), &"gone".parse().unwrap(), wall()).expect("revoked");
    let code = async |token: &str| {
        let status = call(&channel, path, Some(token)).await.expect_err(token);
        assert_eq!(status.code(), Code::Unauthenticated);
        problem(&status).code.to_string()
    };
    assert_eq!(code(&expired).await, "HF-4002");
    assert_eq!(code(&revoked).await, "HF-4001");
    for wrong in ["hf_", "hf_0000", &"x".repeat(512), &"x".repeat(600), &revoked[..revoked.len() - 1]] {
        assert_eq!(code(wrong).await, "HF-4001", "{wrong}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_path_that_is_no_method_reaches_nothing_whatever_is_shown() {
    let world = World::new().await;
    let token = world.token("anna", Role::Admin, Millis::from_secs(60), wall());
    let channel = world.channel(Some("web-07")).await;
    for path in [
        "/holdfast.v1.OperatorService/Unlock",
        "/holdfast.v1.OperatorService/submit",
        "//holdfast.v1.OperatorService/Submit",
        "/holdfast.v1.OperatorService/Submit/",
        "/holdfast.v1.AgentService/../OperatorService/Submit",
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    ] {
        assert_eq!(method(path), None);
        let status = call(&channel, path, Some(&token)).await.expect_err(path);
        assert_eq!(status.code(), Code::Unimplemented, "{path}: {status:?}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_says_who_one_is_and_until_when() {
    let world = World::new().await;
    let mut admin = world.admin().await;
    let me = admin.who_am_i(v1::WhoAmIRequest {}).await.expect("signed in").into_inner();
    let everything = v1::Grant { role: v1::Role::Admin as i32, targets: "*".to_owned() };
    assert_eq!((me.operator.as_str(), me.grants), ("anna", vec![everything]));
    assert!(me.expires_at.is_some() && !me.position.expect("a store").store.is_empty());
    world.stop().await;
}
