//! The audit: what people did and were refused, and the whole record as lines.

use holdfast_common::id::TargetName;
use holdfast_common::time::Wall;
use holdfast_coordinator_core::event::Event;
use holdfast_coordinator_core::state::{CancelCause, EvidenceBody, HoldEnd, ResourceKnowledge, RevisionSource};
use holdfast_proto::convert::wall_to_wire;
use holdfast_proto::v1;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::lapse::Told;
use super::{Call, Sender, find, page};
use crate::audit::export::{self, Export, Sink};
use crate::auth::{Operator, Permission};
use crate::grpc::shared::Shared;
use crate::grpc::{refused, view};
use crate::store::rows::{ActRow, StoredEvent};
use crate::store::{Error, Reader, RefusalRow};

/// Bytes of lines that go into one message, about.
const PIECE: usize = 256 * 1024;

pub(super) async fn export(call: Call<'_, v1::ExportAuditRequest>) -> Result<Told<v1::ExportAuditResponse>, Status> {
    let Call { shared, by, asked } = call;
    let targets = targets(shared, &by, &asked.target).await?;
    let whole = asked.target.is_empty() && by.scope.may_everywhere(Permission::Audit);
    let export = Export { identity: shared.identity, by: by.name.to_string(), at: shared.now(), targets, whole };
    tracing::info!(by = %by.name, whole, targets = export.targets.len(), "the audit is exported");
    let (sender, stream) = mpsc::channel(4);
    let reader = shared.reader.clone();
    tokio::spawn(async move {
        let mut pieces = Pieces { sender: sender.clone(), lines: Vec::new(), bytes: 0 };
        let ended = export::run(export, reader, &mut pieces).await;
        let ended = match ended {
            Ok(listened) => !listened || pieces.flush().await,
            Err(error) => {
                let _gone = sender.send(Err(refused::by_store(&error))).await;
                return;
            }
        };
        tracing::debug!(ended, "an export has ended");
    });
    Ok(Told::anywhere(ReceiverStream::new(stream), shared, by))
}

/// The targets that the caller may audit, or the one that was asked for.
async fn targets(shared: &Shared, by: &Operator, one: &str) -> Result<Vec<TargetName>, Status> {
    if !one.is_empty() {
        let state = find::target(shared, by, one, Permission::Audit).await?;
        return Ok(vec![state.spec.name.clone()]);
    }
    let read = shared.reader.run(|reader| reader.target_names()).await;
    let mut names = read.map_err(|error| refused::by_store(&error))?;
    names.retain(|name| by.scope.may(Permission::Audit, name));
    Ok(names)
}

struct Pieces {
    sender: Sender<v1::ExportAuditResponse>,
    lines: Vec<String>,
    bytes: usize,
}

impl Pieces {
    async fn flush(&mut self) -> bool {
        self.bytes = 0;
        let lines = std::mem::take(&mut self.lines);
        lines.is_empty() || self.sender.send(Ok(v1::ExportAuditResponse { lines })).await.is_ok()
    }
}

impl Sink for Pieces {
    async fn put(&mut self, lines: Vec<String>) -> bool {
        for line in lines {
            self.bytes += line.len();
            self.lines.push(line);
            if self.bytes >= PIECE && !self.flush().await {
                return false;
            }
        }
        true
    }
}

pub(super) async fn list(call: Call<'_, v1::ListAuditRequest>) -> Result<v1::ListAuditResponse, Status> {
    let Call { shared, by, asked } = call;
    let before = Wall(page::token::<i64>(&asked.page_token)?.unwrap_or(i64::MAX));
    let size = page::size(asked.page_size);
    let among = targets(shared, &by, &asked.target).await?;
    let rest = asked.target.is_empty() && by.scope.may_everywhere(Permission::Audit);
    let read = shared.reader.run(move |reader| {
        let mut entries: Vec<Entry> = Vec::new();
        for event in reader.acts_of_people(&among, before, size + 1)? {
            let about = about(reader, &event)?;
            entries.push(of_event(event, about));
        }
        if rest {
            entries.extend(reader.latest_acts(before, size + 1)?.into_iter().map(of_act));
            entries.extend(reader.latest_refusals(before, size + 1)?.into_iter().map(of_refusal));
        }
        Ok::<_, Error>(entries)
    });
    let mut entries = read.await.map_err(|error| refused::by_store(&error))?;
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.at));
    let next = cut(&mut entries, usize::try_from(size).unwrap_or(usize::MAX));
    let next_page_token = next.map(|at| at.to_string()).unwrap_or_default();
    Ok(v1::ListAuditResponse { entries: entries.into_iter().map(|entry| entry.shown).collect(), next_page_token })
}

struct Entry {
    at: i64,
    shown: v1::AuditEntry,
}

/// Leaves one page, the latest first: what is of one instant stays together. Answers where the next page begins.
fn cut(entries: &mut Vec<Entry>, size: usize) -> Option<i64> {
    let first_left = entries.get(size)?.at;
    let whole = entries.iter().take_while(|entry| entry.at > first_left).count();
    let keep = if whole > 0 { whole } else { entries.iter().take_while(|entry| entry.at == first_left).count() };
    entries.truncate(keep);
    entries.last().map(|entry| entry.at)
}

fn entry(at: Wall, shown: v1::AuditEntry) -> Entry {
    Entry { at: at.0, shown: v1::AuditEntry { at: Some(wall_to_wire(at)), ..shown } }
}

/// The target, or its deployment as people name it.
fn about(reader: &Reader, event: &StoredEvent) -> Result<String, Error> {
    let Some(id) = event.recorded.deployment else { return Ok(event.target.to_string()) };
    let row = reader.deployment(id)?;
    let label = row.map(|row| view::deployment::label(&row.target, &row.record).to_string());
    Ok(label.unwrap_or_else(|| format!("{} {id}", event.target)))
}

fn of_event(event: StoredEvent, about: String) -> Entry {
    let wire = view::event::event(&event.target, &event.recorded, &event.hash, None);
    let by = author(&event.recorded.event);
    entry(
        event.recorded.at,
        v1::AuditEntry { by, what: wire.kind, about, sentence: wire.sentence, hash: event.hash, ..Default::default() },
    )
}

/// Who is behind an event that a person may be behind.
fn author(event: &Event) -> String {
    match event {
        Event::TargetDeclared { by, .. }
        | Event::Submitted { by, .. }
        | Event::InquiryOpened { by, .. }
        | Event::CancelAfterEnd { by, .. }
        | Event::CancelRecorded { cause: CancelCause::Operator { by }, .. } => by.to_string(),
        Event::Decided { record, .. } => record.by.to_string(),
        Event::HoldPlaced { hold } => hold.by.to_string(),
        Event::HoldEnded { how: HoldEnd::Operator { name } } => name.to_string(),
        Event::EvidenceFiled { evidence, .. } => match &evidence.body {
            EvidenceBody::Attested { by, .. }
            | EvidenceBody::IdentityUnlocked { by, .. }
            | EvidenceBody::Note { by, .. } => by.to_string(),
            EvidenceBody::LateReport { agent, .. }
            | EvidenceBody::Inspection { agent, .. }
            | EvidenceBody::FencedOff { agent, .. }
            | EvidenceBody::InquiryFailed { agent, .. }
            | EvidenceBody::IdentityLocked { agent, .. }
            | EvidenceBody::JournalWord { agent, .. } => format!("agent {agent}"),
        },
        Event::RevisionRecorded {
            knowledge: ResourceKnowledge::Revision { source: Some(RevisionSource::Attested { by, .. }), .. },
            ..
        } => by.to_string(),
        Event::CancelRecorded {
            cause: CancelCause::Timeout { .. } | CancelCause::QueueTimeout | CancelCause::DeploymentTimeout,
            ..
        }
        | Event::HoldEnded { how: HoldEnd::Time } => "(time)".to_owned(),
        Event::Reserved { .. }
        | Event::Waits { .. }
        | Event::LeaseGranted { .. }
        | Event::LeaseRenewed { .. }
        | Event::AgentAway { .. }
        | Event::OfferAccepted { .. }
        | Event::OfferDeclined { .. }
        | Event::PermitGranted { .. }
        | Event::ReportAccepted { .. }
        | Event::AttemptEnded { .. }
        | Event::DeadlinePassed { .. }
        | Event::DeploymentDeadlinePassed { .. }
        | Event::DeploymentMoved { .. }
        | Event::PolicyScheduled { .. }
        | Event::RetryScheduled { .. }
        | Event::DeploymentEnded { .. }
        | Event::RevisionRecorded { .. } => "(the coordinator)".to_owned(),
    }
}

fn of_act(act: ActRow) -> Entry {
    let ActRow { at, by, kind, about, detail, hash, .. } = act;
    let sentence = match kind.as_str() {
        "token_made" => format!("{by} made the token of {about}: {detail}"),
        "token_revoked" => format!("{by} took the token of {about} back: {detail}"),
        "join_token_made" => format!("{by} made the join token {about}: {detail}"),
        "join_token_revoked" => format!("{by} took the join token {about} back: {detail}"),
        "agent_joined" => format!("{about} joined {detail}"),
        "agent_removed" => format!("{by} removed the agent {about}: {detail}"),
        "certificate_revoked" => format!("{by} revoked the certificate {about} {detail}"),
        "agent_drained" => format!("{by} drained {about}: {detail}"),
        "agent_resumed" => format!("{by} lets {about} have new work again"),
        other => format!("{by}: {other} {about}: {detail}"),
    };
    entry(at, v1::AuditEntry { by, what: kind, about, sentence, hash, ..Default::default() })
}

fn of_refusal(row: RefusalRow) -> Entry {
    let RefusalRow { who, what, why, at } = row;
    let sentence = format!("{who} was refused: {why}");
    entry(at, v1::AuditEntry { by: who, what, sentence, refused: true, ..Default::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_keep_one_instant_together_and_lose_nothing() {
        let all =
            |ats: &[i64]| -> Vec<Entry> { ats.iter().map(|at| entry(Wall(*at), v1::AuditEntry::default())).collect() };
        let page = |ats: &[i64], size| {
            let mut entries = all(ats);
            let next = cut(&mut entries, size);
            (entries.iter().map(|entry| entry.at).collect::<Vec<_>>(), next)
        };
        assert_eq!(page(&[9, 8, 7], 2), (vec![9, 8], Some(8)));
        assert_eq!(page(&[9, 8, 8], 2), (vec![9], Some(9)));
        assert_eq!(page(&[8, 8, 8, 7], 2), (vec![8, 8, 8], Some(8)));
        assert_eq!(page(&[9, 8], 2), (vec![9, 8], None));
    }
}
