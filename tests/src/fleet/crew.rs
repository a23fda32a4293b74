//! One process of a fleet.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use holdfast_agent::config::{
    Config, Coordinator, Disk, Fetch, Identity, Keep, Limits, Log, Machine, Policy, Stop, Supervisor,
};
use holdfast_agent::run as agent;
use holdfast_net::telemetry::Format;
use holdfast_net::{ops, telemetry, tls};
use tokio_util::sync::CancellationToken;

use super::hands::Deft;
use super::{LABEL, name};
use crate::machine;

/// `fleet ADDRESS TLS-FOLDER STATE-FOLDER FIRST COUNT`: runs these agents until it is killed.
#[must_use]
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let words: Vec<String> = arguments.into_iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let [address, tls, state, first, count] = words.as_slice() else { return ExitCode::from(2) };
    let (Ok(first), Ok(count)) = (first.parse::<usize>(), count.parse::<usize>()) else { return ExitCode::from(2) };
    machine::raise_descriptors();
    telemetry::init(Format::Text, "error").expect("a filter that is sound");
    tls::install_default();
    let configs = (first..first + count).map(|index| config(address, Path::new(tls), Path::new(state), index));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    runtime.expect("threads can be made").block_on(serve(configs.collect()));
    ExitCode::SUCCESS
}

fn config(address: &str, tls: &Path, state: &Path, index: usize) -> Config {
    let name = name(index);
    let file = |end: &str| -> PathBuf { tls.join(format!("{name}.{end}")) };
    Config {
        state_dir: state.join(&name),
        coordinator: Coordinator {
            address: address.parse().expect("the fleet's own address"),
            ca: Some(tls.join("ca.pem")),
            server_name: None,
        },
        identity: Identity { certificate: Some(file("pem")), key: Some(file("key")), dir: None },
        labels: [(LABEL.to_owned(), name.clone())].into(),
        policy: Policy::default(),
        resource: Vec::new(),
        external: std::collections::BTreeMap::new(),
        log: Log::default(),
        fetch: Fetch::default(),
        machine: Machine::default(),
        disk: Disk::default(),
        supervisor: Supervisor::default(),
        limits: Limits::default(),
        keep: Keep::default(),
        ops: ops::Settings::default(),
        stop: Stop::default(),
    }
}

/// All agents, each with a thread that decides, as everywhere.
async fn serve(configs: Vec<Config>) {
    let stop = CancellationToken::new();
    let mut agents = tokio::task::JoinSet::new();
    for config in configs {
        let stop = stop.clone();
        agents.spawn(async move {
            let tls = agent::tls(&config).expect("the fleet's own certificate");
            agent::run_with(config, &tls, |events| Ok(Deft::new(events)), stop).await
        });
    }
    while let Some(ended) = agents.join_next().await {
        if let Err(error) = ended.expect("an agent of a fleet does not panic") {
            tracing::error!(%error, "an agent of the fleet can't run");
        }
    }
}
