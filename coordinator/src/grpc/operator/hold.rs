//! Putting a target on hold, and taking the hold away.

use holdfast_common::id::TargetName;
use holdfast_common::time::{Millis, Wall};
use holdfast_coordinator_core::input::Until;
use holdfast_proto::convert::{Invalid, duration_from_wire, wall_from_wire};
use holdfast_proto::v1;
use holdfast_proto::v1::hold_target_request::Until as End;
use tonic::Status;

use super::{Call, find, targets};
use crate::driver::Asked;
use crate::grpc::shared::Shared;
use crate::grpc::{refused, status};

/// Longest time after which a hold ends by itself: ten years. Who means longer gives none.
const LONGEST: Millis = Millis::from_secs(10 * 366 * 86_400);

pub(super) async fn place(call: Call<'_, v1::HoldTargetRequest>) -> Result<v1::HoldTargetResponse, Status> {
    let Call { shared, by, asked } = call;
    let name = find::target_name(&asked.target)?;
    let reason = find::reason(&asked.reason)?;
    let until = asked.until.map(|until| ends(until, shared.now())).transpose().map_err(|why| status::invalid(&why))?;
    ask(shared, &name, Asked::Hold { by: by.name, reason, until }).await?;
    Ok(v1::HoldTargetResponse { target: Some(targets::shown(shared, name).await?) })
}

pub(super) async fn take_away(call: Call<'_, v1::UnholdTargetRequest>) -> Result<v1::UnholdTargetResponse, Status> {
    let Call { shared, by, asked } = call;
    let name = find::target_name(&asked.target)?;
    ask(shared, &name, Asked::Unhold { by: by.name }).await?;
    Ok(v1::UnholdTargetResponse { target: Some(targets::shown(shared, name).await?) })
}

async fn ask(shared: &Shared, name: &TargetName, asked: Asked) -> Result<(), Status> {
    match shared.driver.ask(name.clone(), asked).await {
        Ok(_told) => Ok(()),
        Err(error) => Err(refused::by_driver(shared, name, error).await),
    }
}

/// An instant is turned into a length by the coordinator's own clock, once: from then on only serving time counts.
fn ends(until: End, now: Wall) -> Result<Until, Invalid> {
    let (shown, lasts) = match until {
        End::At(at) => {
            let at = wall_from_wire("at", Some(at))?;
            let micros = u64::try_from(at.0.saturating_sub(now.0)).unwrap_or_default();
            (at, Millis(micros / 1000))
        }
        End::Lasts(lasts) => {
            let lasts = duration_from_wire("lasts", lasts)?;
            let micros = i64::try_from(lasts.0.saturating_mul(1000)).unwrap_or(i64::MAX);
            (Wall(now.0.saturating_add(micros)), lasts)
        }
    };
    match lasts {
        Millis(0) => Err(Invalid::Range { field: "until", problem: "it has passed already" }),
        lasts if lasts > LONGEST => {
            Err(Invalid::Range { field: "until", problem: "it is more than ten years ahead: give none" })
        }
        lasts => Ok(Until { shown, lasts }),
    }
}

#[cfg(test)]
mod tests {
    use holdfast_proto::convert::{duration_to_wire, wall_to_wire};

    use super::*;

    #[test]
    fn an_end_is_an_instant_or_a_length_ahead_and_never_past() {
        let now = Wall(1_000_000);
        let at = |micros| ends(End::At(wall_to_wire(Wall(micros))), now);
        let lasts = |millis| ends(End::Lasts(duration_to_wire(Millis(millis))), now);
        assert_eq!(at(3_500_000), Ok(Until { shown: Wall(3_500_000), lasts: Millis(2_500) }));
        assert_eq!(lasts(2_500), Ok(Until { shown: Wall(3_500_000), lasts: Millis(2_500) }));
        for past in [at(1_000_000), at(0), at(-5), lasts(0)] {
            assert!(past.is_err(), "{past:?}");
        }
        assert!(lasts(LONGEST.0 + 1).is_err() && lasts(LONGEST.0).is_ok());
        assert!(ends(End::Lasts(prost_types::Duration { seconds: -1, nanos: 0 }), now).is_err());
    }
}
