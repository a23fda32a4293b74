//! `holdfast rollback TARGET [--to REV]`

use holdfast_common::code::{Code, ExitCode};
use holdfast_common::id::RequestId;
use holdfast_common::problem::Problem;
use holdfast_common::text::one_line;
use holdfast_common::time::Millis;
use holdfast_proto::convert::duration_to_wire;
use holdfast_proto::v1;

use super::confirm::{self, Given};
use super::{Context, Outcome, items, watch};
use crate::failure::Failure;
use crate::output::Listing;
use crate::view::{self, word};

/// How long is waited for what resources retain.
const LOOK: Millis = Millis::from_secs(5);

/// What it takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The target
    pub target: String,
    /// The revision to go back to; without it the places to go back to are listed, and nothing is changed
    #[arg(long, value_name = "REV")]
    pub to: Option<String>,
    /// Why; kept for ever
    #[arg(long, value_name = "TEXT", requires = "to")]
    pub reason: Option<String>,
    /// How you know that it is compatible, where a window or a range of data says otherwise; kept for ever as your word
    #[arg(long, value_name = "TEXT", requires = "to")]
    pub attest: Option<String>,
    /// The target's name, instead of typing it when asked
    #[arg(long, value_name = "TARGET", requires = "to")]
    pub confirm: Option<String>,
    /// Name of this request: the same id is the same rollback, however often it is sent
    #[arg(long, value_name = "UUID", requires = "to")]
    pub request_id: Option<RequestId>,
    /// Don't watch: done once it is recorded
    #[arg(long, requires = "to", conflicts_with = "timeout")]
    pub detach: bool,
    /// Stop watching after this time, like `5m`; the rollback goes on
    #[arg(long, value_name = "DURATION", requires = "to")]
    pub timeout: Option<Millis>,
}

pub(super) async fn run(args: Args, context: &mut Context) -> Outcome {
    let client = context.client().await?;
    let found = client.rollback_candidates(&args.target, LOOK).await?;
    let Some(to) = args.to else {
        let target = client.target(&args.target).await?;
        for line in held(&target) {
            context.printer.talk(&line)?;
        }
        return list(&found, context);
    };
    let given =
        Given { what: "target", name: args.confirm.as_deref(), reason: args.reason.as_deref(), option: "--reason" };
    let candidate = match possible(&found, &args.target, &to, args.attest.is_some()) {
        Ok(candidate) => candidate.clone(),
        // The same request may have been recorded before, and what stands has changed since: the coordinator knows.
        Err(_) if args.request_id.is_some() => v1::RollbackCandidate::default(),
        Err(refused) => return Err(refused),
    };
    let confirm = confirm::name(given, &args.target, &consequences(&candidate, &args.target, &to), context)?;
    let request = args.request_id.unwrap_or_else(|| RequestId(uuid::Uuid::now_v7()));
    let asked = v1::RollbackRequest {
        request_id: request.to_string(),
        target: args.target,
        to,
        reason: confirm::reason(args.reason, "--reason", "why? ", context)?,
        attested: args.attest.unwrap_or_default(),
        confirm,
        wait: Some(duration_to_wire(LOOK)),
        undoes: candidate.numbers,
    };
    let answer = client.rollback(request, asked, LOOK).await?;
    let deployment = answer.deployment.ok_or(Failure::incomplete("deployment"))?;
    let recorded = watch::Recorded { deployment, existed: answer.existed, request };
    watch::recorded(client, &recorded, args.detach, args.timeout, context).await
}

/// Said first where another deployment has the target: the places below are for later.
fn held(target: &v1::Target) -> Vec<String> {
    let Some(holder) = &target.holder else { return Vec::new() };
    let (name, label) = (one_line(&target.name), one_line(&holder.label));
    let next = match v1::DeploymentState::try_from(holder.state) {
        Ok(v1::DeploymentState::Uncertain | v1::DeploymentState::Held) => {
            format!("holdfast reconcile decide {label} --as rollback --reason TEXT --confirm {name}")
        }
        Ok(
            v1::DeploymentState::Queued
            | v1::DeploymentState::Active
            | v1::DeploymentState::Succeeded
            | v1::DeploymentState::Failed
            | v1::DeploymentState::Cancelled
            | v1::DeploymentState::Unspecified,
        )
        | Err(_) => format!("holdfast watch {label}"),
    };
    let state = word::deployment_state(holder.state);
    vec![format!("{name} is held by {label}, which is {state}: nothing can go back now"), format!("  next  {next}")]
}

fn list(found: &v1::ListRollbackCandidatesResponse, context: &mut Context) -> Outcome {
    let whole = crate::output::answer("ListRollbackCandidatesResponse", found);
    context.printer.listing(&Listing {
        items: items(&whole, "candidates"),
        whole,
        names: found.candidates.iter().flat_map(revisions).collect(),
        table: view::candidates(&found.candidates),
        nothing: "nothing that was deployed here stands: there is nothing to go back over",
    })?;
    Ok(ExitCode::Done)
}

/// What a candidate's resources would have again.
fn revisions(candidate: &v1::RollbackCandidate) -> Vec<String> {
    let known = candidate.revisions.iter().filter(|had| !had.revision.is_empty());
    known.map(|had| one_line(&had.revision)).collect()
}

/// The nearest place with that revision, if the target can go back there. Nobody is asked to type a name for what is refused.
fn possible<'a>(
    found: &'a v1::ListRollbackCandidatesResponse,
    target: &str,
    to: &str,
    attested: bool,
) -> Result<&'a v1::RollbackCandidate, Failure> {
    let has = |candidate: &&v1::RollbackCandidate| candidate.revisions.iter().any(|had| had.revision == to);
    let (target, shown) = (one_line(target), one_line(to));
    let refused = |code, title: String| {
        Problem::new(code, title)
            .so("nothing was recorded, and nothing was changed")
            .next(format!("holdfast rollback {target}, which lists each place and why not"))
            .with("target", &target)
    };
    let Some(candidate) = found.candidates.iter().find(has) else {
        let title =
            format!("no deployment that stands on {target} had found {shown}, or has steps of its own that bring it");
        return Err(refused(Code::NothingToGoBackTo, title).into());
    };
    if candidate.compatible || (attested && candidate.may_be_attested) {
        return Ok(candidate);
    }
    let title = format!("{target} can't go back to {shown}: {}", one_line(&candidate.why_not));
    let problem = refused(Code::CannotGoBack, title);
    Err(match candidate.may_be_attested {
        true => problem.next("--attest TEXT, if you know that it is compatible all the same: it is kept as your word"),
        false => problem,
    }
    .into())
}

fn consequences(candidate: &v1::RollbackCandidate, target: &str, to: &str) -> Vec<String> {
    if candidate.undoes.is_empty() {
        return vec![format!("{target} goes back to {to} only if that was recorded under this request id before")];
    }
    let mut lines = vec![format!("going back to {to} on {target} undoes {}", candidate.undoes.join(", "))];
    lines.extend(candidate.revisions.iter().filter_map(consequence));
    lines.push("it is a deployment of its own, before all that wait, and ends with a health check".to_owned());
    lines
}

/// Only what takes a revision back has it again. What an operator's own steps bring is theirs to say.
fn consequence(had: &v1::CandidateRevision) -> Option<String> {
    if let Some(own) = view::own_way(had) {
        return Some(own);
    }
    let asked = if had.asked { "" } else { "; whether it is still retained there could not be asked" };
    let (resource, revision) = (one_line(&had.resource), one_line(&had.revision));
    (!revision.is_empty()).then(|| format!("{resource} takes {revision} again{asked}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(compatible: bool, may_be_attested: bool) -> v1::ListRollbackCandidatesResponse {
        let had = retained("site", "v1");
        let candidate = v1::RollbackCandidate {
            undoes: vec!["shop@prod#12".to_owned()],
            revisions: vec![had],
            compatible,
            why_not: if compatible { String::new() } else { "the window has passed".to_owned() },
            may_be_attested,
            numbers: vec![12],
        };
        v1::ListRollbackCandidatesResponse { candidates: vec![candidate] }
    }

    fn retained(resource: &str, revision: &str) -> v1::CandidateRevision {
        let (resource, revision) = (resource.to_owned(), revision.to_owned());
        v1::CandidateRevision { resource, revision, asked: true, ..v1::CandidateRevision::default() }
    }

    #[test]
    fn only_what_takes_a_revision_back_is_said_to_take_it_again() {
        let own = |steps: &[&str], brings: &str, recorded: &str| v1::CandidateRevision {
            own_steps: steps.iter().map(|step| (*step).to_owned()).collect(),
            brings: brings.to_owned(),
            recorded: recorded.to_owned(),
            ..retained("db", if brings.is_empty() { "0041" } else { brings })
        };
        for (had, told) in [
            (retained("site", "v1"), "site takes v1 again"),
            (
                v1::CandidateRevision { asked: false, ..retained("site", "v1") },
                "site takes v1 again; whether it is still retained there could not be asked",
            ),
            (
                own(&["undo"], "0043", "0042"),
                "db has 0042 on record, and the operator's own step undo is to bring 0043",
            ),
            (
                own(&["undo", "tidy"], "0043", ""),
                "no revision of db is on record, and the operator's own steps undo, tidy are to bring 0043",
            ),
            (
                own(&["undo"], "", "0042"),
                "db has 0042 on record, and the operator's own step undo changes it and names no revision: what it has then is not \
                 known before it is read",
            ),
        ] {
            let candidate = v1::RollbackCandidate {
                undoes: vec!["shop@prod#12".to_owned()],
                revisions: vec![had],
                ..v1::RollbackCandidate::default()
            };
            let lines = consequences(&candidate, "shop@prod", "v1");
            assert_eq!(lines[1], told);
            assert_eq!(lines.iter().filter(|line| line.contains("again")).count(), usize::from(told.contains("again")));
        }
    }

    fn code(result: Result<&v1::RollbackCandidate, Failure>) -> Option<Code> {
        result.err().and_then(|failure| failure.problem().map(|problem| problem.code))
    }

    #[test]
    fn a_target_that_is_held_says_so_first_and_what_comes_next() {
        let holder = |state: v1::DeploymentState| v1::DeploymentSummary {
            label: "shop@dev#7".to_owned(),
            state: state as i32,
            ..v1::DeploymentSummary::default()
        };
        let target = |holder| v1::Target { name: "shop@dev".to_owned(), holder, ..v1::Target::default() };
        assert_eq!(held(&target(None)), Vec::<String>::new());
        for (state, word, next) in [
            (
                v1::DeploymentState::Uncertain,
                "uncertain",
                "holdfast reconcile decide shop@dev#7 --as rollback --reason TEXT --confirm shop@dev",
            ),
            (
                v1::DeploymentState::Held,
                "held",
                "holdfast reconcile decide shop@dev#7 --as rollback --reason TEXT --confirm shop@dev",
            ),
            (v1::DeploymentState::Active, "active", "holdfast watch shop@dev#7"),
        ] {
            let first = format!("shop@dev is held by shop@dev#7, which is {word}: nothing can go back now");
            assert_eq!(held(&target(Some(holder(state)))), [first, format!("  next  {next}")]);
        }
    }

    #[test]
    fn a_place_that_is_not_compatible_is_refused_before_anything_is_typed() {
        assert_eq!(code(possible(&found(true, false), "shop@prod", "v1", false)), None);
        assert_eq!(code(possible(&found(false, false), "shop@prod", "v1", true)), Some(Code::CannotGoBack));
        assert_eq!(code(possible(&found(false, true), "shop@prod", "v1", false)), Some(Code::CannotGoBack));
        assert_eq!(code(possible(&found(false, true), "shop@prod", "v1", true)), None);
        assert_eq!(code(possible(&found(true, false), "shop@prod", "v9", false)), Some(Code::NothingToGoBackTo));
    }
}
