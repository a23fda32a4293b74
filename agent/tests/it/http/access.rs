//! Each credential set does its part alone, and its secrets stay where they belong.

use holdfast_agent::adapters::system::Call;
use holdfast_common::outcome::OperationState;

use super::REFUSED_RESOURCE;
use super::api::{DEPLOY, FENCE, INSPECT};
use super::scene::{Ended, Scene, change};
use crate::support::fence;

#[test]
fn each_token_does_its_part_and_no_other() {
    let scene = Scene::new();
    let apply = || Call::Apply { fence: fence(1), archive: None, work: scene.folder.0.clone() };
    let raise = || Call::Raise { fence: fence(2) };
    let run = |call, token| Ended::of(scene.command(&change(1), call, token).output().unwrap());
    for token in [INSPECT, FENCE, "nobody-knows-this"] {
        let ended = run(apply(), token);
        assert!(ended.with(REFUSED_RESOURCE).said.contains("the API answered 40"), "{ended:?}");
        assert!(!ended.said.contains("nobody-knows-this"), "{ended:?}");
    }
    for token in [DEPLOY, INSPECT, "nobody-knows-this"] {
        assert_ne!(run(raise(), token).exit, Some(0), "{token}");
    }
    run(Call::Inspect, "nobody-knows-this").with(REFUSED_RESOURCE);
    let reading = run(Call::Inspect, INSPECT).reading();
    assert_eq!((reading.state, reading.highest_fence), (OperationState::NotApplied, None));
    run(apply(), DEPLOY).with(0);
    run(raise(), FENCE).with(0);
}

#[test]
fn a_token_can_be_a_file_or_a_header_of_any_name() {
    let scene = Scene::new();
    let credentials = scene.folder.0.join("set");
    std::fs::create_dir(&credentials).unwrap();
    std::fs::write(credentials.join("bearer"), format!("{INSPECT}\n")).unwrap();
    let mut command = scene.command(&change(1), Call::Inspect, "");
    command.env_remove("HTTP_BEARER").env("HOLDFAST_CREDENTIALS", &credentials);
    Ended::of(command.output().unwrap()).with(0);
    let mut command = scene.command(&change(1), Call::Inspect, "");
    command.env_remove("HTTP_BEARER").env("HTTP_HEADER_NAME", "authorization");
    Ended::of(command.env("HTTP_HEADER_VALUE", format!("Bearer {INSPECT}")).output().unwrap()).with(0);
    let mut command = scene.command(&change(1), Call::Inspect, "");
    let ended = Ended::of(command.env_remove("HTTP_BEARER").env("HTTP_HEADER_NAME", "x-key").output().unwrap());
    assert!(ended.with(REFUSED_RESOURCE).said.contains("HTTP_HEADER_VALUE"), "{ended:?}");
}

#[test]
fn a_secret_does_not_go_in_plain_over_the_network() {
    let mut scene = Scene::new();
    // An address of documentation: nobody is there, and nobody is asked.
    scene.http.url = "http://192.0.2.1:1".to_owned();
    let ended = scene.inspect(&change(1));
    assert!(ended.with(REFUSED_RESOURCE).said.contains("would carry a secret over the network as it is"), "{ended:?}");
}
