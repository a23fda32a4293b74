use super::*;
use crate::adapter::{Adapter, Enforce, Inspect};
use crate::outcome::{AttemptEnd, Exit, FailureClass, OperationState, StepEnd};
use crate::recovery::{AttestedRunner, AttestedTarget, Runner};
use crate::report::Disposition;
use crate::rollback::{DataEffect, DataRecovery};
use crate::spec::{Reach, RetryClass, StepEffect};

fn is_useful(explanation: Explanation, of: &str) {
    let Explanation { what, still_true, next } = explanation;
    for text in [what, still_true, next] {
        assert!(
            text.ends_with('.') && text.starts_with(char::is_uppercase) || text.starts_with("holdfast"),
            "{of}: {text}"
        );
        assert!(!text.contains("  ") && !text.contains('\n'), "{of}: {text}");
    }
}

#[test]
fn every_code_is_explained_and_no_two_alike() {
    let mut seen = std::collections::BTreeMap::new();
    for code in Code::ALL {
        let explanation = explain(*code);
        is_useful(explanation, &code.to_string());
        assert_eq!(seen.insert(explanation.what, *code), None, "{code} has the text of another code");
    }
}

/// Each word-like enum with its words, as they are stored. A new variant does not compile until its word stands here.
macro_rules! every {
    ($($enum:ident { $($pattern:pat => $word:literal),* $(,)? })*) => {
        #[test]
        fn every_word_of_every_enum_is_explained() {
            let mut count = 0;
            $({
                #[allow(dead_code)]
                fn word(value: &$enum) -> &'static str {
                    match value { $($pattern => $word,)* }
                }
                for word in [$($word),*] {
                    let explanation = explain_state(word).unwrap_or_else(|| panic!("{} {word} is not explained", stringify!($enum)));
                    is_useful(explanation, word);
                    count += 1;
                }
            })*
            assert!(count > 80, "{count}");
        }
    };
}

every! {
    FiledReason {
        FiledReason::SupersededFence => "superseded_fence", FiledReason::LeaseExpired => "lease_expired",
        FiledReason::AttemptTerminal => "attempt_terminal", FiledReason::StepOutOfOrder => "step_out_of_order",
        FiledReason::UnknownAttempt => "unknown_attempt", FiledReason::WrongAgent => "wrong_agent",
        FiledReason::WrongIncarnation => "wrong_incarnation", FiledReason::WrongFence => "wrong_fence",
        FiledReason::UnknownStep => "unknown_step", FiledReason::NotPermitted => "not_permitted",
        FiledReason::SequenceConflict => "sequence_conflict",
    }
    PermitDenial {
        PermitDenial::NotYours => "not_yours", PermitDenial::NotCurrent => "not_current",
        PermitDenial::LeaseExpired => "lease_expired", PermitDenial::CancelRecorded => "cancel_recorded",
        PermitDenial::DeadlinePassed => "deadline_passed", PermitDenial::OutOfOrder => "out_of_order",
        PermitDenial::NoSuchMutation => "no_such_mutation", PermitDenial::PlanDiffers => "plan_differs",
        PermitDenial::PermitOpen => "permit_open", PermitDenial::CarryUnread => "carry_unread",
    }
    DeclineReason {
        DeclineReason::Busy => "busy", DeclineReason::Conflict => "conflict",
        DeclineReason::UnknownTarget => "unknown_target", DeclineReason::FenceRegression => "fence_regression",
        DeclineReason::HostPolicy => "host_policy", DeclineReason::Draining => "draining",
        DeclineReason::NoRoom => "no_room",
    }
    Disposition {
        Disposition::Accepted => "accepted", Disposition::Duplicate => "duplicate", Disposition::Filed(_) => "filed",
    }
    Runner {
        Runner::Stopped => "stopped", Runner::FencedOff => "fenced_off", Runner::HostGone => "host_gone",
        Runner::StillRunning => "still_running", Runner::Unknown => "unknown",
    }
    DecisionKind {
        DecisionKind::Retry => "retry", DecisionKind::AcceptSucceeded => "accept_succeeded",
        DecisionKind::AcceptFailed => "accept_failed", DecisionKind::AcceptCancelled => "accept_cancelled",
        DecisionKind::Rollback => "rollback", DecisionKind::Readmit => "readmit",
        DecisionKind::Abandon => "abandon", DecisionKind::Note => "note",
    }
    Policy { Policy::Manual => "manual", Policy::WhenProven => "when-proven", Policy::TrustReport => "trust-report" }
    AttestedRunner { AttestedRunner::Stopped => "stopped", AttestedRunner::HostGone => "host_gone" }
    AttestedTarget {
        AttestedTarget::Applied => "applied", AttestedTarget::NotApplied => "not_applied",
        AttestedTarget::Partial => "partial",
    }
    OperationState {
        OperationState::NotApplied => "not_applied", OperationState::Applying => "applying",
        OperationState::Applied => "applied", OperationState::Partial => "partial",
        OperationState::Unknown => "unknown",
    }
    StepEnd {
        StepEnd::Applied => "applied", StepEnd::Failed { .. } => "failed", StepEnd::Stopped { .. } => "stopped",
        StepEnd::Unknown => "unknown", StepEnd::NotStarted => "not_started",
    }
    AttemptEnd {
        AttemptEnd::Succeeded => "succeeded", AttemptEnd::Failed => "failed", AttemptEnd::Stopped => "stopped",
    }
    Exit {
        Exit::Exited(_) => "exited", Exit::Signaled { .. } => "signaled", Exit::OutOfMemory => "out_of_memory",
        Exit::NotSpawned => "not_spawned", Exit::Unknown => "unknown",
    }
    FailureClass {
        FailureClass::Transient => "transient", FailureClass::Permanent => "permanent",
        FailureClass::Infrastructure => "infrastructure",
    }
    StepEffect { StepEffect::Mutates => "mutates", StepEffect::None => "none" }
    RetryClass { RetryClass::Pure => "pure", RetryClass::Idempotent => "idempotent", RetryClass::Unsafe => "unsafe" }
    DataEffect {
        DataEffect::None => "none", DataEffect::Expand => "expand", DataEffect::Contract => "contract",
        DataEffect::Destructive => "destructive",
    }
    DataRecovery {
        DataRecovery::NoneNeeded => "none-needed", DataRecovery::ExpandContract => "expand-contract",
        DataRecovery::Restore { .. } => "restore",
    }
    Reach { Reach::Host => "host", Reach::Shared => "shared" }
    Adapter {
        Adapter::Command => "command", Adapter::Release => "release", Adapter::Check => "check",
        Adapter::Postgres => "postgres", Adapter::Git => "git", Adapter::Http => "http", Adapter::External => "external",
    }
    Inspect { Inspect::None => "none", Inspect::Revision => "revision", Inspect::Operation => "operation" }
    Enforce { Enforce::None => "none", Enforce::Revision => "revision", Enforce::Fence => "fence" }
}

#[test]
fn every_state_and_stage_is_explained_and_every_word_is_useful() {
    let states = "
        queued active succeeded failed cancelled uncertain held hold superseded
        offered running stopped declined lapsed interrupted resolved
        passed not_healthy over_deadline
        pending permitted started applied unknown not_started carried
        requested recorded delivered acted observed
        accepted duplicate filed
        not_applied applying partial fenced_off host_gone still_running";
    for word in states.split_whitespace() {
        assert!(explain_state(word).is_some(), "{word} is not explained");
    }
    let all = words();
    for (kind, word, explanation) in &all {
        is_useful(*explanation, word);
        assert!(*kind != Kind::State || states.split_whitespace().any(|known| known == *word), "{word}");
        assert_eq!(all.iter().filter(|(_, other, _)| other == word).count(), 1, "{word} stands twice");
    }
}

#[test]
fn every_exit_code_is_explained() {
    assert_eq!(ExitCode::ALL.len(), 15);
    for exit in ExitCode::ALL {
        is_useful(explain_exit(exit), &format!("exit {}", exit as u8));
        assert_eq!(ExitCode::from_number(exit as u8), Some(exit));
    }
    assert_eq!(ExitCode::from_number(42), None);
}

#[test]
fn words_are_found_however_they_are_typed_and_others_are_not() {
    assert_eq!(explain_state("Not-Started"), explain_state("not_started"));
    assert_eq!(explain_state(" still running "), explain_state("still_running"));
    for word in ["", "done", "ok", "HF-2031", "queue"] {
        assert_eq!(explain_state(word), None, "{word}");
    }
}

#[test]
fn what_exists_is_not_called_unsupported_and_a_held_target_is_not_of_deployments_alone() {
    let unsupported = explain(Code::NotSupported).what;
    for adapter in ["postgres", "git", "http", "adapter"] {
        assert!(!unsupported.contains(adapter), "{adapter}: {unsupported}");
    }
    let held = explain_exit(ExitCode::TargetHeld);
    assert!(held.what.contains("--no-queue") && held.what.contains("target attest"), "{held:?}");
    assert!(held.next.starts_with("holdfast target show TARGET"), "{held:?}");
}

#[test]
fn the_words_of_the_output_and_of_the_pages_are_explained() {
    let page = include_str!("../../../docs/reading.md");
    let table = page.split_once("## Words").expect("a table of words").1;
    let rows: Vec<&str> =
        table.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" |")).map(|row| row.0).collect();
    assert!(rows.len() > 10 && rows.contains(&"on hold"), "{rows:?}");
    let words = rows.into_iter().filter(|row| !matches!(*row, "word" | "---"));
    for word in
        words.chain(["connected", "free", "locked", "drained", "fifo", "latest", "order", "attest", "late report"])
    {
        assert!(explain_state(word).is_some(), "{word}");
    }
}
