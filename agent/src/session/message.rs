//! What the coordinator says, parsed: inside the agent there are no half-valid messages.

use std::collections::BTreeSet;

use holdfast_agent_core::work::{Assignment, GoesOn};
use holdfast_common::claim::Claim;
use holdfast_common::fence::Fence;
use holdfast_common::id::{AgentName, EvidenceId, OperationId, SessionId, StepName, StoreId, TargetName};
use holdfast_common::report::{Carry, Disposition, PermitDenial, ReportSequence};
use holdfast_common::spec::{PlanDigest, ResourceSpec, StepSpec};
use holdfast_common::time::{Millis, Wall};
use holdfast_proto::convert::{
    self, Invalid, WireEnum as _, claim_from_wire, duration_from_wire, fence_from_wire, parsed, required,
    resource_from_wire, step_from_wire,
};
use holdfast_proto::v1;

/// The answer to a hello.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// The session.
    pub session: SessionId,
    /// To be presented in the next hello.
    pub token: String,
    /// The coordinator's store.
    pub store: StoreId,
    /// Its epoch.
    pub epoch: u32,
    /// How far it had come.
    pub commit: u64,
    /// How often to send a heartbeat.
    pub heartbeat: Millis,
    /// As the certificate says.
    pub agent: AgentName,
    /// Largest text of a report, in bytes.
    pub max_text_bytes: usize,
    /// Largest output kept of one stream of a step, in bytes.
    pub max_log_bytes: u64,
    /// Bound of the first delay after this session; `None` where the coordinator does not say.
    pub reconnect_spread: Option<Millis>,
}

/// What the coordinator says in a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromCoordinator {
    /// A heartbeat's answer, lease by lease: the new length, or `None` where the attempt is superseded.
    Renewed {
        /// Which heartbeat.
        number: u64,
        /// By claim.
        leases: Vec<(Claim, Option<Millis>)>,
    },
    /// Work.
    Offer {
        /// What to do.
        assignment: Box<Assignment>,
        /// For how long, from its receipt.
        ttl: Millis,
    },
    /// A permit.
    Permit {
        /// For which attempt.
        claim: Claim,
        /// For which step.
        step: StepName,
        /// Why not, or `None` where it is granted.
        denial: Option<PermitDenial>,
    },
    /// The answer to a report.
    Disposition(ReportSequence, Disposition),
    /// A stop is asked for.
    Cancel {
        /// Of which attempt.
        claim: Claim,
        /// Why, for people.
        reason: String,
    },
    /// A question about a resource.
    Inquiry(Box<Inquiry>),
    /// Whether an operator lets this agent have nothing new: who and why.
    Drained(Option<Drained>),
    /// Whether this process is still there: the number is for the answer.
    Ping(u64),
    /// The session is over.
    Bye {
        /// Like `HF-5005`.
        code: String,
        /// For people.
        detail: String,
    },
}

/// An operator lets this agent have nothing new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Who.
    pub by: String,
    /// Why.
    pub reason: String,
    /// Since when.
    pub since: Wall,
}

/// A question about a resource, outside every lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inquiry {
    /// The answer names it.
    pub id: EvidenceId,
    /// Of which target.
    pub target: TargetName,
    /// Which resource.
    pub resource: ResourceSpec,
    /// Which operation to look for.
    pub operation: OperationId,
    /// The operation's step.
    pub step: StepSpec,
    /// What is asked.
    pub question: Question,
}

/// What is asked about a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// A look.
    Inspect,
    /// A raise.
    FenceOff(Fence),
}

pub(super) fn welcome_from_wire(welcome: v1::Welcome) -> Result<Welcome, Invalid> {
    let position = required("position", welcome.position)?;
    let heartbeat = required("heartbeat_interval", welcome.heartbeat_interval)?;
    Ok(Welcome {
        session: parsed("session", &welcome.session)?,
        token: welcome.session_token,
        store: parsed("position.store", &position.store)?,
        epoch: position.epoch,
        commit: position.commit,
        heartbeat: duration_from_wire("heartbeat_interval", heartbeat)?,
        agent: parsed("agent", &welcome.agent)?,
        max_text_bytes: usize::try_from(welcome.max_text_bytes).unwrap_or(usize::MAX),
        max_log_bytes: welcome.max_log_bytes,
        reconnect_spread: welcome
            .reconnect_spread
            .map(|spread| duration_from_wire("reconnect_spread", spread))
            .transpose()?,
    })
}

pub(super) fn from_wire(response: v1::ConnectResponse) -> Result<FromCoordinator, Invalid> {
    use v1::connect_response::Message;
    match required("message", response.message)? {
        Message::Welcome(_) => Err(Invalid::Range { field: "message", problem: "a second welcome" }),
        Message::HeartbeatAnswer(answer) => {
            let leases = answer.leases.into_iter().map(lease_from_wire).collect::<Result<_, _>>()?;
            Ok(FromCoordinator::Renewed { number: answer.number, leases })
        }
        Message::Offer(offer) => offer_from_wire(offer),
        Message::PermitAnswer(answer) => permit_from_wire(answer),
        Message::Disposition(answer) => {
            let (sequence, disposition) = convert::disposition_from_wire(answer)?;
            Ok(FromCoordinator::Disposition(sequence, disposition))
        }
        Message::Cancel(cancel) => {
            Ok(FromCoordinator::Cancel { claim: claim_from_wire(cancel.claim)?, reason: cancel.reason })
        }
        Message::Inquiry(inquiry) => inquiry_from_wire(inquiry),
        Message::Bye(bye) => Ok(FromCoordinator::Bye { code: bye.code, detail: bye.detail }),
        Message::Ping(v1::Ping { number }) => Ok(FromCoordinator::Ping(number)),
        Message::Drain(drain) => drained_from_wire(drain).map(FromCoordinator::Drained),
    }
}

fn drained_from_wire(drain: v1::Drain) -> Result<Option<Drained>, Invalid> {
    if !drain.drained {
        return Ok(None);
    }
    let since = convert::wall_from_wire("drain.since", drain.since)?;
    Ok(Some(Drained { by: drain.by, reason: drain.reason, since }))
}

fn lease_from_wire(lease: v1::RenewedLease) -> Result<(Claim, Option<Millis>), Invalid> {
    let claim = claim_from_wire(lease.claim)?;
    match v1::LeaseAnswer::try_from(lease.answer).unwrap_or(v1::LeaseAnswer::Unspecified) {
        v1::LeaseAnswer::Unspecified => {
            Err(Invalid::Enum { field: "leases.answer", kind: "LeaseAnswer", number: lease.answer })
        }
        v1::LeaseAnswer::Renewed => {
            Ok((claim, Some(duration_from_wire("leases.ttl", required("leases.ttl", lease.ttl)?)?)))
        }
        v1::LeaseAnswer::Superseded => Ok((claim, None)),
    }
}

fn offer_from_wire(offer: v1::Offer) -> Result<FromCoordinator, Invalid> {
    if offer.steps.is_empty() {
        return Err(Invalid::Missing { field: "steps" });
    }
    if offer.plan_digest.is_empty() {
        return Err(Invalid::Missing { field: "plan_digest" });
    }
    let carried = offer.carried.iter().map(|step| parsed("carried", step)).collect::<Result<BTreeSet<_>, _>>()?;
    let assignment = Assignment {
        claim: claim_from_wire(offer.claim)?,
        target: parsed("target", &offer.target)?,
        number: offer.attempt_number,
        plan: PlanDigest(offer.plan_digest),
        steps: offer.steps.into_iter().map(step_from_wire).collect::<Result<_, _>>()?,
        resources: offer.resources.into_iter().map(resource_from_wire).collect::<Result<_, _>>()?,
        carried,
        grace: duration_from_wire("cancel_grace", required("cancel_grace", offer.cancel_grace)?)?,
        goes_on: offer.goes_on.map(goes_on_from_wire).transpose()?,
        carries: offer.carries.iter().map(carry_from_wire).collect::<Result<_, _>>()?,
        transient_exit_codes: offer.transient_exit_codes.into_iter().map(exit_code).collect::<Result<_, _>>()?,
    };
    let ttl = duration_from_wire("ttl", required("ttl", offer.ttl)?)?;
    Ok(FromCoordinator::Offer { assignment: Box::new(assignment), ttl })
}

fn carry_from_wire(carry: &v1::Carry) -> Result<Carry, Invalid> {
    let left = convert::parsed_or_none("carries.left", &carry.left)?;
    Ok(Carry { step: parsed("carries.step", &carry.step)?, left })
}

fn exit_code(code: u32) -> Result<u8, Invalid> {
    let (field, problem) = ("transient_exit_codes", "not an exit status of a failure");
    u8::try_from(code).ok().filter(|code| *code != 0).ok_or(Invalid::Range { field, problem })
}

fn goes_on_from_wire(goes_on: v1::GoesOn) -> Result<GoesOn, Invalid> {
    if goes_on.attempts.is_empty() {
        return Err(Invalid::Missing { field: "goes_on.attempts" });
    }
    let attempts = goes_on.attempts.iter().map(|attempt| parsed("goes_on.attempts", attempt));
    Ok(GoesOn { attempts: attempts.collect::<Result<_, _>>()?, step: parsed("goes_on.step", &goes_on.step)? })
}

fn permit_from_wire(answer: v1::PermitAnswer) -> Result<FromCoordinator, Invalid> {
    let denial = match v1::PermitAnswerKind::try_from(answer.kind).unwrap_or(v1::PermitAnswerKind::Unspecified) {
        v1::PermitAnswerKind::Unspecified => {
            return Err(Invalid::Enum { field: "kind", kind: "PermitAnswerKind", number: answer.kind });
        }
        v1::PermitAnswerKind::Granted => None,
        v1::PermitAnswerKind::Denied => Some(PermitDenial::from_wire("denial", answer.denial)?),
    };
    let claim = claim_from_wire(answer.claim)?;
    Ok(FromCoordinator::Permit { claim, step: parsed("step", &answer.step)?, denial })
}

fn inquiry_from_wire(inquiry: v1::Inquiry) -> Result<FromCoordinator, Invalid> {
    let question = match required("question", inquiry.question)? {
        v1::inquiry::Question::Inspect(v1::Inspect {}) => Question::Inspect,
        v1::inquiry::Question::FenceOff(raise) => Question::FenceOff(fence_from_wire("fence_off.fence", raise.fence)?),
    };
    let operation = convert::operation_from_wire("operation", &inquiry.operation)?;
    Ok(FromCoordinator::Inquiry(Box::new(Inquiry {
        id: parsed("id", &inquiry.id)?,
        target: parsed("target", &inquiry.target)?,
        resource: resource_from_wire(required("resource", inquiry.resource)?)?,
        operation: required("operation", operation)?,
        step: step_from_wire(required("step", inquiry.step)?)?,
        question,
    })))
}
