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
    /// A token whose role has this permission.
    Token(Permission),
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

const VIEW: Demand = Demand::Token(Permission::View);

/// The table.
pub const METHODS: &[Method] = &[
    streaming("/holdfast.v1.AgentService/Connect", Demand::AgentCertificate),
    streaming("/holdfast.v1.AgentService/UploadLog", Demand::AgentCertificate),
    streaming("/holdfast.v1.AgentService/FetchArchive", Demand::AgentCertificate),
    once("/holdfast.v1.OperatorService/WhoAmI", VIEW),
    once("/holdfast.v1.OperatorService/ApplyTarget", Demand::Token(Permission::Declare)),
    once("/holdfast.v1.OperatorService/GetTarget", VIEW),
    once("/holdfast.v1.OperatorService/ListTargets", VIEW),
    once("/holdfast.v1.OperatorService/InspectTarget", Demand::Token(Permission::Inspect)),
    once("/holdfast.v1.OperatorService/Submit", Demand::Token(Permission::Deploy)),
    once("/holdfast.v1.OperatorService/GetDeployment", VIEW),
    once("/holdfast.v1.OperatorService/ListDeployments", VIEW),
    streaming("/holdfast.v1.OperatorService/WatchEvents", VIEW),
    streaming("/holdfast.v1.OperatorService/ReadLogs", VIEW),
    once("/holdfast.v1.OperatorService/ListEvidence", VIEW),
    once("/holdfast.v1.OperatorService/Cancel", Demand::Token(Permission::Cancel)),
    once("/holdfast.v1.OperatorService/GetReconciliation", VIEW),
    once("/holdfast.v1.OperatorService/InspectDeployment", Demand::Token(Permission::Inspect)),
    once("/holdfast.v1.OperatorService/FenceOffDeployment", Demand::Token(Permission::Decide)),
    once("/holdfast.v1.OperatorService/Attest", Demand::Token(Permission::Attest)),
    once("/holdfast.v1.OperatorService/Decide", Demand::Token(Permission::Decide)),
    once("/holdfast.v1.OperatorService/ListAgents", VIEW),
    streaming("/holdfast.v1.OperatorService/UploadArchive", Demand::Token(Permission::Deploy)),
    once("/holdfast.v1.OperatorService/HoldTarget", Demand::Token(Permission::Hold)),
    once("/holdfast.v1.OperatorService/UnholdTarget", Demand::Token(Permission::Hold)),
    once("/holdfast.v1.OperatorService/Plan", VIEW),
    once("/grpc.health.v1.Health/Check", Demand::Nothing),
    streaming("/grpc.health.v1.Health/Watch", Demand::Nothing),
    streaming("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", VIEW),
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
