//! What must follow when a step fails: a row for each point, a column for each kind of fault.
//!
//! The steps are those of [`super::scene`]: a release, which its resource keeps a ledger and fences for; a look, which changes
//! nothing; a command, which nobody can read back and which may not be repeated; a health check.
//!
//! ```text
//!                before the permit   permitted    begun        effect done   reported
//! agent killed   goes on             goes on      goes on      goes on       goes on
//! agent cut      another follows     uncertain    uncertain    uncertain     another follows
//! coordinator    goes on             goes on      goes on      goes on       goes on
//! process killed -                   -            again/held   on/held       -
//! process paused -                   -            goes on      goes on       -
//! host paused    another follows     uncertain    uncertain    uncertain     another follows
//! ```
//!
//! Every cell ends as succeeded with one effect of each changing step, by the means that it names.

use holdfast_proto::v1::{
    AttemptState, AttestedTarget, DecisionKind, DeploymentState as Deployment, StepState as Told,
};

macro_rules! all {
    ($(#[$doc:meta])* $name:ident { $($(#[$each:meta])* $one:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum $name { $($(#[$each])* $one,)* }

        impl $name {
            /// Every one.
            pub(super) const ALL: &'static [Self] = &[$(Self::$one,)*];
        }
    };
}

all! {
    /// Which step is made to fail.
    Step {
        /// Puts a release in place; its resource can be read and fenced.
        Release,
        /// Changes nothing, and has no permit.
        Look,
        /// Changes what can't be read back, and may not be repeated.
        Command,
        /// Looks whether it is well.
        Check,
    }
}

all! {
    /// How far it has come when the fault comes.
    Point {
        /// Its permit was not asked for.
        BeforePermit,
        /// Its permit is recorded, heard by the agent, and not used.
        Permitted,
        /// Its start record stands and its body runs.
        Begun,
        /// Its effect can be seen, and its process is still there.
        EffectDone,
        /// Its end is recorded, and the next step that changes something has not asked for its permit.
        Reported,
    }
}

all! {
    /// What happens then.
    Fault {
        /// `kill -9` of the agent, which is started again within its lease. Shims live on.
        AgentKilled,
        /// The agent's line swallows everything, until its lease has lapsed.
        AgentCut,
        /// `kill -9` of the coordinator, which is started again.
        CoordinatorKilled,
        /// `kill -9` of the step's process.
        ProcessKilled,
        /// SIGSTOP of the step's process for longer than the lease, and SIGCONT.
        ProcessPaused,
        /// SIGSTOP of the agent and of everything it started until its lease has lapsed, and SIGCONT.
        HostPaused,
    }
}

/// What must follow for each step.
pub(super) struct Row {
    release: Cell,
    look: Cell,
    command: Cell,
    check: Cell,
}

/// What must follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cell {
    /// This.
    Follows(Seen, End),
    /// It can't occur, because.
    CannotOccur(&'static str),
}

/// How it stands before anybody decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// The deployment, once no timer changes it any more.
    pub(super) deployment: Deployment,
    /// The attempt that was hit.
    pub(super) attempt: AttemptState,
    /// As what its step is told.
    pub(super) told: Told,
    /// Whether another attempt followed by itself.
    pub(super) followed: bool,
    /// Effects of the step in the target's own ledger.
    pub(super) effects: usize,
}

/// By what it comes to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Nobody has to do anything.
    ByItself,
    /// The policy `when-proven`, on what another agent read, while the fault still lasts.
    Policy,
    /// A person, after what broke has come back.
    Person {
        /// What they say of the target, where nobody can read it.
        attests: Option<AttestedTarget>,
        /// What they decide.
        decides: DecisionKind,
    },
}

const APPLIED: End = End::Person { attests: Some(AttestedTarget::Applied), decides: DecisionKind::Retry };
const NOT_APPLIED: End = End::Person { attests: Some(AttestedTarget::NotApplied), decides: DecisionKind::Retry };
/// The agent's own journal says that it never started.
const TOMBSTONE: End = End::Person { attests: None, decides: DecisionKind::Retry };
const READMIT: End = End::Person { attests: None, decides: DecisionKind::Readmit };

const NO_PROCESS: Cell = Cell::CannotOccur("nothing of a step runs before its permit");
const IS_OVER: Cell = Cell::CannotOccur("its process has ended");
const NO_PERMIT: Cell = Cell::CannotOccur("what changes nothing needs no permit");
const NO_EFFECT: Cell = Cell::CannotOccur("it changes nothing");
const NO_OTHER: Cell = Cell::CannotOccur("it is the same as before the permit of the step behind it");

/// The table.
pub(super) fn cell(step: Step, point: Point, fault: Fault) -> Cell {
    let row = row(point, fault);
    match step {
        Step::Release => row.release,
        Step::Look => row.look,
        Step::Command => row.command,
        Step::Check => row.check,
    }
}

fn row(point: Point, fault: Fault) -> Row {
    use AttemptState::{Interrupted, Lapsed};
    use Fault as F;
    use Point as P;
    match (point, fault) {
        (P::BeforePermit, F::AgentKilled) => changing(goes_on(), goes_on()),
        (P::BeforePermit, F::AgentCut) => changing(another(Lapsed, Told::Pending), another(Interrupted, Told::Pending)),
        (P::BeforePermit, F::CoordinatorKilled) => changing(goes_on(), goes_on()),
        (P::BeforePermit, F::ProcessKilled) => changing(NO_PROCESS, NO_PROCESS),
        (P::BeforePermit, F::ProcessPaused) => changing(NO_PROCESS, NO_PROCESS),
        (P::BeforePermit, F::HostPaused) => {
            changing(another(Lapsed, Told::Pending), another(Interrupted, Told::Pending))
        }

        (P::Permitted, F::AgentKilled) => changing(goes_on(), goes_on()),
        // The permit is used while nobody hears of it.
        (P::Permitted, F::AgentCut) => {
            changing(uncertain(Told::Permitted, 1, End::Policy), uncertain(Told::Permitted, 1, APPLIED))
        }
        (P::Permitted, F::CoordinatorKilled) => changing(goes_on(), goes_on()),
        (P::Permitted, F::ProcessKilled) => changing(NO_PROCESS, NO_PROCESS),
        (P::Permitted, F::ProcessPaused) => changing(NO_PROCESS, NO_PROCESS),
        // A permit is not used any more when the agent's own count of its lease has run out.
        (P::Permitted, F::HostPaused) => {
            changing(uncertain(Told::Permitted, 0, End::Policy), uncertain(Told::Permitted, 0, TOMBSTONE))
        }

        (P::Begun, F::AgentKilled) => all(goes_on(), goes_on(), goes_on(), goes_on()),
        (P::Begun, F::AgentCut) => all(
            uncertain(Told::Started, 0, End::Policy),
            another(Interrupted, Told::Started),
            uncertain(Told::Started, 0, READMIT),
            another(Interrupted, Told::Started),
        ),
        (P::Begun, F::CoordinatorKilled) => all(goes_on(), goes_on(), goes_on(), goes_on()),
        // Read back: not applied, and may be repeated. Not to be read back, and may not: a person looks.
        (P::Begun, F::ProcessKilled) => all(
            another(AttemptState::Stopped, Told::Stopped),
            another(AttemptState::Stopped, Told::Stopped),
            held(Told::Stopped, 0, NOT_APPLIED),
            goes_on(),
        ),
        // As long as its agent is heard, a paused process is merely a slow one.
        (P::Begun, F::ProcessPaused) => all(goes_on(), goes_on(), goes_on(), goes_on()),
        (P::Begun, F::HostPaused) => all(
            uncertain(Told::Started, 0, End::Policy),
            another(Interrupted, Told::Started),
            uncertain(Told::Started, 0, READMIT),
            another(Interrupted, Told::Started),
        ),

        (P::EffectDone, F::AgentKilled) => with_effect(goes_on(), goes_on()),
        (P::EffectDone, F::AgentCut) => {
            with_effect(uncertain(Told::Started, 1, End::Policy), uncertain(Told::Started, 1, APPLIED))
        }
        (P::EffectDone, F::CoordinatorKilled) => with_effect(goes_on(), goes_on()),
        // Read back: applied, whatever became of its process.
        (P::EffectDone, F::ProcessKilled) => with_effect(goes_on(), held(Told::Stopped, 1, APPLIED)),
        (P::EffectDone, F::ProcessPaused) => with_effect(goes_on(), goes_on()),
        (P::EffectDone, F::HostPaused) => {
            with_effect(uncertain(Told::Started, 1, End::Policy), uncertain(Told::Started, 1, APPLIED))
        }

        (P::Reported, F::AgentKilled) => all(goes_on(), NO_OTHER, goes_on(), goes_on()),
        (P::Reported, F::AgentCut) => {
            all(another(Interrupted, Told::Applied), NO_OTHER, another(Interrupted, Told::Applied), goes_on())
        }
        (P::Reported, F::CoordinatorKilled) => all(goes_on(), NO_OTHER, goes_on(), goes_on()),
        (P::Reported, F::ProcessKilled) => all(IS_OVER, NO_OTHER, IS_OVER, IS_OVER),
        (P::Reported, F::ProcessPaused) => all(IS_OVER, NO_OTHER, IS_OVER, IS_OVER),
        (P::Reported, F::HostPaused) => {
            all(another(Interrupted, Told::Applied), NO_OTHER, another(Interrupted, Told::Applied), goes_on())
        }
    }
}

fn all(release: Cell, look: Cell, command: Cell, check: Cell) -> Row {
    Row { release, look, command, check }
}

fn changing(release: Cell, command: Cell) -> Row {
    all(release, NO_PERMIT, command, NO_PERMIT)
}

fn with_effect(release: Cell, command: Cell) -> Row {
    all(release, NO_EFFECT, command, NO_EFFECT)
}

/// As if nothing had happened.
fn goes_on() -> Cell {
    succeeded(AttemptState::Succeeded, Told::Applied, false)
}

/// The attempt is over, and a second one follows by itself.
fn another(attempt: AttemptState, told: Told) -> Cell {
    succeeded(attempt, told, true)
}

fn succeeded(attempt: AttemptState, told: Told, followed: bool) -> Cell {
    Cell::Follows(Seen { deployment: Deployment::Succeeded, attempt, told, followed, effects: 1 }, End::ByItself)
}

/// Nothing follows by itself, and the target is held.
fn uncertain(told: Told, effects: usize, end: End) -> Cell {
    let (deployment, attempt) = (Deployment::Uncertain, AttemptState::Uncertain);
    Cell::Follows(Seen { deployment, attempt, told, followed: false, effects }, end)
}

/// Its end was seen, and what it left was not.
fn held(told: Told, effects: usize, end: End) -> Cell {
    let (deployment, attempt) = (Deployment::Held, AttemptState::Stopped);
    Cell::Follows(Seen { deployment, attempt, told, followed: false, effects }, end)
}
