//! What hosts join with.

use holdfast_common::text::one_line;
use holdfast_proto::v1::{self, JoinTokenStanding};

use super::{Canvas, stamp};
use crate::output::{Table, Tone};

/// As a table.
#[must_use]
pub fn join_tokens(tokens: &[v1::JoinToken], canvas: Canvas<'_>) -> Table {
    let mut table = Table::new(&["join token", "for", "standing", "made", "by"]);
    for token in tokens {
        let (standing, tone) = standing(token, canvas);
        table.row_in_tones([
            (token.id.clone(), Tone::Strong),
            (join_token_about(token), Tone::Plain),
            (standing, tone),
            (stamp::near(token.created_at.as_ref(), canvas).unwrap_or_default(), Tone::Quiet),
            (token.created_by.clone(), Tone::Quiet),
        ]);
    }
    table
}

/// Like `for web-01, labels env=prod role=shop`.
#[must_use]
pub fn join_token_about(token: &v1::JoinToken) -> String {
    let name = match token.agent.as_str() {
        "" => "for any name".to_owned(),
        name => format!("for {}", one_line(name)),
    };
    let mut labels: Vec<String> =
        token.labels.iter().map(|(key, value)| format!("{}={}", one_line(key), one_line(value))).collect();
    labels.sort();
    if labels.is_empty() { name } else { format!("{name}, labels {}", labels.join(" ")) }
}

fn standing(token: &v1::JoinToken, canvas: Canvas<'_>) -> (String, Tone) {
    let at = stamp::near(token.expires_at.as_ref(), canvas).unwrap_or_default();
    match JoinTokenStanding::try_from(token.standing) {
        Ok(JoinTokenStanding::Pending) => (format!("good until {at}"), Tone::Good),
        Ok(JoinTokenStanding::Used) => (format!("used by {}", one_line(&token.used_by)), Tone::Plain),
        Ok(JoinTokenStanding::Expired) => (format!("expired {at}"), Tone::Quiet),
        Ok(JoinTokenStanding::Revoked) => ("taken back".to_owned(), Tone::Quiet),
        Ok(JoinTokenStanding::Unspecified) => ("not told".to_owned(), Tone::Plain),
        Err(_) => (format!("number {}, not known to this version", token.standing), Tone::Hazard),
    }
}
