//! `holdfast version`: of this program. `holdfast whoami` tells the coordinator's.

use holdfast_common::code::ExitCode;
use holdfast_proto::PROTOCOL_VERSION;
use serde_json::json;

use super::{Context, Outcome};
use crate::output::Record;

/// What it takes.
#[derive(Debug, clap::Args)]
pub struct Args {}

const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(super) fn run(_: &Args, context: &mut Context) -> Outcome {
    context.printer.record(&Record {
        whole: json!({ "version": VERSION, "protocol": PROTOCOL_VERSION }),
        name: VERSION.to_owned(),
        text: format!("holdfast {VERSION}, protocol {PROTOCOL_VERSION}\n"),
    })?;
    Ok(ExitCode::Done)
}
