//! `holdfast deploy --target GLOB`: one deployment for each target that fits, watched together.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use holdfast_common::code::{Code, ExitCode};
use holdfast_common::id::RequestId;
use holdfast_common::problem::Problem;
use holdfast_common::text::one_line;
use holdfast_common::time::Millis;
use holdfast_proto::v1;
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::time::{Instant, MissedTickBehavior};

use super::watching::{interrupted, passed};
use super::{Context, Outcome, file, label};
use crate::client::Client;
use crate::failure::Failure;
use crate::outcome::Rest;
use crate::output::Listing;
use crate::view;

/// How often all of them are looked at.
const TICK: Duration = Duration::from_secs(1);

/// What is asked for, for each target that fits.
pub(super) struct Asked<'a> {
    /// As the operator named it.
    pub(super) file: &'a str,
    pub(super) pattern: String,
    /// The one that each target's own is made from.
    pub(super) request: RequestId,
    pub(super) submission: v1::SubmitRequest,
    pub(super) timeout: Option<Millis>,
}

/// Whether a target is named by a pattern. No target's name has this character.
pub(super) fn is_pattern(target: &str) -> bool {
    target.contains('*')
}

pub(super) async fn run(asked: Asked<'_>, detach: bool, client: Client, context: &mut Context) -> Outcome {
    let names = matching(&asked.pattern, client.targets().await?.targets)?;
    let (count, request) = (names.len(), asked.request);
    let plural = if count == 1 { "target" } else { "targets" };
    context.printer.talk(&format!(
        "{} fits {count} {plural}; repeat all of it under --request-id {request}",
        one_line(&asked.pattern)
    ))?;
    let submitted = tokio::select! {
        biased;
        () = interrupted() => return left_while_asking(request, context),
        submitted = submit(&asked, &names, &client) => submitted,
    };
    let mut fleet = Fleet::default();
    for (name, answer) in submitted {
        fleet.take(&name, answer, context)?;
    }
    if !detach && let Some(code) = fleet.watch(&client, asked.timeout, context).await? {
        return Ok(code);
    }
    fleet.conclude(context)?;
    Ok(fleet.exit(detach))
}

/// The names that fit, in order.
fn matching(pattern: &str, targets: Vec<v1::Target>) -> Result<Vec<String>, Failure> {
    let mut names: Vec<String> =
        targets.into_iter().map(|target| target.name).filter(|name| fits(pattern, name)).collect();
    names.sort();
    if names.is_empty() {
        let title = format!("no target fits {}", one_line(pattern));
        return Err(Problem::new(Code::TargetNotFound, title)
            .so("nothing was submitted")
            .next("holdfast targets, for those that there are; quote the pattern, or the shell may change it")
            .into());
    }
    Ok(names)
}

/// `*` stands for any run of characters, everything else for itself.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((before, after)) => name.strip_prefix(before).is_some_and(|rest| {
            (0..=rest.len()).filter(|at| rest.is_char_boundary(*at)).any(|at| fits(after, &rest[at..]))
        }),
    }
}

/// One after the other: what a coordinator refuses for one target it may take for the next.
async fn submit(
    asked: &Asked<'_>,
    names: &[String],
    client: &Client,
) -> Vec<(String, Result<v1::SubmitResponse, Failure>)> {
    let mut answers = Vec::with_capacity(names.len());
    for name in names {
        let request = derived(asked.request, name);
        let submission =
            v1::SubmitRequest { request_id: request.to_string(), target: name.clone(), ..asked.submission.clone() };
        let answer = client.submit(request, submission).await.map_err(|failure| file::named(failure, asked.file));
        answers.push((name.clone(), answer));
    }
    answers
}

/// A target's own request id: the same from the same, so that repeating the command repeats each request. A UUID of
/// version 8, the first 128 bits of SHA-256 over the 16 bytes of the given id and the target's name.
fn derived(request: RequestId, target: &str) -> RequestId {
    let hash = Sha256::new().chain_update(request.0.as_bytes()).chain_update(target.as_bytes()).finalize();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    RequestId(uuid::Builder::from_custom_bytes(bytes).into_uuid())
}

fn left_while_asking(request: RequestId, context: &mut Context) -> Outcome {
    context.printer.talk("left before all answers: which deployments are recorded is not known")?;
    context.printer.talk(&format!("find out, and watch them, by the same command with --request-id {request}"))?;
    Ok(ExitCode::Interrupted)
}

/// The deployments that are watched, and what came of the others.
#[derive(Default)]
struct Fleet {
    all: Vec<One>,
    /// What refused submissions exit with.
    refused: Vec<ExitCode>,
    turn: usize,
    lost: Option<Instant>,
}

struct One {
    deployment: v1::Deployment,
    told_at: Instant,
    rest: Option<Rest>,
    /// The line that was told last.
    said: String,
}

impl Fleet {
    fn take(
        &mut self,
        name: &str,
        answer: Result<v1::SubmitResponse, Failure>,
        context: &mut Context,
    ) -> Result<(), Failure> {
        let answer = match answer.and_then(|answer| answer.deployment.ok_or(Failure::incomplete("deployment"))) {
            Ok(deployment) => deployment,
            Err(failure) => {
                context.printer.talk(&format!("{}: not submitted", one_line(name)))?;
                failure.tell(&mut context.printer);
                self.refused.push(failure.exit());
                return Ok(());
            }
        };
        let rest = Rest::of_deployment(&answer)?;
        self.all.push(One { deployment: answer, told_at: Instant::now(), rest, said: String::new() });
        Ok(())
    }

    /// Until each is where nothing moves it by itself. `Some` where the watching was left before, which is said already.
    async fn watch(
        &mut self,
        client: &Client,
        timeout: Option<Millis>,
        context: &mut Context,
    ) -> Result<Option<ExitCode>, Failure> {
        let ended = tokio::select! {
            biased;
            () = interrupted() => Some(ExitCode::Interrupted),
            done = self.follow(client, context) => done.map(|()| None)?,
            () = passed(timeout) => Some(ExitCode::ClientTimeout),
        };
        if let Some(code) = ended {
            self.leave(code, context)?;
        }
        Ok(ended)
    }

    /// Says what a single deployment's watching would; a time that is over also shows where each stands.
    fn leave(&self, code: ExitCode, context: &mut Context) -> Result<(), Failure> {
        if code == ExitCode::ClientTimeout {
            self.conclude(context)?;
            context.printer.talk("the time of --timeout is over. Nothing was stopped; the deployments go on")?;
        } else {
            context.printer.talk("left. The deployments go on")?;
        }
        for one in self.all.iter().filter(|one| one.rest.is_none()) {
            context.printer.talk(&format!("come back with: holdfast watch {}", one_line(&label(&one.deployment))))?;
        }
        Ok(())
    }

    async fn follow(&mut self, client: &Client, context: &mut Context) -> Result<(), Failure> {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            self.look(client, context).await?;
            self.draw(context)?;
            if self.all.iter().all(|one| one.rest.is_some()) {
                return Ok(());
            }
        }
    }

    /// Asks where each stands that may still move. Nobody answers: the last word stays, and grows old.
    async fn look(&mut self, client: &Client, context: &mut Context) -> Result<(), Failure> {
        let moving = self.all.iter_mut().filter(|one| one.rest.is_none());
        let looks = join_all(moving.map(|one| async {
            let id = one.deployment.summary.as_ref().map(|about| about.id.clone()).unwrap_or_default();
            match client.deployment(&id).await {
                Ok(deployment) => {
                    one.rest = Rest::of_deployment(&deployment)?;
                    (one.deployment, one.told_at) = (deployment, Instant::now());
                    Ok(None)
                }
                Err(failure) if failure.is_no_answer() => Ok(Some(failure)),
                Err(failure) => Err(failure),
            }
        }));
        let silent: Vec<Option<Failure>> = looks.await.into_iter().collect::<Result<_, _>>()?;
        match (silent.iter().all(Option::is_some) && !silent.is_empty(), self.lost) {
            (true, None) => {
                self.lost = Some(Instant::now());
                context.printer.talk("contact with the coordinator is lost, trying again; the deployments go on")?;
            }
            (false, Some(_)) => {
                self.lost = None;
                context.printer.talk("contact with the coordinator is back")?;
            }
            (true, Some(_)) | (false, None) => {}
        }
        Ok(())
    }

    /// On a terminal a block that is drawn anew, else a line for each that has changed.
    fn draw(&mut self, context: &mut Context) -> Result<(), Failure> {
        self.turn += 1;
        let (turn, lost) = (self.turn, self.lost.map(|since| since.elapsed()));
        if context.printer.redraws() {
            let canvas = context.talk_canvas();
            let line =
                |one: &One| view::fleet_line(&one.deployment, one.told_at.elapsed(), lost, turn, canvas.terminal);
            let lines: Vec<String> = self.all.iter().map(line).collect();
            return Ok(context.printer.block(&lines)?);
        }
        for one in &mut self.all {
            let line = view::one_line_of(&one.deployment);
            if line != one.said {
                context.printer.talk(&line)?;
                one.said = line;
            }
        }
        Ok(())
    }

    fn conclude(&self, context: &mut Context) -> Result<(), Failure> {
        let items: Vec<_> =
            self.all.iter().map(|one| holdfast_proto::json::to_json("Deployment", &one.deployment)).collect();
        let summaries: Vec<v1::DeploymentSummary> =
            self.all.iter().filter_map(|one| one.deployment.summary.clone()).collect();
        Ok(context.printer.listing(&Listing {
            whole: json!({ "deployments": items }),
            items,
            names: self.all.iter().map(|one| one_line(&label(&one.deployment))).collect(),
            table: view::deployments(&summaries, context.canvas()),
            nothing: "nothing was submitted",
        })?)
    }

    /// The highest of all.
    fn exit(&self, detach: bool) -> ExitCode {
        let rests = self.all.iter().filter(|_| !detach).filter_map(|one| one.rest).map(Rest::exit);
        highest(rests.chain(self.refused.iter().copied()))
    }
}

fn highest(codes: impl Iterator<Item = ExitCode>) -> ExitCode {
    let by_number: BTreeMap<u8, ExitCode> = codes.map(|code| (code as u8, code)).collect();
    by_number.into_values().next_back().unwrap_or(ExitCode::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &[&str]) -> Vec<v1::Target> {
        names.iter().map(|name| v1::Target { name: (*name).to_owned(), ..v1::Target::default() }).collect()
    }

    #[test]
    fn a_star_stands_for_any_run_of_characters_and_the_rest_for_itself() {
        for (pattern, name, fit) in [
            ("*", "shop@prod", true),
            ("shop@*", "shop@prod", true),
            ("*@prod", "shop@prod", true),
            ("s*p@*d", "shop@prod", true),
            ("*@prod*", "shop@prod", true),
            ("ab*ba", "aba", false),
            ("shop@?rod", "shop@prod", false),
            ("SHOP@*", "shop@prod", false),
            ("shop@*x", "shop@prod", false),
        ] {
            assert_eq!(fits(pattern, name), fit, "{pattern} {name}");
        }
        assert!(is_pattern("shop@*") && !is_pattern("shop@prod"));
    }

    #[test]
    fn targets_are_taken_in_order_and_none_is_not_found() {
        let targets = named(&["shop@staging", "blog@prod", "shop@prod"]);
        assert_eq!(matching("shop@*", targets.clone()).expect("two"), ["shop@prod", "shop@staging"]);
        let failure = matching("shop@qa*", targets).expect_err("none");
        assert_eq!(failure.exit(), ExitCode::NotFound);
    }

    #[test]
    fn each_target_has_a_request_id_of_its_own_and_always_the_same() {
        let request: RequestId = "0193a1b2-0000-7000-8000-000000000001".parse().expect("an id");
        let other: RequestId = "0193a1b2-0000-7000-8000-000000000002".parse().expect("an id");
        let shop = derived(request, "shop@prod");
        assert_eq!(shop, derived(request, "shop@prod"));
        assert_eq!(shop.to_string(), "eea3f646-3bc3-87ce-9139-7903e694406f");
        assert!(shop != derived(request, "shop@staging") && shop != derived(other, "shop@prod") && shop != request);
        assert_eq!(shop.0.get_version_num(), 8);
    }

    #[test]
    fn when_the_time_is_over_the_table_is_shown_and_each_that_goes_on_is_named() {
        let (mut context, out, err) = Context::in_test();
        let one = |number: u64, state: v1::DeploymentState| {
            let about = v1::DeploymentSummary {
                label: format!("shop@prod#{number}"),
                state: state as i32,
                ..v1::DeploymentSummary::default()
            };
            let deployment = v1::Deployment { summary: Some(about), ..v1::Deployment::default() };
            let rest = Rest::of_deployment(&deployment).expect("known");
            One { deployment, told_at: Instant::now(), rest, said: String::new() }
        };
        let all = vec![one(1, v1::DeploymentState::Succeeded), one(2, v1::DeploymentState::Active)];
        Fleet { all, ..Fleet::default() }.leave(ExitCode::ClientTimeout, &mut context).expect("written");
        assert!(out.text().contains("shop@prod#1") && out.text().contains("shop@prod#2"), "{}", out.text());
        assert_eq!(
            err.text(),
            "the time of --timeout is over. Nothing was stopped; the deployments go on\n\
             come back with: holdfast watch shop@prod#2\n"
        );
    }

    #[test]
    fn the_exit_code_is_the_highest() {
        let highest = |codes: &[ExitCode]| highest(codes.iter().copied());
        assert_eq!(highest(&[]), ExitCode::Done);
        assert_eq!(highest(&[ExitCode::NeedsDecision, ExitCode::Done, ExitCode::Failed]), ExitCode::NeedsDecision);
        assert_eq!(highest(&[ExitCode::Cancelled, ExitCode::NoAnswer]), ExitCode::Cancelled);
    }
}
