//! Enum by enum. An enum of ours that gains a value fails to build here.

use holdfast_common::outcome::{AttemptEnd, FailureClass, OperationState};
use holdfast_common::recovery::{AttestedRunner, AttestedTarget, DecisionKind, Runner};
use holdfast_common::report::{DeclineReason, FiledReason, PermitDenial};
use holdfast_common::rollback::DataEffect;
use holdfast_common::spec::{Reach, RetryClass, StepEffect};

use super::{JournalState, WireEnum};
use crate::v1;

macro_rules! wire_enum {
    ($ours:ty, $wire:ident, $($name:ident),* $(,)?) => {
        impl WireEnum for $ours {
            const NAME: &'static str = stringify!($wire);

            fn from_number(number: i32) -> Option<Self> {
                match v1::$wire::try_from(number).ok()? {
                    v1::$wire::Unspecified => None,
                    $(v1::$wire::$name => Some(Self::$name),)*
                }
            }

            fn to_number(self) -> i32 {
                match self {
                    $(Self::$name => v1::$wire::$name as i32,)*
                }
            }
        }
    };
}

wire_enum!(JournalState, JournalState, Taken, Running, BetweenSteps, Ended, Gone);
wire_enum!(FailureClass, FailureClass, Transient, Permanent, Infrastructure);
wire_enum!(AttemptEnd, AttemptEnd, Succeeded, Failed, Stopped);
wire_enum!(OperationState, OperationState, NotApplied, Applying, Applied, Partial, Unknown);
wire_enum!(Runner, RunnerState, Stopped, FencedOff, HostGone, StillRunning, Unknown);
wire_enum!(StepEffect, StepEffect, Mutates, None);
wire_enum!(DataEffect, DataEffect, None, Expand, Contract, Destructive);
wire_enum!(RetryClass, RetryClass, Pure, Idempotent, Unsafe);
wire_enum!(Reach, Reach, Host, Shared);
wire_enum!(DeclineReason, DeclineReason, Busy, Conflict, UnknownTarget, FenceRegression, HostPolicy, Draining, NoRoom);
wire_enum!(AttestedRunner, AttestedRunner, Stopped, HostGone);
wire_enum!(AttestedTarget, AttestedTarget, Applied, NotApplied, Partial);
wire_enum!(
    DecisionKind,
    DecisionKind,
    Retry,
    AcceptSucceeded,
    AcceptFailed,
    AcceptCancelled,
    Rollback,
    Readmit,
    Abandon,
    Note,
);
wire_enum!(
    FiledReason,
    FiledReason,
    SupersededFence,
    LeaseExpired,
    AttemptTerminal,
    StepOutOfOrder,
    UnknownAttempt,
    WrongAgent,
    WrongIncarnation,
    WrongFence,
    UnknownStep,
    NotPermitted,
    SequenceConflict,
);
wire_enum!(
    PermitDenial,
    PermitDenial,
    NotYours,
    NotCurrent,
    LeaseExpired,
    CancelRecorded,
    DeadlinePassed,
    OutOfOrder,
    NoSuchMutation,
    PlanDiffers,
    PermitOpen,
    CarryUnread,
);
