//! The target's file.

use std::collections::BTreeMap;

use crate::adapter::Adapter;
use crate::code::Code;
use crate::file::deployment::{TOP_KEYS as DEPLOYMENT_KEYS, open};
use crate::file::reader::{Fields, Item, Place, Reader, shown};
use crate::file::tree::{self, Node};
use crate::file::{Errors, field, later, reconcile, system, text};
use crate::spec::{QueueKind, Reach, ResourceAdapter, ResourceSpec, TargetSpec};
use crate::system::System;

/// The keys at the top of the file.
pub(super) const TOP_KEYS: [&str; 8] =
    ["schema", "name", "agents", "queue", "reconcile", "approval", "resource", "order"];

const MAX_RESOURCES: usize = 50;
const MAX_LABELS: usize = 50;
const MAX_ARGUMENTS: usize = 256;
const DEFAULT_RETAIN: u32 = 5;

/// The file that declares a target.
#[derive(Clone, Copy, Debug)]
pub struct TargetFile;

impl TargetFile {
    /// Reads TOML, or JSON where the text begins with `{`. At most [`MAX_FILE`](crate::file::MAX_FILE) bytes.
    pub fn parse(text: &str) -> Result<TargetSpec, Errors> {
        let root = tree::read(text)?;
        let mut reader = Reader::default();
        let spec = target(&mut reader, &root);
        match spec.filter(|_| reader.faults.is_empty()) {
            Some(spec) => Ok(spec),
            None => {
                later::other_file(&mut reader, &DEPLOYMENT_KEYS, "a deployment file: holdfast deploy FILE");
                Err(Errors::of(text, reader.faults))
            }
        }
    }

    /// [`parse`](Self::parse) of the bytes of a file.
    pub fn parse_bytes(bytes: &[u8]) -> Result<TargetSpec, Errors> {
        Self::parse(text(bytes)?)
    }
}

fn target(reader: &mut Reader, root: &Node) -> Option<TargetSpec> {
    let fields = open(reader, root, &TOP_KEYS)?;
    let name = reader.required(&fields, "name").and_then(|item| reader.parsed(&item));
    let agents = reader.required(&fields, "agents").and_then(|item| labels(reader, &item));
    let (policy, patience) = reconcile::of_target(reader, fields.get("reconcile"));
    let queues = [("fifo", QueueKind::Fifo), ("latest", QueueKind::Latest)];
    let queue = fields.get("queue").and_then(|item| reader.choice(&item, &queues)).unwrap_or_default();
    later::approval(reader, fields.get("approval"));
    later::order(reader, fields.get("order"));
    let resources = resources(reader, &fields);
    Some(TargetSpec { name: name?.value, agents: agents?, policy, patience, queue, resources: resources? })
}

/// The label selector. An empty one would choose every agent, so it is refused.
fn labels(reader: &mut Reader, item: &Item<'_>) -> Option<BTreeMap<String, String>> {
    let fields = reader.open_table(item)?;
    let count = fields.keys().count();
    if !(1..=MAX_LABELS).contains(&count) {
        let message =
            format!("has {count} labels, 1 to {MAX_LABELS} are allowed: without one it would choose every agent");
        reader.fault(Code::InvalidValue, item.key.clone(), message);
        return None;
    }
    let mut labels = BTreeMap::new();
    for key in fields.keys() {
        let item = fields.get(key).expect("the key is there");
        if !is_label(key) {
            let place = Place { at: item.key.at, path: "agents".to_owned() };
            reader.fault(Code::InvalidValue, place, not_a_label(key));
            continue;
        }
        let Some(value) = reader.text(&item) else { continue };
        if !is_label(value) {
            reader.fault(Code::InvalidValue, item.place(), not_a_label(value));
        }
        labels.insert(key.to_owned(), value.to_owned());
    }
    Some(labels)
}

fn is_label(text: &str) -> bool {
    (1..=128).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-/@:".contains(c))
}

fn not_a_label(text: &str) -> String {
    format!("{} is no label: 1 to 128 letters, digits and \"._-/@:\", a letter or digit first", shown(text))
}

fn resources(reader: &mut Reader, fields: &Fields<'_>) -> Option<Vec<ResourceSpec>> {
    let list = reader.required(fields, "resource")?;
    let items = reader.list(&list, 1..=MAX_RESOURCES)?;
    let mut resources: Vec<ResourceSpec> = Vec::new();
    for item in &items {
        let Some(resource) = resource(reader, item) else { continue };
        for earlier in &resources {
            if earlier.name == resource.name {
                let message = format!("the name \"{}\" is taken by an earlier resource", resource.name);
                reader.fault(Code::InvalidValue, item.key.clone(), message);
            }
            if let (ResourceAdapter::Release { root: one, .. }, ResourceAdapter::Release { root: other, .. }) =
                (&earlier.adapter, &resource.adapter)
                && field::overlap(one, other)
            {
                let message = format!("its folder is also in the hands of the resource \"{}\"", earlier.name);
                reader.fault(Code::InvalidValue, item.key.clone(), message);
            }
            let place = |resource: &ResourceSpec| resource.adapter.system().and_then(System::place);
            if place(&resource).is_some_and(|ours| place(earlier).as_ref() == Some(&ours)) {
                let message = format!("it is the same thing as the resource \"{}\"", earlier.name);
                reader.fault(Code::InvalidValue, item.key.clone(), message);
            }
        }
        resources.push(resource);
    }
    Some(resources)
}

fn resource(reader: &mut Reader, item: &Item<'_>) -> Option<ResourceSpec> {
    let fields = reader.table(item, &["name", "adapter", "reach", "with"])?;
    let name = reader.required(&fields, "name").and_then(|item| reader.parsed(&item));
    let reaches = [("host", Reach::Host), ("shared", Reach::Shared)];
    let reach = reader.required(&fields, "reach").and_then(|item| reader.choice(&item, &reaches));
    let kinds = [Adapter::Command, Adapter::Release, Adapter::Postgres, Adapter::Git, Adapter::Http, Adapter::External]
        .map(|adapter| (adapter.name(), adapter));
    let kind_item = reader.required(&fields, "adapter")?;
    let adapter = match reader.choice(&kind_item, &kinds)? {
        Adapter::Command => command(reader, fields.get("with")),
        Adapter::Release => release(reader, &fields),
        adapter @ (Adapter::Postgres | Adapter::Git | Adapter::Http | Adapter::External | Adapter::Check) => {
            system::resource(reader, adapter, &fields).map(ResourceAdapter::System)
        }
    };
    Some(ResourceSpec { name: name?.value, reach: reach?, adapter: adapter? })
}

fn command(reader: &mut Reader, with: Option<Item<'_>>) -> Option<ResourceAdapter> {
    let Some(with) = with else { return Some(ResourceAdapter::Command { inspect: None, outlives: true }) };
    let fields = reader.table(&with, &["inspect", "outlives"])?;
    let inspect = fields.get("inspect").and_then(|item| argv(reader, &item));
    let outlives = fields.get("outlives").and_then(|item| reader.boolean(&item)).unwrap_or(true);
    Some(ResourceAdapter::Command { inspect, outlives })
}

fn argv(reader: &mut Reader, item: &Item<'_>) -> Option<Vec<String>> {
    let items = reader.list(item, 1..=MAX_ARGUMENTS)?;
    let argv: Vec<_> = items.iter().map(|item| reader.plain_text(item).map(str::to_owned)).collect();
    let argv: Vec<String> = argv.into_iter().collect::<Option<_>>()?;
    match field::program(&argv[0]) {
        Ok(()) => Some(argv),
        Err(complaint) => {
            reader.complain(items[0].place(), complaint);
            None
        }
    }
}

fn release(reader: &mut Reader, fields: &Fields<'_>) -> Option<ResourceAdapter> {
    let with = reader.required(fields, "with")?;
    let with = reader.table(&with, &["root", "retain"])?;
    let retain = with.get("retain").and_then(|item| reader.integer(&item, 0..=1000)).unwrap_or(DEFAULT_RETAIN);
    let root_item = reader.required(&with, "root")?;
    let root = reader.plain_text(&root_item)?;
    match field::root(root) {
        Ok(()) => Some(ResourceAdapter::Release { root: root.to_owned(), retain }),
        Err(complaint) => {
            reader.complain(root_item.place(), complaint);
            None
        }
    }
}
