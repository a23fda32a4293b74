//! The words of the wire's enums, as people read them: the same that `holdfast explain` takes.
//!
//! A number that this version does not know is shown as such, never taken for another one.

use holdfast_proto::v1;

macro_rules! words {
    ($($(#[$doc:meta])* $function:ident: $enum:ty { $($variant:ident => $word:literal),* $(,)? })*) => {
        $($(#[$doc])*
        #[must_use]
        pub fn $function(number: i32) -> String {
            match <$enum>::try_from(number) {
                $(Ok(<$enum>::$variant) => $word.to_owned(),)*
                Err(_) => format!("number {number}, not known to this version"),
            }
        })*
    };
}

words! {
    /// Of a deployment.
    deployment_state: v1::DeploymentState {
        Unspecified => "not told", Queued => "queued", Active => "active", Uncertain => "uncertain", Held => "held",
        Succeeded => "succeeded", Failed => "failed", Cancelled => "cancelled",
    }
    /// Of an attempt.
    attempt_state: v1::AttemptState {
        Unspecified => "not told", Offered => "offered", Running => "running", Succeeded => "succeeded",
        Failed => "failed", Stopped => "stopped", Declined => "declined", Lapsed => "lapsed",
        Interrupted => "interrupted", Uncertain => "uncertain", Resolved => "resolved",
    }
    /// Of a step.
    step_state: v1::StepState {
        Unspecified => "not told", Pending => "pending", Permitted => "permitted", Started => "started",
        Applied => "applied", Failed => "failed", Stopped => "stopped", Unknown => "unknown",
        NotStarted => "not started", Carried => "carried",
    }
    /// What came of reading a carried step's resource again.
    carry: v1::CarryState {
        Unspecified => "not told", NotRead => "not read again", Due => "to be read again",
        AsLeft => "read again: as it was left", Differs => "read again: somebody else has changed it",
        Failed => "could not be read again",
    }
    /// Of a runner.
    runner: v1::RunnerState {
        Unspecified => "not told", Stopped => "stopped", FencedOff => "fenced off", HostGone => "host gone",
        StillRunning => "still running", Unknown => "unknown",
    }
    /// Of an operation at its resource.
    operation: v1::OperationState {
        Unspecified => "not told", NotApplied => "not applied", Applying => "applying", Applied => "applied",
        Partial => "partial", Unknown => "unknown",
    }
    /// Of a decision, as `--as` takes it.
    decision: v1::DecisionKind {
        Unspecified => "not told", Retry => "retry", AcceptSucceeded => "accept-succeeded",
        AcceptFailed => "accept-failed", AcceptCancelled => "accept-cancelled", Rollback => "rollback",
        Readmit => "readmit", Abandon => "abandon", Note => "note",
    }
    /// Why a report is evidence only.
    filed: v1::FiledReason {
        Unspecified => "", SupersededFence => "superseded fence", LeaseExpired => "lease expired",
        AttemptTerminal => "attempt terminal", StepOutOfOrder => "step out of order",
        UnknownAttempt => "unknown attempt", WrongAgent => "wrong agent", WrongIncarnation => "wrong incarnation",
        WrongFence => "wrong fence", UnknownStep => "unknown step", NotPermitted => "not permitted",
        SequenceConflict => "sequence conflict",
    }
    /// Of an agent's session.
    contact: v1::Contact {
        Unspecified => "not told", Connected => "connected", Silent => "silent",
    }
    /// Of an operator.
    role: v1::Role {
        Unspecified => "not told", Viewer => "viewer", Admin => "admin", Deployer => "deployer",
        Approver => "approver", Reconciler => "reconciler", Operator => "operator", Auditor => "auditor",
    }
    /// What a step is declared to do.
    effect: v1::StepEffect {
        Unspecified => "not told", Mutates => "mutates", None => "none",
    }
    /// Whether a step may be repeated.
    retry: v1::RetryClass {
        Unspecified => "not told", Pure => "pure", Idempotent => "idempotent", Unsafe => "unsafe",
    }
    /// Who reaches a resource.
    reach: v1::Reach {
        Unspecified => "not told", Host => "host", Shared => "shared",
    }
}

/// How a process ended.
#[must_use]
pub fn exit(exit: &v1::Exit) -> String {
    match v1::ExitKind::try_from(exit.kind) {
        Ok(v1::ExitKind::Exited) => format!("exit {}", exit.code),
        Ok(v1::ExitKind::Signaled) if exit.by_us => format!("signal {}, sent by the agent", exit.signal),
        Ok(v1::ExitKind::Signaled) => format!("signal {}, not sent by the agent", exit.signal),
        Ok(v1::ExitKind::OutOfMemory) => "out of memory".to_owned(),
        Ok(v1::ExitKind::NotSpawned) => "could not be started".to_owned(),
        Ok(v1::ExitKind::Unknown) => "nobody saw how it exited".to_owned(),
        Ok(v1::ExitKind::Unspecified) => String::new(),
        Err(_) => format!("number {}, not known to this version", exit.kind),
    }
}

#[cfg(test)]
mod tests {
    use holdfast_common::explain::explain_state;

    use super::*;

    #[test]
    fn every_word_of_a_state_can_be_explained() {
        let words = (1..=7)
            .map(deployment_state)
            .chain((1..=10).map(attempt_state))
            .chain((1..=9).map(step_state))
            .chain((1..=5).map(runner))
            .chain((1..=5).map(operation))
            .chain((1..=11).map(filed))
            .chain((1..=7).map(role))
            .chain((1..=8).map(decision));
        for word in words {
            assert!(explain_state(&word).is_some(), "{word}");
        }
    }

    #[test]
    fn a_number_of_another_version_is_shown_as_one() {
        assert_eq!(deployment_state(99), "number 99, not known to this version");
    }
}
