//! `holdfast events D`

use holdfast_common::code::ExitCode;

use super::watching::interrupted;
use super::{Context, Outcome};
use crate::failure::Failure;
use crate::follow::{Follower, News, Teller};
use crate::output::Record;

/// What it takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// TARGET#N, a UUID, or a unique beginning of one
    pub deployment: String,
    /// First sequence number to print
    #[arg(long, value_name = "SEQ", default_value_t = 1)]
    pub since: u64,
    /// Go on as events come, until Ctrl-C
    #[arg(short, long)]
    pub follow: bool,
}

pub(super) async fn run(args: Args, context: &mut Context) -> Outcome {
    let client = context.client().await?;
    let about = client.deployment(&args.deployment).await?.summary.unwrap_or_default();
    let mut follower = Follower::start(client, about.id, args.since, args.follow);
    let mut teller = Teller::default();
    let mut lost = false;
    loop {
        let news = tokio::select! {
            biased;
            () = interrupted(), if args.follow => return Ok(ExitCode::Interrupted),
            news = follower.next() => news?,
        };
        match news {
            Some(News::Event(event)) => print(&mut teller, &event, context)?,
            Some(News::CaughtUp) if lost => {
                lost = false;
                context.printer.talk("contact with the coordinator is back")?;
            }
            Some(News::CaughtUp) => {}
            Some(News::Lost(_)) if lost => {}
            Some(News::Lost(_)) => {
                lost = true;
                context.printer.talk("contact with the coordinator is lost, trying again")?;
            }
            None => return Ok(ExitCode::Done),
        }
    }
}

fn print(teller: &mut Teller, event: &holdfast_proto::v1::Event, context: &mut Context) -> Result<(), Failure> {
    let canvas = context.canvas();
    let text = format!("{:>5}  {}", event.sequence, teller.line(event, canvas.now, canvas.terminal));
    let whole = crate::output::answer("Event", event);
    Ok(context.printer.streamed(&Record { whole, name: event.sequence.to_string(), text })?)
}
