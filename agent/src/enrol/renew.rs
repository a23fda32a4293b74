//! The next certificate, in time: when two thirds of this one's life are over.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use holdfast_common::time::Wall;
use holdfast_net::backoff::Backoff;
use holdfast_net::channel::Addresses;
use holdfast_net::peer::Validity;
use holdfast_net::tls::ClientTls;
use tokio_util::sync::CancellationToken;

use super::Folder;
use super::ask;

/// Longest time until the clock is looked at again: it may be set.
const LOOK_EVERY: Duration = Duration::from_secs(600);

/// Between two renewals, however short a certificate's life is.
const AT_LEAST: Duration = Duration::from_secs(1);

/// Renews the identity of the folder whenever it is time, until told to stop. Connections that are there go on; the next
/// one shows the new certificate.
pub async fn keep(addresses: Addresses, tls: ClientTls, folder: Folder, stop: CancellationToken) {
    let mut backoff = Backoff::new(Duration::from_secs(1), LOOK_EVERY, rand::random());
    let mut told = String::new();
    // Certificates begin a little before they are signed: of one that was renewed here it is known when.
    let mut since = Wall(i64::MIN);
    loop {
        let validity = tls.validity();
        let pause = match validity.map(|validity| left(validity, since, now())) {
            Some(left) if left > Duration::ZERO => left.min(LOOK_EVERY),
            Some(_) | None => match once(&addresses, &tls, &folder).await {
                Ok(fingerprint) => {
                    tracing::info!(fingerprint, "the certificate was renewed");
                    backoff.reset();
                    told.clear();
                    since = now();
                    let look = tls.clone();
                    let _looked = tokio::task::spawn_blocking(move || look.look()).await;
                    AT_LEAST
                }
                Err(why) => {
                    if why != told {
                        tracing::warn!(why, ends = %end(validity), "the certificate could not be renewed yet");
                        told = why;
                    }
                    backoff.next()
                }
            },
        };
        if stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
            return;
        }
    }
}

async fn once(addresses: &Addresses, tls: &ClientTls, folder: &Folder) -> Result<String, String> {
    let (asking, kept) = (folder.clone(), folder.clone());
    let key = tokio::task::spawn_blocking(move || asking.asking_key());
    let key = key.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
    let request = ask::request(&key).map_err(|error| error.to_string())?;
    let answer = ask::renew(addresses, tls, request).await.map_err(|error| error.to_string())?;
    let certificate = answer.certificate.ok_or("the coordinator's answer has no certificate")?;
    let put = tokio::task::spawn_blocking(move || {
        let labels = kept.read()?.map(|kept| kept.labels).unwrap_or_default();
        kept.put(&certificate, labels).map(|()| certificate.fingerprint)
    });
    put.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}

/// How long until it is time.
fn left(validity: Validity, since: Wall, now: Wall) -> Duration {
    let life = validity.until.0.saturating_sub(validity.from.max(since).0).max(0);
    let due = validity.until.0.saturating_sub(life / 3);
    Duration::from_micros(u64::try_from(due.saturating_sub(now.0)).unwrap_or_default())
}

fn end(validity: Option<Validity>) -> String {
    let Some(validity) = validity else { return "unknown".to_owned() };
    let left = validity.until.0.saturating_sub(now().0) / 1_000_000;
    if left > 0 { format!("in {left} s") } else { format!("{} s ago, by this host's clock", -left) }
}

fn now() -> Wall {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Wall(i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_time_when_two_thirds_are_over() {
        let validity = Validity { from: Wall(0), until: Wall(90_000_000) };
        let first = Wall(i64::MIN);
        assert_eq!(left(validity, first, Wall(0)), Duration::from_secs(60));
        assert_eq!(left(validity, first, Wall(59_000_000)), Duration::from_secs(1));
        assert_eq!(left(validity, first, Wall(60_000_000)), Duration::ZERO);
        assert_eq!(left(validity, first, Wall(i64::MAX)), Duration::ZERO);
        // Signed at 60, and good a little before.
        assert_eq!(left(validity, Wall(60_000_000), Wall(60_000_000)), Duration::from_secs(20));
    }
}
