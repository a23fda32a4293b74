//! The stable code of every refusal, and the exit code that a command ends with.
//!
//! Ranges: 1 files and input, 2 targets and deployments, 3 reconciliation, 4 who may, 5 talking, 6 our own faults.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $exit:ident, $title:literal;)*) => {
        /// A stable code, shown as `HF-2031`. Never renumbered, never reused.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Code { $($(#[$doc])* $name = $number,)* }

        impl Code {
            /// Every code, by number.
            pub const ALL: &'static [Code] = &[$(Code::$name,)*];

            /// A few words, lower-case.
            #[must_use]
            pub fn title(self) -> &'static str {
                match self { $(Code::$name => $title,)* }
            }

            /// What a command that meets it exits with.
            #[must_use]
            pub fn exit(self) -> ExitCode {
                match self { $(Code::$name => ExitCode::$exit,)* }
            }
        }
    };
}

codes! {
    /// Not TOML, not JSON, or not UTF-8.
    FileSyntax = 1001, Usage, "the file could not be read as TOML or JSON";
    /// A key that the schema does not have.
    UnknownKey = 1002, Usage, "unknown key";
    /// A value of the wrong type, out of range, or with characters that are not allowed.
    InvalidValue = 1003, Usage, "a value is not valid";
    /// An input is missing, unknown or of the wrong type.
    InvalidInput = 1004, Usage, "an input is missing or not valid";
    /// A part is missing that the schema requires.
    MissingKey = 1005, Usage, "a required key is missing";
    /// Larger than allowed.
    TooLarge = 1006, Usage, "too large";
    /// Something valid that this version can't honour.
    NotSupported = 1601, Precondition, "not supported by this version";
    /// A step destroys data, and no tested recovery is declared.
    DataDestroyed = 1602, Precondition, "data would be destroyed without a tested recovery";

    /// No such target, or none that the caller may see.
    TargetNotFound = 2001, NotFound, "no such target";
    /// No such deployment, or none that the caller may see.
    DeploymentNotFound = 2002, NotFound, "no such deployment";
    /// A prefix that fits several.
    AmbiguousId = 2003, Usage, "the id fits more than one deployment";
    /// No such agent.
    AgentNotFound = 2004, NotFound, "no such agent";
    /// The same request id with another content.
    RequestIdReused = 2010, Precondition, "this request id was used for another request";
    /// The revision at the target is not the expected one.
    RevisionMismatch = 2011, Precondition, "the target's revision is not the expected one";
    /// A deployment with a higher order key held the target before.
    OrderPassed = 2012, Precondition, "a deployment with a higher order key came before";
    /// No agent can take it now.
    NoEligibleAgent = 2020, Precondition, "no eligible agent";
    /// The target is held by a deployment that is uncertain.
    TargetUncertain = 2031, TargetHeld, "the target is held by a deployment that is uncertain";
    /// The target is held by a deployment that waits for a person.
    TargetWaitsForDecision = 2032, TargetHeld, "the target is held by a deployment that waits for a decision";
    /// The target is held by a deployment at work.
    TargetBusy = 2033, TargetHeld, "the target is held by a deployment at work";
    /// A resource's revision is unknown and nobody has read it yet.
    RevisionUnknown = 2034, Precondition, "a resource's revision is unknown";
    /// An operator has put the target on hold.
    TargetOnHold = 2035, TargetHeld, "the target is on hold";
    /// Nobody has put the target on hold.
    NotOnHold = 2036, Precondition, "the target is not on hold";
    /// A declaration can't change under a deployment.
    TargetInUse = 2040, Precondition, "the target is in use";
    /// A resource already belongs to another target.
    ResourceTaken = 2041, Precondition, "the resource belongs to another target";
    /// No fence is left.
    FenceExhausted = 2042, Precondition, "no fence is left for this target";
    /// The deployment had ended before.
    AlreadyEnded = 2060, Precondition, "the deployment had already ended";
    /// Too many wait already.
    QueueFull = 2061, Precondition, "the target's queue is full";
    /// No deployment whose changes stand had found that revision.
    NothingToGoBackTo = 2065, Precondition, "there is nothing to go back to";
    /// Going back is not compatible now.
    CannotGoBack = 2066, Precondition, "going back is not compatible now";
    /// What stands on the target is not what the asker was shown.
    PlaceMoved = 2067, Precondition, "what stands on the target has changed";
    /// An archive that the file says was uploaded is not at the coordinator.
    ArchiveMissing = 2070, Precondition, "an archive was not uploaded";
    /// An archive is not the one that its digest names.
    ArchiveDiffers = 2071, Precondition, "the archive is not the one that its digest names";
    /// An archive is larger than allowed, or there is no room for it.
    ArchiveTooLarge = 2072, Precondition, "no room for the archive";

    /// Neither uncertain nor held.
    NothingToReconcile = 3001, Precondition, "there is nothing to reconcile";
    /// The decision lacks proof.
    DecisionNotOpen = 3002, Precondition, "this decision is not open";
    /// Newer evidence came than the decision was based on.
    EvidenceMoved = 3003, Precondition, "newer evidence has arrived";
    /// The typed name is not the target's.
    NotConfirmed = 3004, Usage, "the target's name was not confirmed";
    /// The step can't be read back, nobody reaches its resource, or it is being changed.
    CannotInspect = 3005, Precondition, "there is nothing that can be inspected now";
    /// No fence holds the step back, or nobody reaches its resource.
    CannotFenceOff = 3006, Precondition, "the step can't be fenced off";
    /// A reason is missing.
    ReasonMissing = 3007, Usage, "a reason is required";
    /// A person's word on an unread resource without the revision that they saw.
    ObservedMissing = 3008, Usage, "the observed revision is missing";

    /// No token, or one that is not known.
    NotSignedIn = 4001, NotAllowed, "not signed in";
    /// The token has expired.
    TokenExpired = 4002, NotAllowed, "the token has expired";
    /// The role does not include it.
    NotAllowed = 4003, NotAllowed, "not allowed";
    /// An agent's certificate is required.
    NotAnAgent = 4004, NotAllowed, "an agent's certificate is required";
    /// A valid token of that name is there already.
    TokenExists = 4005, Precondition, "a valid token of this name exists";
    /// No such token, or none that the caller may manage.
    TokenNotFound = 4006, NotFound, "no such token";
    /// A token would be given more than its maker holds.
    GrantTooWide = 4007, NotAllowed, "nobody can give more than they hold";

    /// Certificates of agents come from elsewhere.
    EnrolmentClosed = 4010, Precondition, "this coordinator signs no certificates";
    /// No such join token.
    JoinTokenUnknown = 4011, NotAllowed, "the join token is not known";
    /// Its time is over.
    JoinTokenExpired = 4012, NotAllowed, "the join token has expired";
    /// Another host has joined with it.
    JoinTokenUsed = 4013, NotAllowed, "the join token was used";
    /// An agent of that name is enrolled.
    AgentNameTaken = 4014, Precondition, "an agent of this name is enrolled";
    /// Too many wrong join tokens came from there.
    JoinGuessing = 4015, NotAllowed, "too many wrong join tokens";
    /// The request for a certificate can't be used.
    BadCertificateRequest = 4016, Usage, "the request for a certificate is not valid";
    /// The certificate was revoked, or its agent removed.
    CertificateRevoked = 4017, NotAllowed, "the certificate was revoked";
    /// Another copy of the agent is, or was, in contact.
    IdentityCopied = 4018, Precondition, "this is a copy of an agent";
    /// Whoever answers does not show the pinned authority.
    CaPinMismatch = 4019, NotAllowed, "the coordinator does not show the pinned authority";
    /// Nobody locked it.
    NotLocked = 4020, Precondition, "the agent is not locked";
    /// More certificates than an agent needs.
    RenewedTooOften = 4021, Precondition, "the certificate was renewed too often";
    /// The host where it was to run does not allow it.
    HostPolicy = 4030, NotAllowed, "the host does not allow it";

    /// The request may have been taken; nobody answered.
    NoAnswer = 5001, NoAnswer, "no answer";
    /// A message breaks the protocol: the field is named.
    InvalidMessage = 5003, Usage, "a message is not valid";
    /// No protocol version in common.
    ProtocolVersion = 5004, Precondition, "no protocol version in common";
    /// Another session of the same agent took over.
    SessionReplaced = 5005, Precondition, "another session of the same agent took over";

    /// A fault of Holdfast itself.
    Internal = 6001, Unexpected, "a fault in Holdfast itself";
    /// The store refused or failed.
    StoreFailed = 6002, Unexpected, "the store failed";
    /// A configuration that can't be used.
    Config = 6003, Usage, "the configuration is not valid";
    /// The coordinator is starting or stopping.
    NotServing = 6004, NoAnswer, "the coordinator is not serving";
    /// A disk has no room for new work.
    DiskFull = 6005, Precondition, "the disk has no room for new work";
    /// A process has no descriptors for new work.
    OutOfDescriptors = 6006, Precondition, "there are no descriptors for new work";
    /// What is stored is not what the events lead to.
    StoreUnsound = 6007, Unexpected, "the store differs from its events";
}

impl Code {
    /// The number, as in `HF-2031`.
    #[must_use]
    pub fn number(self) -> u16 {
        self as u16
    }

    /// By text like `HF-2031` or `2031`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Code> {
        let digits = text.strip_prefix("HF-").unwrap_or(text);
        let number: u16 = digits.parse().ok()?;
        Code::ALL.iter().copied().find(|code| code.number() == number)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HF-{}", self.number())
    }
}

/// What `holdfast` exits with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ExitCode {
    /// Done and true.
    Done = 0,
    /// Something unexpected.
    Unexpected = 1,
    /// Usage, or a bad file.
    Usage = 2,
    /// Not found.
    NotFound = 3,
    /// Not signed in or not allowed.
    NotAllowed = 4,
    /// No answer: the request may have been taken.
    NoAnswer = 5,
    /// Failed, observed.
    Failed = 10,
    /// Cancelled, observed.
    Cancelled = 11,
    /// Uncertain or held: the target is reserved and somebody must decide.
    NeedsDecision = 12,
    /// The cancel came too late: it succeeded.
    CancelTooLate = 13,
    /// The client's own timeout passed. Nothing was stopped.
    ClientTimeout = 14,
    /// The target is held, and what was asked for can't wait in line, or must not: `--no-queue`.
    TargetHeld = 15,
    /// Refused by a precondition.
    Precondition = 16,
    /// Waiting for approval and `--no-wait` was given.
    WaitingForApproval = 17,
    /// Left by Ctrl-C.
    Interrupted = 130,
}

impl ExitCode {
    /// Every exit code, by number.
    pub const ALL: [ExitCode; 15] = [
        ExitCode::Done,
        ExitCode::Unexpected,
        ExitCode::Usage,
        ExitCode::NotFound,
        ExitCode::NotAllowed,
        ExitCode::NoAnswer,
        ExitCode::Failed,
        ExitCode::Cancelled,
        ExitCode::NeedsDecision,
        ExitCode::CancelTooLate,
        ExitCode::ClientTimeout,
        ExitCode::TargetHeld,
        ExitCode::Precondition,
        ExitCode::WaitingForApproval,
        ExitCode::Interrupted,
    ];

    /// By its number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<ExitCode> {
        ExitCode::ALL.into_iter().find(|code| *code as u8 == number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_read_back() {
        for (index, code) in Code::ALL.iter().enumerate() {
            assert_eq!(Code::ALL.iter().position(|other| other.number() == code.number()), Some(index));
            assert_eq!(Code::parse(&code.to_string()), Some(*code));
        }
        assert_eq!(Code::parse("HF-9999"), None);
    }
}
