//! Roles: what a token can be made for. What each may exactly is the coordinator's table.

use crate::explain::Explanation;

const WHERE: &str =
    "A role counts on the targets that fit its pattern. What lies outside does not exist for its holder.";

const fn role(what: &'static str, next: &'static str) -> Explanation {
    Explanation { what, still_true: WHERE, next }
}

pub(super) const ROLES: &[(&str, Explanation)] = &[
    (
        "viewer",
        role(
            "May read targets, deployments, events, outputs and evidence, and change nothing.",
            "Give it to whoever wants to look: holdfast token create --name NAME --role viewer:PATTERN.",
        ),
    ),
    (
        "deployer",
        role(
            "May read, submit deployments, ask for stops and have resources inspected. It can't decide or attest: what happened is told by the record, not by whoever is in a hurry.",
            "Give it to pipelines: holdfast token create --name NAME --role deployer:PATTERN.",
        ),
    ),
    (
        "approver",
        role(
            "May read. Approving what others ask for comes with a later version: this one refuses a file that asks for it, with HF-1601.",
            "For now it is a viewer by another name: holdfast token create --name NAME --role approver:PATTERN.",
        ),
    ),
    (
        "reconciler",
        role(
            "May read, ask for stops, inspect, fence off, attest and decide: everything to find out what happened, and nothing that begins anything new of its own.",
            "Give it to whoever is on call: holdfast token create --name NAME --role reconciler:PATTERN.",
        ),
    ),
    (
        "operator",
        role(
            "May do what deployers and reconcilers may, and declare targets, hold them, roll back and manage agents. Agents serve many targets: managing them takes the role on every target.",
            "Give it to whoever runs the targets: holdfast token create --name NAME --role operator:PATTERN.",
        ),
    ),
    (
        "auditor",
        role(
            "May read, the audit log too, and change nothing.",
            "Give it to whoever checks afterwards: holdfast token create --name NAME --role auditor:PATTERN.",
        ),
    ),
    (
        "admin",
        role(
            "May do everything, and make and revoke tokens for the targets that fit its own pattern. Nobody can give more than they hold.",
            "Keep it to few people. The first one is made on the coordinator's host with holdfast-coordinator token create.",
        ),
    ),
];
