//! The outputs of steps, sent and read.

use holdfast_proto::v1;
use tokio_stream::StreamExt;
use tonic::Code;

use crate::agent::Agent;
use crate::requests::at_work;
use crate::world::{Operators, World, problem, soon};

/// What is answered, and how the stream ends.
async fn upload(
    world: &World,
    agent: &str,
    chunks: Vec<v1::UploadLogRequest>,
) -> (Vec<u64>, Result<(), tonic::Status>) {
    let mut client = world.agents(agent).await;
    let answers = soon("a stream", client.upload_log(tokio_stream::iter(chunks))).await.expect("let in");
    let mut answers = answers.into_inner();
    let mut offsets = Vec::new();
    loop {
        match soon("an answer", answers.next()).await {
            None => return (offsets, Ok(())),
            Some(Ok(answer)) => offsets.push(answer.next_offset),
            Some(Err(status)) => return (offsets, Err(status)),
        }
    }
}

fn chunk(claim: &v1::Claim, offset: u64, data: &str) -> v1::UploadLogRequest {
    v1::UploadLogRequest {
        claim: Some(claim.clone()),
        step: "switch".to_owned(),
        stream: v1::LogStream::Stdout as i32,
        offset,
        data: data.into(),
        kept: offset.saturating_add(data.len() as u64).min(1 << 40),
        ..v1::UploadLogRequest::default()
    }
}

/// From, length and reason.
fn gap(piece: &v1::ReadLogsResponse) -> (u64, Option<u64>, v1::LogGapReason) {
    let gap = piece.gap.as_ref().expect("a gap");
    assert_eq!((piece.offset, piece.data.len()), (gap.from, 0));
    (gap.from, gap.length, gap.reason())
}

async fn read(admin: &mut Operators) -> Vec<v1::ReadLogsResponse> {
    let request = v1::ReadLogsRequest { deployment: "shop@prod#1".to_owned(), ..v1::ReadLogsRequest::default() };
    let mut stream = admin.read_logs(request).await.expect("let in").into_inner();
    let mut chunks = Vec::new();
    while let Some(chunk) = soon("a chunk", stream.message()).await.expect("a stream") {
        chunks.push(chunk);
    }
    chunks
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_output_is_kept_once_whatever_comes_twice_or_leaves_a_gap() {
    let world = World::new().await;
    let mut admin = world.admin().await;
    let (_agent, offer) = at_work(&world, &mut admin).await;
    let claim = offer.claim.expect("a claim");
    let last = v1::UploadLogRequest { last: true, cut: 5, ..chunk(&claim, 6, "gh") };
    let chunks = vec![
        chunk(&claim, 0, "abc"),
        chunk(&claim, 0, "abc"),
        chunk(&claim, 9, "late"),
        chunk(&claim, 2, "cdef"),
        last.clone(),
    ];
    let (offsets, end) = upload(&world, "web-07", chunks).await;
    assert_eq!(offsets, [3, 3, 3, 6, 8]);
    end.expect("a clean end");
    let (offsets, _) = upload(&world, "web-07", vec![last]).await;
    assert_eq!(offsets, [8], "on another stream, the same again");
    let told = read(&mut admin).await;
    assert_eq!(told.len(), 2);
    assert_eq!((told[0].data.as_slice(), told[0].attempt), (&b"abcdefgh"[..], 1));
    assert_eq!(gap(&told[1]), (8, Some(5), v1::LogGapReason::CutOnHost));
    assert_eq!(told[0].stream(), v1::LogChannel::Stdout);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_output_above_the_bound_is_cut_and_the_cut_is_counted() {
    let world = World::with(|config| config.output.max_bytes = 4).await;
    let mut admin = world.admin().await;
    let (_agent, offer) = at_work(&world, &mut admin).await;
    let claim = offer.claim.expect("a claim");
    let last = v1::UploadLogRequest { last: true, kept: 8, ..chunk(&claim, 4, "") };
    let (offsets, end) = upload(&world, "web-07", vec![chunk(&claim, 0, "abcdef"), last]).await;
    assert_eq!(offsets, [4, 4]);
    end.expect("a clean end");
    let told = read(&mut admin).await;
    assert_eq!(told[0].data, b"abcd");
    assert_eq!(gap(&told[1]), (4, Some(4), v1::LogGapReason::CutByCoordinator));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_agent_can_not_write_into_an_attempt_and_hears_what_does_not_exist() {
    let world = World::new().await;
    let mut admin = world.admin().await;
    let (_agent, offer) = at_work(&world, &mut admin).await;
    let claim = offer.claim.expect("a claim");
    let _thief = Agent::greeted(&world, "web-66", 66).await;
    let other_step = v1::UploadLogRequest { step: "unknown".to_owned(), ..chunk(&claim, 0, "x") };
    let made_up = v1::Claim { attempt: uuid::Uuid::from_u128(9).to_string(), ..claim.clone() };
    let wrong_fence = v1::Claim { fence: claim.fence + 1, ..claim.clone() };
    let mut told = Vec::new();
    for (agent, request) in [
        ("web-66", chunk(&claim, 0, "stolen")),
        ("web-66", chunk(&made_up, 0, "stolen")),
        ("web-07", chunk(&wrong_fence, 0, "old")),
        ("web-07", other_step),
    ] {
        let (offsets, end) = upload(&world, agent, vec![request]).await;
        let status = end.expect_err("refused");
        assert!(offsets.is_empty());
        assert_eq!(status.code(), Code::NotFound);
        told.push((problem(&status).code, status.message().to_owned()));
    }
    told.dedup();
    assert_eq!(told.len(), 1, "one answer for all: {told:?}");
    assert!(read(&mut admin).await.is_empty());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_like_paths_and_unknown_streams_are_refused_and_nothing_is_made() {
    let world = World::new().await;
    let mut admin = world.admin().await;
    let (_agent, offer) = at_work(&world, &mut admin).await;
    let claim = offer.claim.expect("a claim");
    let long = "x".repeat(4096);
    for step in ["../../x", "/etc/passwd", "a/b", "..", "a\0b", "-rf", "", long.as_str()] {
        let request = v1::UploadLogRequest { step: step.to_owned(), ..chunk(&claim, 0, "x") };
        let (_, end) = upload(&world, "web-07", vec![request]).await;
        let problem = problem(&end.expect_err("refused"));
        assert_eq!(
            (problem.code.to_string().as_str(), problem.metadata["field"].as_str()),
            ("HF-5003", "step"),
            "{step:?}"
        );
    }
    let attempt = v1::Claim { attempt: "../../x".to_owned(), ..claim.clone() };
    for (request, field) in [
        (chunk(&attempt, 0, "x"), "claim.attempt"),
        (v1::UploadLogRequest { stream: 0, ..chunk(&claim, 0, "x") }, "stream"),
        (v1::UploadLogRequest { stream: 9, ..chunk(&claim, 0, "x") }, "stream"),
        (chunk(&claim, u64::MAX, "x"), "offset"),
        (v1::UploadLogRequest { kept: u64::MAX, ..chunk(&claim, 0, "x") }, "kept"),
        (v1::UploadLogRequest { cut: u64::MAX, last: true, ..chunk(&claim, 0, "x") }, "cut"),
        (v1::UploadLogRequest { claim: None, ..chunk(&claim, 0, "x") }, "claim"),
        (chunk(&v1::Claim { fence: 0, ..claim.clone() }, 0, "x"), "claim.fence"),
    ] {
        let (_, end) = upload(&world, "web-07", vec![request]).await;
        assert_eq!(problem(&end.expect_err(field)).metadata["field"], field);
    }
    let made = std::fs::read_dir(world.data().join("logs")).expect("the folder of outputs");
    let mut made: Vec<_> = made.map(|entry| entry.expect("an entry").file_name()).collect();
    made.sort();
    assert_eq!(made, ["removed", "trash"], "nothing was made");
    world.stop().await;
}

/// While contact stands a step has all the time to send what it writes; without it nobody knows what there is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn output_of_a_step_at_work_is_told_as_missing_once_its_agent_is_out_of_contact() {
    let world = World::new().await;
    let mut admin = world.admin().await;
    let (agent, offer) = at_work(&world, &mut admin).await;
    let claim = offer.claim.expect("a claim");
    upload(&world, "web-07", vec![chunk(&claim, 0, "abcdef")]).await.1.expect("taken");
    let gaps = |told: &[v1::ReadLogsResponse]| told.iter().filter(|piece| piece.gap.is_some()).count();
    assert_eq!(gaps(&read(&mut admin).await), 0);
    drop(agent);
    let told = soon("the session to end", async {
        loop {
            let told = read(&mut admin).await;
            if gaps(&told) > 0 {
                return told;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
    let told = told.iter().find(|piece| piece.gap.is_some()).expect("a gap");
    assert_eq!(gap(told), (6, Some(0), v1::LogGapReason::NotArrived));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_goes_on_from_its_offset_and_follows_to_the_end_of_what_arrives() {
    let world = World::new().await;
    let mut admin = world.admin().await;
    let (_agent, offer) = at_work(&world, &mut admin).await;
    let claim = offer.claim.expect("a claim");
    upload(&world, "web-07", vec![chunk(&claim, 0, "abcdef")]).await.1.expect("taken");
    let at = v1::LogPosition { attempt: 1, step: "switch".to_owned(), stream: 1, offset: 4 };
    let request = v1::ReadLogsRequest {
        deployment: "shop@prod#1".to_owned(),
        follow: true,
        stream: v1::LogChannel::Stdout as i32,
        from: vec![at],
        ..v1::ReadLogsRequest::default()
    };
    let mut stream = admin.read_logs(request).await.expect("let in").into_inner();
    let first = soon("a piece", stream.message()).await.expect("a stream").expect("a piece");
    assert_eq!((first.offset, first.data.as_slice()), (4, &b"ef"[..]));
    upload(&world, "web-07", vec![chunk(&claim, 6, "gh")]).await.1.expect("taken");
    let second = soon("what arrived", stream.message()).await.expect("a stream").expect("a piece");
    assert_eq!((second.offset, second.data.as_slice()), (6, &b"gh"[..]));
    let ahead = v1::UploadLogRequest { kept: 1000, ..chunk(&claim, 0, "") };
    upload(&world, "web-07", vec![ahead]).await.1.expect("taken");
    let told = read(&mut admin).await;
    assert_eq!(gap(told.last().expect("a piece")), (8, Some(992), v1::LogGapReason::NotArrived));
    world.stop().await;
}
