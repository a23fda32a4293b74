//! Many operators at once, each doing everything, while agents report and other processes write the same store.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use holdfast_proto::v1::{
    ApplyTargetRequest, CancelDeploymentRequest, GetDeploymentRequest, GetReconciliationRequest, GetTargetRequest,
    InspectTargetRequest, ListAgentsRequest, ListDeploymentsRequest, ListEvidenceRequest, ListTargetsRequest,
    ReadLogsRequest, SubmitRequest, WatchEventsRequest,
};
use holdfast_tests::api::{Client, code_of, label_of};
use holdfast_tests::cluster::{LONG, Plan};
use holdfast_tests::files::{DeploymentFile, command_target};
use holdfast_tests::wait;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::task::JoinSet;
use tonic::{Code, Status};
use uuid::Uuid;

use crate::PROGRAM;

const WRITERS: usize = 64;
const TARGETS: usize = 24;
/// `HOLDFAST_TEST_SECONDS` for longer.
const SECONDS: u64 = 8;

fn target(number: usize) -> String {
    format!("box-{number}@test")
}

/// One operator's hand.
struct Writer {
    client: Client,
    random: StdRng,
    calls: Arc<[AtomicUsize; KINDS]>,
    mine: Vec<String>,
}

const KINDS: usize = 13;

impl Writer {
    /// One call of any kind. `Ok` also where it was refused for a reason that a caller can understand.
    async fn once(&mut self) -> Result<(), String> {
        let kind = self.random.random_range(0..KINDS);
        let target = target(self.random.random_range(0..TARGETS));
        let deployment = match self.mine.len() {
            0 => format!("{target}#1"),
            count => self.mine[self.random.random_range(0..count)].clone(),
        };
        let called = self.call(kind, target, deployment).await;
        self.calls[kind].fetch_add(1, Ordering::Relaxed);
        called.or_else(|status| understandable(&status).then_some(()).ok_or(format!("call {kind}: {status:?}")))
    }

    async fn call(&mut self, kind: usize, target: String, deployment: String) -> Result<(), Status> {
        let client = &mut self.client;
        match kind {
            0 | 1 => {
                let words = ["sh", "-c", "echo a line of output"].map(str::to_owned);
                let file = DeploymentFile::new(&target, LONG).mutates("change", "idempotent", &words);
                let request = SubmitRequest {
                    request_id: Uuid::now_v7().to_string(),
                    file: file.text().to_owned(),
                    ..SubmitRequest::default()
                };
                let answer = client.submit(request).await?.into_inner();
                self.mine.push(label_of(&answer.deployment.expect("the answer shows it")));
            }
            2 => {
                let reason = "a test asks".to_owned();
                client.cancel(CancelDeploymentRequest { deployment, reason }).await?;
            }
            3 => drop(client.list_deployments(ListDeploymentsRequest::default()).await?),
            4 => drop(client.get_deployment(GetDeploymentRequest { deployment }).await?),
            5 => {
                let request = WatchEventsRequest { deployment, from_sequence: 0, follow: false };
                let mut events = client.watch_events(request).await?.into_inner();
                while events.message().await?.is_some() {}
            }
            6 => {
                let request = ReadLogsRequest { deployment, ..ReadLogsRequest::default() };
                let mut chunks = client.read_logs(request).await?.into_inner();
                while chunks.message().await?.is_some() {}
            }
            7 => {
                let request = InspectTargetRequest { target, ..InspectTargetRequest::default() };
                drop(client.inspect_target(request).await?);
            }
            8 => drop(client.get_target(GetTargetRequest { target }).await?),
            9 => drop(client.list_targets(ListTargetsRequest::default()).await?),
            10 => drop(client.apply_target(ApplyTargetRequest { file: command_target(&target, false) }).await?),
            11 => {
                drop(client.list_evidence(ListEvidenceRequest { deployment: deployment.clone() }).await?);
                drop(client.get_reconciliation(GetReconciliationRequest { deployment }).await?);
            }
            _ => drop(client.list_agents(ListAgentsRequest::default()).await?),
        }
        Ok(())
    }
}

/// A refusal that says what to do. Trouble with the store, or with Holdfast itself, is none.
fn understandable(status: &Status) -> bool {
    let known = match status.code() {
        Code::NotFound | Code::FailedPrecondition | Code::ResourceExhausted | Code::InvalidArgument => true,
        Code::Ok
        | Code::Cancelled
        | Code::Unknown
        | Code::DeadlineExceeded
        | Code::AlreadyExists
        | Code::PermissionDenied
        | Code::Aborted
        | Code::OutOfRange
        | Code::Unimplemented
        | Code::Internal
        | Code::Unavailable
        | Code::DataLoss
        | Code::Unauthenticated => false,
    };
    let text = format!("{status:?}").to_lowercase();
    known && code_of(status).starts_with("HF-") && !text.contains("busy") && !text.contains("locked")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_writers_of_every_kind_see_no_busy_store() {
    let seconds = std::env::var("HOLDFAST_TEST_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SECONDS);
    let mut cluster = Plan::new(PROGRAM).start().await;
    let operator = cluster.operator();
    for number in 0..TARGETS {
        operator.apply_target(&command_target(&target(number), false)).await;
    }
    let calls: Arc<[AtomicUsize; KINDS]> = Arc::new(std::array::from_fn(|_| AtomicUsize::new(0)));
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut writers = JoinSet::new();
    for number in 0..WRITERS {
        let client = cluster.operator().client;
        let random = StdRng::seed_from_u64(number as u64);
        let mut writer = Writer { client, random, calls: Arc::clone(&calls), mine: Vec::new() };
        writers.spawn(async move {
            while Instant::now() < end {
                writer.once().await?;
            }
            Ok::<_, String>(writer.mine)
        });
    }
    // Another process writes and reads the same file all the while.
    let mut tokens = 0;
    while Instant::now() < end {
        let token = cluster.coordinator().token(&format!("token-{tokens}"), "viewer", "1h");
        assert!(!token.is_empty());
        tokens += 1;
    }
    let mut submitted = Vec::new();
    while let Some(writer) = writers.join_next().await {
        submitted.extend(writer.expect("no panic").unwrap_or_else(|seen| panic!("{seen}")));
    }
    assert!(tokens > 0 && submitted.len() > WRITERS, "{tokens} tokens, {} deployments", submitted.len());
    for (kind, count) in calls.iter().enumerate() {
        assert!(count.load(Ordering::Relaxed) > 0, "call {kind} was never made");
    }

    // All of it ends, and nobody was told of trouble.
    const DRAINED_WITHIN: Duration = Duration::from_secs(120);
    let ops = cluster.coordinator().ops();
    let now = wait::until("everything to end", DRAINED_WITHIN, async || {
        let now = ops.metrics().await;
        let open = |state: &str| now.of(&format!("holdfast_deployments_open{{state=\"{state}\"}}"));
        let left = open("queued") + open("active");
        if left == 0.0 { Ok(now.clone()) } else { Err(format!("{left} are left")) }
    })
    .await;
    for code in ["HF-6001", "HF-6002", "HF-6004"] {
        assert_eq!(now.of(&format!("holdfast_refusals_total{{code=\"{code}\"}}")), 0.0, "{code}");
    }
    for (sample, count) in now.samples().filter(|(sample, _)| sample.starts_with("holdfast_grpc_requests_total")) {
        let trouble = ["INTERNAL", "UNKNOWN", "UNAVAILABLE", "DEADLINE"].iter().any(|code| sample.contains(code));
        assert!(!trouble || count == 0.0, "{sample} {count}");
    }
    for name in ["coordinator", "web-01", "web-02"] {
        let log = std::fs::read_to_string(cluster.folder().join(&format!("{name}.log"))).expect("a log");
        let trouble = |line: &&str| {
            let lower = line.to_lowercase();
            line.contains(" ERROR ") || ["database is busy", "locked", "sqlite"].iter().any(|word| lower.contains(word))
        };
        let found: Vec<&str> = log.lines().filter(trouble).collect();
        assert!(found.is_empty(), "{name}: {found:#?}");
    }
    let verified = cluster.coordinator().run(&["verify"]);
    assert!(verified.contains("every hash"), "{verified}");
}
