//! An API, the way to it, and what a target declares of it.

use std::fs::File;
use std::process::{Command, Output, Stdio};

use holdfast_agent::adapters::system::{Call, Operation, Order};
use holdfast_agent::internal::{INTERNAL, name};
use holdfast_common::fence::Fence;
use holdfast_common::file::TargetFile;
use holdfast_common::id::{OperationId, ResourceName, Revision, TargetName};
use holdfast_common::outcome::Reading;
use holdfast_common::system::{Change, Http, Submit, System};
use holdfast_common::time::Millis;
use uuid::Uuid;

use super::api::{Api, DEPLOY, FENCE, INSPECT, underwent};
use super::proxy::Proxy;
use crate::support::{AGENT, Folder, operation};

pub(crate) const OWNER: &str = "app@prod/service";

pub(crate) struct Scene {
    pub(crate) api: Api,
    pub(crate) proxy: Proxy,
    pub(crate) http: Http,
    pub(crate) folder: Folder,
}

/// One operation, to be changed as a test needs it.
pub(crate) fn change(number: u128) -> Operation {
    to_revision(operation(number), &format!("v{number}"), 0)
}

pub(crate) fn to_revision(id: OperationId, revision: &str, duration_ms: u64) -> Operation {
    let body = format!(r#"{{"revision": "{revision}", "duration_ms": {duration_ms}}}"#);
    let submit = Submit { body, content_type: "application/json".to_owned(), headers: [].into() };
    Operation {
        id,
        revision: Some(Revision::new(revision).unwrap()),
        expected_revision: None,
        change: Some(Change::Submit(submit)),
    }
}

/// What is declared in the example, for an API elsewhere.
fn declared(url: String) -> Http {
    let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/http/service.target.toml"));
    let target = TargetFile::parse(text).unwrap();
    let Some(System::Http(http)) = target.resources[0].adapter.system() else { panic!("it is behind an API") };
    Http { url, poll: Millis(50), ..*http.clone() }
}

impl Scene {
    pub(crate) fn new() -> Self {
        let folder = Folder::new();
        let api = Api::start(&folder.0, "api.db", OWNER);
        let proxy = Proxy::start(api.address, api.data.clone());
        let http = declared(format!("http://{}", proxy.address));
        Self { api, proxy, http, folder }
    }

    pub(crate) fn underwent(&self) -> Vec<String> {
        underwent(&self.api.data)
    }

    /// Starts the API anew, on the same data.
    pub(crate) fn restart(&mut self) {
        let name = self.api.data.file_name().unwrap().to_string_lossy().into_owned();
        self.api = Api::start(&self.folder.0, &name, OWNER);
        self.proxy.lead_to(self.api.address, self.api.data.clone());
    }

    /// The process of a call, with one token.
    pub(crate) fn command(&self, operation: &Operation, call: Call, token: &str) -> Command {
        let order = Order {
            target: TargetName::new("app@prod").unwrap(),
            resource: ResourceName::new("service").unwrap(),
            system: System::Http(Box::new(self.http.clone())),
            operation: operation.clone(),
            call,
            program: None,
            is_placed: false,
            cache: self.folder.0.clone(),
        };
        let path = self.folder.0.join(Uuid::new_v4().to_string());
        std::fs::write(&path, serde_json::to_vec(&order).unwrap()).unwrap();
        let mut command = Command::new(AGENT);
        command.args([INTERNAL, name::SYSTEM]).env("HTTP_BEARER", token).stdin(File::open(&path).unwrap());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn applying(&self, operation: &Operation, fence: Fence) -> Command {
        self.command(operation, Call::Apply { fence, archive: None, work: self.folder.0.clone() }, DEPLOY)
    }

    pub(crate) fn apply(&self, operation: &Operation, fence: Fence) -> Ended {
        Ended::of(self.applying(operation, fence).output().unwrap())
    }

    pub(crate) fn examine(&self, operation: &Operation) -> Ended {
        let call = Call::Examine { archive: None, work: self.folder.0.clone() };
        Ended::of(self.command(operation, call, INSPECT).output().unwrap())
    }

    pub(crate) fn inspect(&self, operation: &Operation) -> Ended {
        Ended::of(self.command(operation, Call::Inspect, INSPECT).output().unwrap())
    }

    pub(crate) fn raise(&self, operation: &Operation, fence: Fence) -> Ended {
        Ended::of(self.command(operation, Call::Raise { fence }, FENCE).output().unwrap())
    }
}

/// How a call ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) exit: Option<i32>,
    pub(crate) said: String,
    stdout: String,
}

impl Ended {
    /// Whatever a call says, no token is in it.
    pub(crate) fn of(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let ended = Self { exit: output.status.code(), said: text(&output.stderr), stdout: text(&output.stdout) };
        for token in [DEPLOY, INSPECT, FENCE] {
            assert!(!ended.said.contains(token) && !ended.stdout.contains(token), "{ended:?}");
        }
        ended
    }

    #[track_caller]
    pub(crate) fn with(&self, exit: i32) -> &Self {
        assert_eq!(self.exit, Some(exit), "{self:?}");
        self
    }

    #[track_caller]
    pub(crate) fn reading(&self) -> Reading {
        self.with(0);
        serde_json::from_str(&self.stdout).unwrap()
    }
}
