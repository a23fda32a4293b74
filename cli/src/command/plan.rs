//! `holdfast plan FILE`

use holdfast_common::code::{Code, ExitCode};
use holdfast_common::text::one_line;
use holdfast_proto::v1;

use super::deploy::{input, inputs};
use super::{Context, Outcome, file, record};
use crate::view;

/// What it takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The deployment's file, TOML or JSON; `-` is the input
    pub file: String,
    /// Value of an input; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = input)]
    pub inputs: Vec<(String, String)>,
    /// Another target than the file's
    #[arg(long, value_name = "TARGET")]
    pub target: Option<String>,
}

/// Exits with 0 where it would be taken, now or in its turn, and else with the code of its refusal.
pub(super) async fn run(args: Args, context: &mut Context) -> Outcome {
    let text = file::text(&args.file, context)?;
    let request = v1::PlanRequest { file: text, inputs: inputs(args.inputs)?, target: args.target.unwrap_or_default() };
    let client = context.client().await?;
    let plan = client.plan(request).await.map_err(|failure| file::named(failure, &args.file))?;
    let text = view::plan(&plan, context.canvas());
    context.printer.record(&record("Plan", &plan, one_line(&plan.plan_digest), text))?;
    Ok(Code::parse(&plan.refused_code).map_or(ExitCode::Done, Code::exit))
}
