//! `holdfast deploy FILE`

use std::collections::HashMap;

use holdfast_common::code::{Code, ExitCode};
use holdfast_common::id::RequestId;
use holdfast_common::problem::Problem;
use holdfast_common::text::one_line;
use holdfast_common::time::Millis;
use holdfast_proto::v1;

use super::watching::interrupted;
use super::{Context, Outcome, file, several, watch};
use crate::client::Client;
use crate::failure::Failure;
use crate::output::{BoxedPrinter, size};
use crate::upload::{self, Upload};

/// What it takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The deployment's file, TOML or JSON; `-` is the input
    pub file: String,
    /// Value of an input; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = input)]
    pub inputs: Vec<(String, String)>,
    /// Another target than the file's; with `*`, quoted ('shop@*'), one deployment for each target that fits
    #[arg(long, value_name = "TARGET|GLOB")]
    pub target: Option<String>,
    /// Name of this request: the same id is the same deployment, however often it is sent. With a glob each target has an
    /// id of its own, made from this one and its name
    #[arg(long, value_name = "UUID")]
    pub request_id: Option<RequestId>,
    /// Don't watch: done once it is recorded
    #[arg(long, conflicts_with = "timeout")]
    pub detach: bool,
    /// Stop watching after this time, like `5m`; the deployment goes on
    #[arg(long, value_name = "DURATION")]
    pub timeout: Option<Millis>,
    /// Refuse where the target is held, instead of waiting in line
    #[arg(long)]
    pub no_queue: bool,
}

pub(super) fn input(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write it like NAME=VALUE".to_owned()),
    }
}

pub(super) async fn run(args: Args, context: &mut Context) -> Outcome {
    let text = file::text(&args.file, context)?;
    let inputs = inputs(args.inputs)?;
    let folder = upload::folder_of(&args.file);
    let uploads = upload::find(&text, &inputs.clone().into_iter().collect(), &folder)?;
    let request = args.request_id.unwrap_or_else(|| RequestId(uuid::Uuid::now_v7()));
    let submission = v1::SubmitRequest {
        request_id: request.to_string(),
        file: text.clone(),
        inputs,
        target: args.target.clone().unwrap_or_default(),
        no_queue: args.no_queue,
    };
    let client = context.client().await?;
    tokio::select! {
        biased;
        () = interrupted() => return left_while_uploading(context),
        sent = send(uploads, &client, &mut context.printer) => sent?,
    }
    if let Some(pattern) = args.target.filter(|target| several::is_pattern(target)) {
        let asked = several::Asked { file: &args.file, pattern, request, submission, timeout: args.timeout };
        return several::run(asked, args.detach, client, context).await;
    }
    let answer = tokio::select! {
        biased;
        () = interrupted() => return left_while_asking(request, context),
        answer = client.submit(request, submission) => answer.map_err(|failure| {
            upload::with_digests(file::named(failure, &args.file), &text, &folder)
        })?,
    };
    let deployment = answer.deployment.ok_or(Failure::incomplete("deployment"))?;
    let recorded = watch::Recorded { deployment, existed: answer.existed, request };
    watch::recorded(client, &recorded, args.detach, args.timeout, context).await
}

async fn send(uploads: Vec<Upload>, client: &Client, printer: &mut BoxedPrinter) -> Result<(), Failure> {
    for mut upload in uploads {
        let (name, size) = (one_line(&upload.name), upload.size);
        let told = |there: u64| {
            // A number of bytes, as the coordinator has them; where nobody sees it, nothing is lost.
            let line = format!("uploading {name}: {} of {}", size::bytes(there), size::bytes(size));
            let _nobody_sees_it = printer.passing(std::slice::from_ref(&line));
        };
        let was_there = client.upload(&mut upload, told).await?;
        printer.clear()?;
        let how = if was_there { "was at the coordinator already" } else { "is uploaded" };
        printer.talk(&format!("{name} ({}, sha256 {}) {how}", size::bytes(size), upload.sha256))?;
    }
    Ok(())
}

fn left_while_uploading(context: &mut Context) -> Outcome {
    context.printer.talk("left while uploading: nothing was submitted")?;
    context.printer.talk("the same command goes on where the upload was left")?;
    Ok(ExitCode::Interrupted)
}

fn left_while_asking(request: RequestId, context: &mut Context) -> Outcome {
    context.printer.talk("left before the answer: whether the deployment is recorded is not known")?;
    context.printer.talk(&format!("find out, and watch it, by the same command with --request-id {request}"))?;
    Ok(ExitCode::Interrupted)
}

pub(super) fn inputs(given: Vec<(String, String)>) -> Result<HashMap<String, String>, Failure> {
    let mut inputs = HashMap::new();
    for (name, value) in given {
        if inputs.contains_key(&name) {
            return Err(Problem::new(Code::InvalidInput, format!("--set gives the input {name:?} twice"))
                .so("nothing was sent")
                .next("give each input once")
                .into());
        }
        inputs.insert(name, value);
    }
    Ok(inputs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_keep_everything_after_the_first_equals_sign() {
        assert_eq!(input("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert_eq!(input("a="), Ok(("a".to_owned(), String::new())));
        assert!(input("a").is_err() && input("=a").is_err());
    }

    #[test]
    fn an_input_given_twice_is_refused_not_guessed() {
        let pair = |value: &str| ("a".to_owned(), value.to_owned());
        assert_eq!(inputs(vec![pair("1")]).expect("once").len(), 1);
        assert_eq!(
            inputs(vec![pair("1"), pair("2")]).expect_err("twice").problem().map(|problem| problem.code),
            Some(Code::InvalidInput)
        );
    }
}
