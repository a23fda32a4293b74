//! Many agents lose their coordinator at once: it is killed and started again, and it is away for a while.

use std::time::Duration;

use holdfast_tests::reunion::{Assembly, Size};

use crate::options::Options;
use crate::report::{Aim, Figure, Report};

/// In seconds, from when the coordinator listens again.
const ALL_BACK: f64 = 60.0;
const LEASE: Duration = Duration::from_secs(10);

pub(crate) async fn measure(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let size = Size { agents: options.agents, holders: options.agents / 10, ttl: LEASE };
    let mut assembly = Assembly::gather(&options.program(), size).await;
    for (how, away) in [("killed", Duration::ZERO), ("away 20 s", Duration::from_secs(20))] {
        let seen = assembly.lose(away).await;
        let whole =
            |what: &str, value: f64, unit| Figure::new(format!("{} agents, {how}: {what}", size.agents), value, unit);
        report.put(whole("all back within", seen.back_within.as_secs_f64(), "s").aim(Aim::AtMost(ALL_BACK)));
        report.put(whole("most connections in 100 ms", seen.peak(), ""));
        report.put(whole("most waiting to be accepted", seen.longest_queue as f64, ""));
        report.put(whole("dropped by a full queue", seen.overflowed as f64, "").aim(Aim::AtMost(0.0)));
        let lost = whole(&format!("leases lost of {}", size.holders), seen.lost.len() as f64, "");
        report.put(lost.aim(Aim::AtMost(0.0)));
    }
    let bad = assembly.end().await;
    let figure = Figure::new("attempts that did not end well", bad.len() as f64, "");
    report.put(figure.aim(Aim::AtMost(0.0)));
    Ok(())
}
