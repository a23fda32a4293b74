//! Tokens over the API: made within what their maker holds, shown once, taken back at once.

use holdfast_coordinator::serve::wall;
use holdfast_coordinator::store::sqlite::SqliteStore;
use holdfast_coordinator::store::{Digest, Store};
use holdfast_proto::v1;
use tonic::{Code, Status};

use crate::requests::at_work;
use crate::world::{Operators, World, problem, soon};

fn grant(role: v1::Role, targets: &str) -> v1::Grant {
    v1::Grant { role: role as i32, targets: targets.to_owned() }
}

async fn create(by: &mut Operators, name: &str, grants: Vec<v1::Grant>) -> Result<v1::CreateTokenResponse, Status> {
    let life = Some(prost_types::Duration { seconds: 60, nanos: 0 });
    let request = v1::CreateTokenRequest { name: name.to_owned(), grants, life };
    by.create_token(request).await.map(tonic::Response::into_inner)
}

async fn revoke(by: &mut Operators, name: &str) -> Result<v1::Token, Status> {
    let answer = by.revoke_token(v1::RevokeTokenRequest { name: name.to_owned() }).await?;
    Ok(answer.into_inner().token.expect("the token"))
}

async fn listed(by: &mut Operators) -> Vec<String> {
    let mut names = Vec::new();
    let mut page_token = String::new();
    loop {
        let request = v1::ListTokensRequest { page_size: 1, page_token };
        let page = by.list_tokens(request).await.expect("listed").into_inner();
        names.extend(page.tokens.into_iter().map(|token| token.name));
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return names;
        }
    }
}

fn code(status: &Status) -> String {
    problem(status).code.to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_opens_what_it_was_made_for_and_its_secret_is_kept_nowhere() {
    let world = World::new().await;
    let mut admin = world.admin().await;
    let made = create(&mut admin, "bot", vec![grant(v1::Role::Deployer, "shop@*")]).await.expect("made");
    let token = made.token.expect("the token");
    assert_eq!(
        (token.name.as_str(), token.created_by.as_str(), token.standing()),
        ("bot", "anna", v1::TokenStanding::Valid)
    );
    let at = |stamp: Option<prost_types::Timestamp>| stamp.expect("an instant").seconds;
    assert_eq!(at(token.expires_at) - at(token.created_at), 60);
    let me = world.operators(&made.secret).await.who_am_i(v1::WhoAmIRequest {}).await.expect("it is good").into_inner();
    assert_eq!((me.operator.as_str(), me.grants), ("bot", vec![grant(v1::Role::Deployer, "shop@*")]));

    let again = create(&mut admin, "bot", vec![grant(v1::Role::Viewer, "*")]).await.expect_err("the name is taken");
    assert_eq!(code(&again), "HF-4005");
    for grants in [vec![], vec![grant(v1::Role::Unspecified, "*")], vec![grant(v1::Role::Viewer, "a b")]] {
        let status = create(&mut admin, "other", grants.clone()).await.expect_err("no such grant");
        assert_eq!(status.code(), Code::InvalidArgument, "{grants:?}");
    }
    world.operators(&made.secret).await.who_am_i(v1::WhoAmIRequest {}).await.expect("it is as good as before");

    let bytes: Vec<u8> = std::fs::read_dir(world.data())
        .expect("the data folder")
        .flat_map(|entry| std::fs::read(entry.expect("an entry").path()).unwrap_or_default())
        .collect();
    let holds = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(holds(&Digest::of_bytes(made.secret.as_bytes()).to_string()), "its hash is kept");
    assert!(!holds(&made.secret) && !holds(&made.secret[3..]));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_gives_takes_or_sees_more_than_they_hold() {
    let world = World::new().await;
    let mut admin = world.admin().await;
    let mut shop = world.operators(&world.granted("shop-admin", &["admin:shop@*", "operator:*"])).await;
    for wide in [
        grant(v1::Role::Viewer, "*"),
        grant(v1::Role::Operator, "*"),
        grant(v1::Role::Admin, "mail@prod"),
        grant(v1::Role::Deployer, "s*"),
    ] {
        let mixed = vec![grant(v1::Role::Viewer, "shop@prod"), wide.clone()];
        let status = create(&mut shop, "wide", mixed).await.expect_err("too wide");
        assert_eq!((status.code(), code(&status)), (Code::PermissionDenied, "HF-4007".to_owned()), "{wide:?}");
    }
    create(&mut shop, "bot", vec![grant(v1::Role::Deployer, "shop@prod")]).await.expect("within");
    assert_eq!(listed(&mut shop).await, ["bot"]);
    assert_eq!(listed(&mut admin).await, ["anna", "bot", "shop-admin"]);
    let hidden = revoke(&mut shop, "anna").await.expect_err("it reaches further");
    let nobody = revoke(&mut shop, "nobody").await.expect_err("there is none");
    assert_eq!(code(&hidden), "HF-4006");
    assert_eq!(hidden.message().replace("anna", "X"), nobody.message().replace("nobody", "X"));
    revoke(&mut admin, "shop-admin").await.expect("an admin of everything may");
    let mut operator = world.operators(&world.granted("oscar", &["operator:*"])).await;
    let refused = create(&mut operator, "mine", vec![grant(v1::Role::Viewer, "*")]).await.expect_err("no admin");
    assert_eq!(code(&refused), "HF-4003");
    // What is answered after it was recorded after it.
    revoke(&mut admin, "oscar").await.expect("an admin of everything may");
    let store = SqliteStore::open_beside(&world.store(), holdfast_common::id::StoreId(uuid::Uuid::nil()), wall());
    let refusals = store.expect("the store").reader().refusals(100).expect("read");
    for (who, what) in [
        ("shop-admin", "create the token wide"),
        ("shop-admin", "revoke the token of anna"),
        ("oscar", "/holdfast.v1.OperatorService/CreateToken"),
    ] {
        assert!(refusals.iter().any(|row| row.who == who && row.what == what), "{who} {what}: {refusals:?}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_is_taken_back_ends_its_calls_and_its_live_streams() {
    let world = World::new().await;
    let mut admin = world.admin().await;
    let (_agent, _offer) = at_work(&world, &mut admin).await;
    // One is revoked over the API, the other by a tool beside the coordinator.
    for (name, by_api) in [("bot", true), ("cron", false)] {
        let made = create(&mut admin, name, vec![grant(v1::Role::Viewer, "*")]).await.expect("made");
        let mut bot = world.operators(&made.secret).await;
        let deployment = "shop@prod#1".to_owned();
        let watch = v1::WatchEventsRequest { deployment: deployment.clone(), from_sequence: 0, follow: true };
        let mut events = bot.watch_events(watch).await.expect("let in").into_inner();
        let read = v1::ReadLogsRequest { deployment, follow: true, ..v1::ReadLogsRequest::default() };
        let mut logs = bot.read_logs(read).await.expect("let in").into_inner();
        soon("an event", events.message()).await.expect("a stream").expect("an event");
        if by_api {
            assert_eq!(revoke(&mut admin, name).await.expect("revoked").standing(), v1::TokenStanding::Revoked);
        } else {
            holdfast_coordinator::tokens::revoke(&world.store(), &name.parse().unwrap(), wall()).expect("revoked");
        }
        let ended = soon("the end of the events", async {
            loop {
                match events.message().await {
                    Ok(Some(_)) => {}
                    Ok(None) => panic!("an end without a reason"),
                    Err(status) => return status,
                }
            }
        });
        assert_eq!(code(&ended.await), "HF-4001");
        let ended = soon("the end of the logs", logs.message()).await.expect_err("an end with a reason");
        assert_eq!(code(&ended), "HF-4001");
        let next = bot.who_am_i(v1::WhoAmIRequest {}).await.expect_err("it opens nothing");
        assert_eq!(code(&next), "HF-4001");
    }
    world.stop().await;
}
