//! `adapter = "http"`.

use std::collections::BTreeSet;

use crate::adapter::Enforce;
use crate::code::Code;
use crate::file::field;
use crate::file::reader::{Complaint, Fields, Item, Reader, shown};
use crate::system::{Headers, Http, Pointers, Words, declarable};
use crate::time::Millis;

use super::external;

const KEYS: [&str; 12] = [
    "url",
    "submit",
    "method",
    "status",
    "resource",
    "fence",
    "enforce",
    "headers",
    "pointers",
    "states",
    "transient",
    "poll",
];
const POLLS: std::ops::RangeInclusive<Millis> = Millis(50)..=Millis::from_secs(3600);
const POLL: Millis = Millis::from_secs(1);
const MAX_PATH: usize = 1024;
/// Stands for the operation id in a path.
const OPERATION: &str = "{operation}";
const MAX_WORDS: usize = 50;

pub(super) fn read(reader: &mut Reader, fields: &Fields<'_>) -> Option<Http> {
    let item = reader.required(fields, "with")?;
    let with = reader.table(&item, &KEYS)?;
    let url = reader.required(&with, "url").and_then(|item| reader.ruled(&item, base));
    let submit = reader.required(&with, "submit").and_then(|item| reader.ruled(&item, path));
    let methods = [("POST", "POST"), ("PUT", "PUT")];
    let method = with.get("method").map_or(Some("POST"), |item| reader.choice(&item, &methods));
    let mut optional = |key| with.get(key).map_or(Some(None), |item| reader.ruled(&item, path).map(Some));
    let (status, resource, fence) = (optional("status"), optional("resource"), optional("fence"));
    let enforce = with.get("enforce").map_or(Some(Enforce::None), |item| external::enforce(reader, &item));
    let headers = with.get("headers").map_or(Some(Headers::default()), |item| headers(reader, &item));
    let pointers = pointers(reader, with.get("pointers"));
    let words = words(reader, with.get("states"));
    let transient = with.get("transient").map_or(Some(Vec::new()), |item| statuses(reader, &item));
    let poll = with.get("poll").map_or(Some(POLL), |item| reader.duration(&item, POLLS));
    let http = Http {
        url: url?,
        submit: submit?,
        method: method?.to_owned(),
        status: status?,
        resource: resource?,
        fence: fence?,
        enforce: enforce?,
        headers: headers?,
        pointers: pointers?,
        words: words?,
        transient: transient?,
        poll: poll?,
    };
    consistent(reader, &item, &http).then_some(http)
}

/// What is claimed needs what would carry it.
fn consistent(reader: &mut Reader, item: &Item<'_>, http: &Http) -> bool {
    let faults = [lacks(http), anonymous(http), twofold(http)];
    let mut faults = faults.into_iter().flatten().peekable();
    let is_consistent = faults.peek().is_none();
    faults.for_each(|(code, message)| reader.fault(code, item.key.clone(), message));
    is_consistent
}

fn lacks(http: &Http) -> Option<(Code, String)> {
    let lacks = match http.enforce {
        Enforce::None => None,
        Enforce::Revision => http.headers.expected.is_none().then_some("headers.expected, which carries the revision"),
        Enforce::Fence if http.headers.fence.is_none() => Some("headers.fence, which carries it"),
        Enforce::Fence if http.fence.is_none() => Some("\"fence\", where it is raised"),
        Enforce::Fence => http.resource.is_none().then_some("\"resource\", where it is read"),
    }?;
    let claimed = if http.enforce == Enforce::Fence { "fence" } else { "revision" };
    Some((Code::MissingKey, format!("enforce = \"{claimed}\" needs {lacks}")))
}

/// An API that is never told which operation it does can't tell what became of it.
fn anonymous(http: &Http) -> Option<(Code, String)> {
    let status = http.status.as_ref()?;
    if !status.contains(OPERATION) {
        return Some((Code::InvalidValue, format!("\"status\" needs the gap \"{OPERATION}\": it reads one operation")));
    }
    let is_told = http.headers.idempotency.is_some() || http.submit.contains(OPERATION);
    let message = || {
        format!(
            "\"status\" needs headers.idempotency, or \"{OPERATION}\" in \"submit\": the API must be told the operation"
        )
    };
    (!is_told).then(|| (Code::MissingKey, message()))
}

/// A word has one meaning, and without one for "applied" nothing would ever be.
fn twofold(http: &Http) -> Option<(Code, String)> {
    let Words { applied, applying, not_applied, partial } = &http.words;
    if applied.is_empty() {
        return Some((Code::InvalidValue, "\"states.applied\" needs a word".to_owned()));
    }
    let mut seen = BTreeSet::new();
    let twice = [applied, applying, not_applied, partial].into_iter().flatten().find(|word| !seen.insert(*word))?;
    Some((Code::InvalidValue, format!("the word {} stands twice in \"states\"", shown(twice))))
}

/// Where the paths are put behind.
fn base(text: &str) -> Result<(), Complaint> {
    if text.contains('?') {
        return Err(Complaint::invalid("the paths come behind this URL, so it has no \"?\""));
    }
    field::url(text)
}

/// A path behind the URL: plain, and with no other gap than the operation's.
fn path(text: &str) -> Result<(), Complaint> {
    let wrong = |why: &str| Err(Complaint::invalid(format!("{} {why}", shown(text))));
    let plain = text.replace(OPERATION, "");
    if !text.starts_with('/') || text.len() > MAX_PATH {
        return wrong("is no path: it begins with \"/\" and has at most 1024 bytes");
    }
    if plain.split('/').any(|part| part == "..") {
        return wrong("leads out of the URL");
    }
    if !plain.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"<>\\^`{|}#".contains(&byte)) {
        return wrong("has a character that a URL can't have: escape it as %XX; the only gap is \"{operation}\"");
    }
    Ok(())
}

fn headers(reader: &mut Reader, item: &Item<'_>) -> Option<Headers> {
    let fields = reader.table(item, &["idempotency", "fence", "expected"])?;
    let mut take = |key| fields.get(key).map_or(Some(None), |item| reader.ruled(&item, header).map(Some));
    let (idempotency, fence, expected) = (take("idempotency"), take("fence"), take("expected"));
    Some(Headers { idempotency: idempotency?, fence: fence?, expected: expected? })
}

/// A header's name, and none that makes the request another one.
pub(super) fn header(text: &str) -> Result<(), Complaint> {
    declarable(text).map_err(|why| Complaint::invalid(format!("{} {why}", shown(text))))
}

fn pointers(reader: &mut Reader, item: Option<Item<'_>>) -> Option<Pointers> {
    let fields = match &item {
        Some(item) => Some(reader.table(item, &["state", "revision", "identity", "fence", "owner"])?),
        None => None,
    };
    let mut take = |key: &str| {
        let item = fields.as_ref().and_then(|fields| fields.get(key))?;
        Some(reader.ruled(&item, pointer))
    };
    let owner = take("owner").map_or(Some(None), |owner| owner.map(Some));
    let mut usual = |key: &str| take(key).unwrap_or_else(|| Some(format!("/{key}")));
    let (state, revision, identity, fence) = (usual("state"), usual("revision"), usual("identity"), usual("fence"));
    Some(Pointers { state: state?, revision: revision?, identity: identity?, fence: fence?, owner: owner? })
}

fn pointer(text: &str) -> Result<(), Complaint> {
    if text.starts_with('/') && text.len() <= MAX_PATH {
        return Ok(());
    }
    Err(Complaint::invalid(format!("{} is no JSON pointer like \"/state\"", shown(text))))
}

fn words(reader: &mut Reader, item: Option<Item<'_>>) -> Option<Words> {
    let fields = match &item {
        Some(item) => Some(reader.table(item, &["applied", "applying", "not_applied", "partial"])?),
        None => None,
    };
    let mut take = |key: &str| {
        let Some(item) = fields.as_ref().and_then(|fields| fields.get(key)) else { return Some(vec![key.to_owned()]) };
        let items = reader.list(&item, 0..=MAX_WORDS)?;
        let words: Vec<_> = items.iter().map(|item| reader.plain_text(item).map(str::to_owned)).collect();
        words.into_iter().collect()
    };
    let (applied, applying) = (take("applied"), take("applying"));
    let (not_applied, partial) = (take("not_applied"), take("partial"));
    Some(Words { applied: applied?, applying: applying?, not_applied: not_applied?, partial: partial? })
}

/// A success is no failure, and a redirect is none either.
fn statuses(reader: &mut Reader, item: &Item<'_>) -> Option<Vec<u16>> {
    let items = reader.list(item, 0..=MAX_WORDS)?;
    let read: Vec<_> = items.iter().map(|item| reader.integer(item, 400..=599)).collect();
    read.into_iter().map(|status| status.and_then(|status| u16::try_from(status).ok())).collect()
}
