//! Reflection: whoever may read is told the protocol, nobody else.

use holdfast_common::time::Millis;
use holdfast_coordinator::auth::Role;
use holdfast_coordinator::serve::wall;
use holdfast_net::bearer::Bearer;
use prost::Message as _;
use prost_types::FileDescriptorProto;
use tonic::Code;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

use crate::world::{World, soon};

fn ask(request: MessageRequest) -> ServerReflectionRequest {
    ServerReflectionRequest { host: String::new(), message_request: Some(request) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reflection_tells_the_protocol_to_who_may_read_and_to_nobody_else() {
    let world = World::new().await;
    let channel = world.channel(None).await;
    let requests = || {
        tokio_stream::iter([
            ask(MessageRequest::ListServices(String::new())),
            ask(MessageRequest::FileContainingSymbol("holdfast.v1.OperatorService.Submit".to_owned())),
            ask(MessageRequest::FileContainingSymbol("holdfast.v1.NoSuchThing".to_owned())),
        ])
    };
    let refused = ServerReflectionClient::new(channel.clone()).server_reflection_info(requests()).await;
    assert_eq!(refused.expect_err("no token").code(), Code::Unauthenticated);

    let token = world.token("vera", Role::Viewer, Millis::from_secs(60), wall());
    let bearer = Bearer::new(&token).expect("sound");
    let mut client = ServerReflectionClient::with_interceptor(channel, bearer);
    let answer = soon("an answer", client.server_reflection_info(requests())).await.expect("a viewer may read");
    let mut answers = answer.into_inner();
    let first = soon("an answer", answers.message()).await.expect("no error").expect("an answer");
    let MessageResponse::ListServicesResponse(list) = first.message_response.expect("one") else {
        panic!("not a list")
    };
    let mut names: Vec<String> = list.service.into_iter().map(|service| service.name).collect();
    names.sort();
    assert_eq!(
        names,
        [
            "grpc.health.v1.Health",
            "grpc.reflection.v1.ServerReflection",
            "holdfast.v1.AgentService",
            "holdfast.v1.EnrollService",
            "holdfast.v1.OperatorService"
        ]
    );
    let second = soon("an answer", answers.message()).await.expect("no error").expect("an answer");
    let MessageResponse::FileDescriptorResponse(files) = second.message_response.expect("one") else {
        panic!("not a file")
    };
    let file = FileDescriptorProto::decode(files.file_descriptor_proto[0].as_slice()).expect("a descriptor");
    assert_eq!(file.name(), "holdfast/v1/operator.proto");
    assert!(file.service.iter().any(|service| service.name() == "OperatorService"));
    let unknown = soon("an answer", answers.message()).await.expect_err("no such thing");
    assert_eq!(unknown.code(), Code::NotFound);
    world.stop().await;
}
