//! What each call comes to.
//!
//! | found in the log | `apply` answers |
//! | --- | --- |
//! | another owner | refused, resource |
//! | a higher fence | refused, fence |
//! | this operation | applied before |
//! | another revision than the expected one | refused, revision |
//! | none of these | applied, if the next number is still free; else it looks again |

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use crate::contract::{Answer, Call, Capability, Outcome, PROTOCOL, Reading, Reason, Request, State};
use crate::halt;
use crate::log::{Entry, Log, random};

/// Why there is no good answer.
enum Trouble {
    Refused(Reason, String),
    Failed(String),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Trouble::Failed(error.to_string())
    }
}

impl From<Trouble> for Answer {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Refused(reason, detail) => Outcome::Refused { reason, detail }.into(),
            Trouble::Failed(detail) => Answer::failed(detail),
        }
    }
}

pub(crate) fn answer(request: &Request) -> Answer {
    if request.protocol != PROTOCOL {
        return Answer::failed(format!("this program speaks {PROTOCOL}, not {}", request.protocol));
    }
    let outcome = match request.call {
        Call::Describe => Ok(Outcome::Described {
            capability: Capability { inspect: "operation", enforce: "fence", outlives: false },
        }),
        Call::Examine => examine(request),
        Call::Apply => apply(request),
        Call::Inspect => inspect(request),
        Call::Raise => raise(request),
    };
    outcome.map_or_else(Answer::from, Answer::from)
}

fn examine(request: &Request) -> Result<Outcome, Trouble> {
    wanted(request)?;
    look(request)?;
    Ok(Outcome::Fit)
}

fn apply(request: &Request) -> Result<Outcome, Trouble> {
    let (fence, flags) = (fence(request)?, wanted(request)?);
    loop {
        let log = look(request)?;
        halt::before("decide");
        let highest = log.newest().map_or(0, |newest| newest.highest_fence);
        if highest > fence {
            return Err(Trouble::Refused(Reason::Fence, format!("fence {highest} was seen here")));
        }
        if log.has(&request.operation.id) {
            return Ok(Outcome::AppliedBefore);
        }
        expect(request, &log)?;
        let entry = Entry {
            operation: Some(request.operation.id.clone()),
            revision: request.operation.revision.clone(),
            flags: flags.clone(),
            ..next(request, &log, fence)?
        };
        if log.append(&entry)? {
            return Ok(Outcome::Applied);
        }
    }
}

fn raise(request: &Request) -> Result<Outcome, Trouble> {
    let fence = fence(request)?;
    loop {
        let log = look(request)?;
        let stands = log.newest().is_some_and(|newest| newest.highest_fence >= fence);
        if stands || log.append(&next(request, &log, fence)?)? {
            return Ok(Outcome::Raised);
        }
    }
}

fn inspect(request: &Request) -> Result<Outcome, Trouble> {
    let log = look(request)?;
    let reading = match log.newest() {
        None => Reading {
            resource_identity: String::new(),
            state: State::Unknown,
            revision: None,
            highest_fence: None,
            detail: "nothing was ever changed or fenced off here".to_owned(),
        },
        Some(newest) => Reading {
            resource_identity: newest.identity.clone(),
            state: if log.has(&request.operation.id) { State::Applied } else { State::NotApplied },
            revision: newest.revision.clone(),
            highest_fence: Some(newest.highest_fence.to_string()),
            detail: format!("{} entries in the log", log.entries.len()),
        },
    };
    Ok(Outcome::Read { reading })
}

/// The log, where it is of this resource.
fn look(request: &Request) -> Result<Log, Trouble> {
    let Some(folder) = request.settings.get("folder") else {
        return Err(Trouble::Refused(Reason::Resource, "the target's settings name no folder".to_owned()));
    };
    let log = Log::read(Path::new(folder))?;
    match log.newest() {
        Some(newest) if newest.owner != owner(request) => {
            let text = format!("{folder} belongs to {}", newest.owner);
            // A look is never refused: what can't be told has failed.
            Err(if matches!(request.call, Call::Inspect) {
                Trouble::Failed(text)
            } else {
                Trouble::Refused(Reason::Resource, text)
            })
        }
        Some(_) | None => Ok(log),
    }
}

fn expect(request: &Request, log: &Log) -> Result<(), Trouble> {
    let found = log.newest().and_then(|newest| newest.revision.as_ref());
    match &request.operation.expected_revision {
        Some(expected) if found != Some(expected) => {
            let found = found.map_or("none", String::as_str);
            Err(Trouble::Refused(Reason::Revision, format!("the revision here is {found}")))
        }
        Some(_) | None => Ok(()),
    }
}

/// The newest entry again, under a higher fence.
fn next(request: &Request, log: &Log, fence: u64) -> Result<Entry, Trouble> {
    Ok(match log.newest() {
        Some(newest) => Entry { highest_fence: fence, operation: None, ..newest.clone() },
        None => Entry {
            identity: random()?,
            owner: owner(request),
            highest_fence: fence,
            operation: None,
            revision: None,
            flags: BTreeMap::new(),
        },
    })
}

fn owner(request: &Request) -> String {
    format!("{}/{}", request.target, request.resource)
}

fn fence(request: &Request) -> Result<u64, Trouble> {
    let fence = request.fence.as_deref().and_then(|text| text.parse().ok());
    fence.ok_or_else(|| Trouble::Failed("the request has no fence".to_owned()))
}

fn wanted(request: &Request) -> Result<BTreeMap<String, String>, Trouble> {
    let refused = |text: String| Err(Trouble::Refused(Reason::Content, text));
    let Some(flags) = request.operation.settings.clone().filter(|flags| !flags.is_empty()) else {
        return refused("the step sets no flag".to_owned());
    };
    match flags.iter().find(|(_, value)| !matches!(value.as_str(), "on" | "off")) {
        Some((name, value)) => refused(format!("flag {name} can be \"on\" or \"off\", not {value:?}")),
        None => Ok(flags),
    }
}
