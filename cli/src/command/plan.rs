//! `holdfast plan FILE`

use holdfast_common::code::{Code, ExitCode};
use holdfast_common::problem::Problem;
use holdfast_common::text::one_line;
use holdfast_proto::v1;

use super::deploy::{input, inputs};
use super::{Context, Outcome, file, record, several};
use crate::view;

/// What it takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The deployment's file, TOML or JSON; `-` is the input
    pub file: String,
    /// Value of an input; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = input)]
    pub inputs: Vec<(String, String)>,
    /// Another target than the file's; one by its name, no glob
    #[arg(long, value_name = "TARGET")]
    pub target: Option<String>,
}

/// Exits with 0 where it would be taken, now or in its turn, and else with the code of its refusal.
pub(super) async fn run(args: Args, context: &mut Context) -> Outcome {
    if let Some(pattern) = args.target.as_deref().filter(|target| several::is_pattern(target)) {
        return Err(one_target(pattern).into());
    }
    let text = file::text(&args.file, context)?;
    let request = v1::PlanRequest { file: text, inputs: inputs(args.inputs)?, target: args.target.unwrap_or_default() };
    let client = context.client().await?;
    let plan = client.plan(request).await.map_err(|failure| file::named(failure, &args.file))?;
    let text = view::plan(&plan, context.canvas());
    context.printer.record(&record("Plan", &plan, one_line(&plan.plan_digest), text))?;
    Ok(Code::parse(&plan.refused_code).map_or(ExitCode::Done, Code::exit))
}

fn one_target(pattern: &str) -> Problem {
    Problem::new(Code::InvalidValue, format!("a plan is of one target, and {pattern:?} is a glob"))
        .so("nothing was sent")
        .next("holdfast targets lists them; then plan each: --target TARGET")
}
