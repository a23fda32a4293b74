//! The audit over the API: everything that people did and were refused, and a file that checks.

use holdfast_common::time::Millis;
use holdfast_coordinator::audit;
use holdfast_coordinator::auth::Role;
use holdfast_coordinator::serve::wall;
use holdfast_proto::v1;
use tonic::Code;

use crate::requests::at_work;
use crate::world::{Operators, World, problem};

async fn exported(by: &mut Operators, target: &str) -> audit::Checked {
    let request = v1::ExportAuditRequest { target: target.to_owned() };
    let mut stream = by.export_audit(request).await.expect("it begins").into_inner();
    let mut text = String::new();
    while let Some(piece) = stream.message().await.expect("it goes on") {
        piece.lines.iter().for_each(|line| text += &format!("{line}\n"));
    }
    audit::check(text.as_bytes()).expect("text")
}

async fn listed(by: &mut Operators, page_size: u32) -> Vec<v1::AuditEntry> {
    let (mut entries, mut page_token) = (Vec::new(), String::new());
    loop {
        let request = v1::ListAuditRequest { target: String::new(), page_size, page_token };
        let page = by.list_audit(request).await.expect("listed").into_inner();
        entries.extend(page.entries);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return entries;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_people_did_and_were_refused_is_audited_and_exported() {
    let world = World::new().await;
    let mut admin = world.admin().await;
    let (_agent, _offer) = at_work(&world, &mut admin).await;
    let life = Some(prost_types::Duration { seconds: 60, nanos: 0 });
    let grants = vec![v1::Grant { role: v1::Role::Viewer as i32, targets: "*".to_owned() }];
    let made = v1::CreateTokenRequest { name: "bot".to_owned(), grants, life };
    let bot = admin.create_token(made).await.expect("made").into_inner().secret;
    let mut bot = world.operators(&bot).await;
    let cancel = v1::CancelDeploymentRequest { deployment: "shop@prod#1".to_owned(), reason: "mine".to_owned() };
    assert_eq!(bot.cancel(cancel).await.expect_err("a viewer").code(), Code::PermissionDenied);
    let status = bot.export_audit(v1::ExportAuditRequest::default()).await.expect_err("a viewer");
    assert_eq!(problem(&status).code.to_string(), "HF-4003");
    admin.revoke_token(v1::RevokeTokenRequest { name: "bot".to_owned() }).await.expect("revoked");

    let entries = listed(&mut admin, 500).await;
    let sentences: Vec<&str> = entries.iter().map(|entry| entry.sentence.as_str()).collect();
    for words in [
        "anna took the token of bot back: viewer:*",
        "anna made the token of bot: viewer:*",
        "(on the coordinator's host) made the token of anna: admin:*",
        "anna submitted shop@prod#1",
        "anna declared shop@prod",
        "bot was refused",
    ] {
        assert!(sentences.iter().any(|sentence| sentence.contains(words)), "{words:?} is not in {sentences:#?}");
    }
    let chained = entries.iter().all(|entry| entry.refused == entry.hash.is_empty());
    assert!(chained, "{entries:#?}");
    assert_eq!(listed(&mut admin, 2).await, entries, "the same in small pages");

    let whole = exported(&mut admin, "").await;
    assert_eq!(whole.faults, []);
    assert!(whole.acts >= 3 && whole.refusals >= 1 && whole.events > 3, "{whole:?}");
    let auditor = world.token("vera", Role::Auditor, Millis::from_secs(60), wall());
    assert!(exported(&mut world.operators(&auditor).await, "").await.sound);
    let mut some = world.operators(&world.granted("some", &["auditor:shop@*"])).await;
    let part = exported(&mut some, "").await;
    assert!(part.sound && part.acts == 0 && part.refusals == 0 && part.events == whole.events, "{part:?}");
    assert!(exported(&mut some, "shop@prod").await.sound);
    world.stop().await;
}
