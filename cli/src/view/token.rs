//! Tokens, and what they allow.

use holdfast_common::text::one_line;
use holdfast_proto::v1::{self, TokenStanding};

use super::{Canvas, stamp, word};
use crate::output::{Table, Tone};

/// As a table.
#[must_use]
pub fn tokens(tokens: &[v1::Token], canvas: Canvas<'_>) -> Table {
    let mut table = Table::new(&["token", "grants", "standing", "made", "by"]);
    for token in tokens {
        let (standing, tone) = standing(token, canvas);
        let by = match token.created_by.as_str() {
            "" => "on the coordinator's host".to_owned(),
            by => by.to_owned(),
        };
        table.row_in_tones([
            (token.name.clone(), Tone::Strong),
            (grants(&token.grants), Tone::Plain),
            (standing, tone),
            (stamp::near(token.created_at.as_ref(), canvas).unwrap_or_default(), Tone::Quiet),
            (by, Tone::Quiet),
        ]);
    }
    table
}

fn standing(token: &v1::Token, canvas: Canvas<'_>) -> (String, Tone) {
    let at = stamp::near(token.expires_at.as_ref(), canvas).unwrap_or_default();
    match TokenStanding::try_from(token.standing) {
        Ok(TokenStanding::Valid) => (format!("valid until {at}"), Tone::Good),
        Ok(TokenStanding::Expired) => (format!("expired {at}"), Tone::Quiet),
        Ok(TokenStanding::Revoked) => ("revoked".to_owned(), Tone::Quiet),
        Ok(TokenStanding::Unspecified) => ("not told".to_owned(), Tone::Plain),
        Err(_) => (format!("number {}, not known to this version", token.standing), Tone::Hazard),
    }
}

/// Like `operator:shop@* viewer:*`, as `--role` takes them.
#[must_use]
pub fn grants(grants: &[v1::Grant]) -> String {
    let all: Vec<String> =
        grants.iter().map(|grant| format!("{}:{}", word::role(grant.role), one_line(&grant.targets))).collect();
    if all.is_empty() { "nothing".to_owned() } else { all.join(" ") }
}
