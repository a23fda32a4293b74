//! What the suite needs of an adapter with a resource of its own.

use std::fs::File;
use std::io::{Seek, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use holdfast_agent::adapters::system::Order;
use holdfast_agent::internal::{INTERNAL, name};
use holdfast_common::adapter::{Capability, Enforce, Inspect};
use holdfast_common::fence::Fence;
use holdfast_common::id::{OperationId, Revision};

use crate::support::AGENT;

/// An operation of the suite: it brings the resource to a revision.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    /// The idempotency key.
    pub(crate) operation: OperationId,
    /// What the resource has afterwards.
    pub(crate) revision: Revision,
    /// What it must have before, where the operation says it.
    pub(crate) expected: Option<Revision>,
}

/// A fresh resource with its adapter. What is spawned are the adapter's real processes; stopped or aborted by `HOLDFAST_HALT`
/// right before one of [`calls`](Self::calls).
pub(crate) trait Subject {
    /// As its target declares it.
    fn capability(&self) -> Capability;

    /// Names of the calls of an `apply` (for `HOLDFAST_HALT=apply.NAME=stop`), in order, the one that takes effect among them.
    fn calls(&self) -> Vec<&'static str>;

    /// The process of an `apply` under that fence, not yet spawned, its output piped.
    fn apply(&self, named: &Named, fence: Fence) -> Command;

    /// The process that reads: a [`Reading`](holdfast_common::outcome::Reading) on its output, or an exit other than 0.
    fn inspect(&self, named: &Named) -> Command;

    /// The process that raises the fence, then reads. `None`: the resource keeps none.
    fn raise(&self, named: &Named, fence: Fence) -> Option<Command>;

    /// What the resource really underwent, told by the resource itself and by none of the adapter's code: the revisions in the
    /// order in which they took effect.
    fn underwent(&self) -> Vec<String>;

    /// Keeps a copy of the resource as it is now, as a backup would.
    fn back_up(&mut self);

    /// Puts that copy back.
    fn restore(&mut self);

    /// Makes the resource unreachable, and reachable again.
    fn down(&mut self);
    fn up(&mut self);

    /// Puts another resource of the same kind in its place.
    fn replace(&mut self);

    /// An `apply` whose answer is lost after its effect, where the resource can be made to do that: the process, to be run.
    /// `None`: nothing lies between effect and answer but the adapter's own process, which the calls show.
    fn lose_answer(&mut self, named: &Named, fence: Fence) -> Option<Command>;

    /// Whether an operation that is asked for again takes effect again: nobody there knows operations.
    fn repeats(&self) -> bool {
        self.capability().inspect != Inspect::Operation
    }

    /// What an attempt is refused for when it begins: all that is enforced in the step of the effect, and maybe more, which then
    /// stops nothing that has begun.
    fn compares(&self) -> Enforce {
        self.capability().enforce
    }

    /// Whether an operation that reads as unknown may take effect again when it is asked for again.
    fn repeats_unknown(&self) -> bool {
        self.repeats()
    }

    /// Whether a reading tells this resource from another of its kind.
    fn has_identity(&self) -> bool {
        self.capability().inspect == Inspect::Operation
    }
}

/// The process of a call on a system, with one credential set and nothing else in its environment.
pub(crate) fn system(order: &Order, credentials: &[(&str, &str)]) -> Command {
    let mut stdin = File::from(rustix::fs::memfd_create("order", rustix::fs::MemfdFlags::CLOEXEC).unwrap());
    stdin.write_all(&serde_json::to_vec(order).unwrap()).unwrap();
    stdin.rewind().unwrap();
    let mut command = Command::new(AGENT);
    command.args([INTERNAL, name::SYSTEM]).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.envs(credentials.iter().copied()).current_dir(Path::new("/"));
    command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}
