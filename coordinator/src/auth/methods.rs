//! What each method demands: one table for every method of every service on the listener.
//!
//! A method that is not here is refused before anything else is looked at. A test walks the protocol's descriptors and
//! fails on a method without a row.

use super::role::Permission;

/// What a caller must show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// Nothing.
    Nothing,
    /// A certificate that names an agent.
    AgentCertificate,
    /// A join token, of an agent that has no certificate yet. What it is worth, the handler says.
    JoinToken,
    /// Any token that is good.
    SignedIn,
    /// A token with this permission, over what is named beside it.
    Token(Permission, Over),
}

/// What a permission must be held over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// The target that the request is about. What the caller may not view is answered like what does not exist.
    OneTarget,
    /// Each thing that is told or managed, by itself: what the caller may not is left out.
    Each,
}

/// How a method answers, which says how long it may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// Once, within [`super::DEADLINE`].
    Once,
    /// By a stream, for as long as it lives.
    Streaming,
}

/// One row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method {
    /// Like `/holdfast.v1.OperatorService/Submit`.
    pub path: &'static str,
    /// What a caller must show.
    pub demand: Demand,
    /// How it answers.
    pub answers: Answers,
}

const fn once(path: &'static str, demand: Demand) -> Method {
    Method { path, demand, answers: Answers::Once }
}

const fn streaming(path: &'static str, demand: Demand) -> Method {
    Method { path, demand, answers: Answers::Streaming }
}

const VIEW: Demand = on_target(Permission::View);
const LIST: Demand = Demand::Token(Permission::View, Over::Each);
const AUDIT: Demand = Demand::Token(Permission::Audit, Over::Each);
const AGENTS: Demand = Demand::Token(Permission::Agents, Over::Each);
const MANAGE: Demand = Demand::Token(Permission::Admin, Over::Each);

const fn on_target(permission: Permission) -> Demand {
    Demand::Token(permission, Over::OneTarget)
}

/// The table.
pub const METHODS: &[Method] = &[
    streaming("/holdfast.v1.AgentService/Connect", Demand::AgentCertificate),
    streaming("/holdfast.v1.AgentService/UploadLog", Demand::AgentCertificate),
    streaming("/holdfast.v1.AgentService/FetchArchive", Demand::AgentCertificate),
    once("/holdfast.v1.OperatorService/WhoAmI", Demand::SignedIn),
    once("/holdfast.v1.OperatorService/ApplyTarget", on_target(Permission::Hold)),
    once("/holdfast.v1.OperatorService/GetTarget", VIEW),
    once("/holdfast.v1.OperatorService/ListTargets", LIST),
    once("/holdfast.v1.OperatorService/InspectTarget", on_target(Permission::Inspect)),
    once("/holdfast.v1.OperatorService/Submit", on_target(Permission::Deploy)),
    once("/holdfast.v1.OperatorService/GetDeployment", VIEW),
    once("/holdfast.v1.OperatorService/ListDeployments", LIST),
    streaming("/holdfast.v1.OperatorService/WatchEvents", VIEW),
    streaming("/holdfast.v1.OperatorService/ReadLogs", VIEW),
    once("/holdfast.v1.OperatorService/ListEvidence", VIEW),
    once("/holdfast.v1.OperatorService/Cancel", on_target(Permission::Cancel)),
    once("/holdfast.v1.OperatorService/GetReconciliation", VIEW),
    once("/holdfast.v1.OperatorService/InspectDeployment", on_target(Permission::Inspect)),
    once("/holdfast.v1.OperatorService/FenceOffDeployment", on_target(Permission::Decide)),
    once("/holdfast.v1.OperatorService/Attest", on_target(Permission::Attest)),
    once("/holdfast.v1.OperatorService/AttestRevision", on_target(Permission::Attest)),
    once("/holdfast.v1.OperatorService/Decide", on_target(Permission::Decide)),
    once("/holdfast.v1.OperatorService/ListAgents", LIST),
    streaming("/holdfast.v1.OperatorService/UploadArchive", Demand::Token(Permission::Deploy, Over::Each)),
    once("/holdfast.v1.OperatorService/HoldTarget", on_target(Permission::Hold)),
    once("/holdfast.v1.OperatorService/UnholdTarget", on_target(Permission::Hold)),
    once("/holdfast.v1.OperatorService/Plan", VIEW),
    once("/holdfast.v1.OperatorService/CreateToken", MANAGE),
    once("/holdfast.v1.OperatorService/ListTokens", MANAGE),
    once("/holdfast.v1.OperatorService/RevokeToken", MANAGE),
    once("/holdfast.v1.OperatorService/ListRollbackCandidates", VIEW),
    once("/holdfast.v1.OperatorService/Rollback", on_target(Permission::Rollback)),
    streaming("/holdfast.v1.OperatorService/ExportAudit", AUDIT),
    once("/holdfast.v1.OperatorService/ListAudit", AUDIT),
    once("/holdfast.v1.OperatorService/CreateJoinToken", AGENTS),
    once("/holdfast.v1.OperatorService/ListJoinTokens", AGENTS),
    once("/holdfast.v1.OperatorService/RevokeJoinToken", AGENTS),
    once("/holdfast.v1.OperatorService/RemoveAgent", AGENTS),
    once("/holdfast.v1.OperatorService/RevokeCertificate", AGENTS),
    once("/holdfast.v1.OperatorService/UnlockAgent", AGENTS),
    once("/holdfast.v1.EnrollService/Enroll", Demand::JoinToken),
    once("/holdfast.v1.EnrollService/Renew", Demand::AgentCertificate),
    once("/holdfast.v1.OperatorService/DrainAgent", AGENTS),
    once("/holdfast.v1.OperatorService/ResumeAgent", AGENTS),
    once("/grpc.health.v1.Health/Check", Demand::Nothing),
    streaming("/grpc.health.v1.Health/Watch", Demand::Nothing),
    streaming("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", Demand::SignedIn),
];

/// The row of a path, compared byte by byte: no other spelling of a path is the same method.
#[must_use]
pub fn method(path: &str) -> Option<&'static Method> {
    METHODS.iter().find(|method| method.path == path)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use holdfast_proto::json::pool;

    use super::*;

    #[test]
    fn every_method_of_the_protocol_has_its_row_and_every_row_its_method() {
        let described: BTreeSet<(String, bool)> = pool()
            .services()
            .flat_map(|service| service.methods().collect::<Vec<_>>())
            .map(|method| {
                let path = format!("/{}/{}", method.parent_service().full_name(), method.name());
                (path, method.is_server_streaming() || method.is_client_streaming())
            })
            .collect();
        let listed: BTreeSet<(String, bool)> = METHODS
            .iter()
            .filter(|method| !method.path.starts_with("/grpc."))
            .map(|method| (method.path.to_owned(), method.answers == Answers::Streaming))
            .collect();
        assert_eq!(described, listed);
        assert!(!described.is_empty());
    }

    #[test]
    fn no_path_has_two_rows() {
        let paths: BTreeSet<_> = METHODS.iter().map(|method| method.path).collect();
        assert_eq!(paths.len(), METHODS.len());
    }

    #[test]
    fn another_spelling_of_a_path_is_no_method() {
        assert!(method("/holdfast.v1.OperatorService/Submit").is_some());
        for path in [
            "/holdfast.v1.OperatorService/submit",
            "//holdfast.v1.OperatorService/Submit",
            "/holdfast.v1.OperatorService//Submit",
            "/holdfast.v1.OperatorService/Submit/",
            "/holdfast.v1.OperatorService/../AgentService/Connect",
            "/holdfast.v1.OperatorService/%53ubmit",
            "/",
            "",
        ] {
            assert_eq!(method(path), None, "{path}");
        }
    }
}
