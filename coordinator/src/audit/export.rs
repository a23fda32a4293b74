//! Writes the lines, while others go on writing the store: each chain up to where it stood when its turn came.

use std::collections::BTreeMap;

use holdfast_common::id::TargetName;
use holdfast_common::time::Wall;
use sha2::{Digest as _, Sha256};

use super::line::{FORMAT, Head, Line, Tip, time};
use crate::store::{Digest, Error, Identity, Reader};

/// Events or acts that are read at once.
const PAGE: u32 = 200;
/// Refusals that are told at most: the store keeps no more.
const REFUSALS: u32 = 10_000;

/// What to export, and for whom.
#[derive(Clone, Debug)]
pub struct Export {
    /// Which store it is.
    pub identity: Identity,
    /// Who asked.
    pub by: String,
    /// When.
    pub at: Wall,
    /// Of which targets.
    pub targets: Vec<TargetName>,
    /// Whether of everything, what is about no target included.
    pub whole: bool,
}

/// Where lines go.
pub trait Sink: Send {
    /// Takes lines, without their line ends. False when nobody listens any more.
    fn put(&mut self, lines: Vec<String>) -> impl Future<Output = bool> + Send;
}

/// Everything, in order, with the last line. False if nobody listened to the end.
pub async fn run(export: Export, reader: Reader, sink: &mut impl Sink) -> Result<bool, Error> {
    let mut writer = Writer { sink, lines: 0, sum: Sha256::new() };
    let head = Head {
        format: FORMAT.to_owned(),
        store: export.identity.store.to_string(),
        epoch: export.identity.epoch.0,
        exported_at: time(export.at.0),
        exported_by: export.by,
        whole: export.whole,
    };
    let mut listened = writer.put(vec![Line::Head(head)]).await;
    let mut heads = BTreeMap::new();
    for target in export.targets {
        let name = target.clone();
        let to = reader.run(move |reader| reader.last_event(&name)).await?;
        let mut tip: Option<Tip> = None;
        while listened {
            let (name, after) = (target.clone(), tip.as_ref().map_or(0, |tip| tip.sequence));
            let page = reader.run(move |reader| reader.raw_events(&name, after, to, PAGE)).await?;
            let Some(last) = page.last() else { break };
            tip = Some(Tip { sequence: u64::try_from(last.sequence).unwrap_or_default(), hash: last.hash.clone() });
            listened = writer.put(page.into_iter().flat_map(Line::of_event).collect()).await;
        }
        heads.extend(tip.map(|tip| (target.to_string(), tip)));
    }
    let mut acts: Option<Tip> = None;
    while export.whole && listened {
        let after = acts.as_ref().map_or(0, |tip| tip.sequence);
        let page = reader.run(move |reader| reader.acts_after(after, PAGE)).await?;
        let Some(last) = page.last() else { break };
        acts = Some(Tip { sequence: last.sequence, hash: last.hash.clone() });
        listened = writer.put(page.into_iter().map(Line::of_act).collect()).await;
    }
    if export.whole && listened {
        let mut refusals = reader.run(|reader| reader.refusals(REFUSALS)).await?;
        refusals.reverse();
        for page in refusals.chunks(PAGE as usize) {
            let line = |row: &crate::store::RefusalRow| Line::Refusal {
                time: time(row.at.0),
                by: row.who.clone(),
                what: row.what.clone(),
                why: row.why.clone(),
            };
            listened = listened && writer.put(page.iter().map(line).collect()).await;
        }
    }
    let (lines, sha256) = (writer.lines, Digest(writer.sum.clone().finalize().into()).to_string());
    Ok(listened && writer.put(vec![Line::End { lines, sha256, heads, acts }]).await)
}

struct Writer<'a, S> {
    sink: &'a mut S,
    lines: u64,
    sum: Sha256,
}

impl<S: Sink> Writer<'_, S> {
    async fn put(&mut self, lines: Vec<Line>) -> bool {
        let texts: Vec<String> = lines.iter().map(Line::text).collect();
        for text in &texts {
            self.lines += 1;
            self.sum.update(text.as_bytes());
            self.sum.update(b"\n");
        }
        self.sink.put(texts).await
    }
}
