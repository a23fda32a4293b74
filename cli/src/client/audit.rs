//! The record of what people did.

use std::time::Duration;

use holdfast_proto::v1;
use tonic::{Status, Streaming};

use super::{Client, DEADLINE, pages, read, timely};
use crate::failure::Failure;
use crate::refusal::{self, Call};

/// Longest time between two pieces of an export.
const EXPORT_PATIENCE: Duration = Duration::from_secs(60);

impl Client {
    /// What people did and were refused, the latest first, at most about `limit`. The token says whether there is more.
    pub async fn audit(&self, target: &str, limit: usize) -> Result<v1::ListAuditResponse, Failure> {
        pages::whole(limit, async |page| {
            let mut api = self.api.clone();
            let request =
                v1::ListAuditRequest { target: target.to_owned(), page_size: page.size, page_token: page.token };
            read(async move { api.list_audit(timely(request, DEADLINE)).await }).await
        })
        .await
    }

    /// The record, as lines.
    pub async fn export_audit(&self, target: String) -> Result<AuditLines, Failure> {
        let mut api = self.api.clone();
        let request = v1::ExportAuditRequest { target };
        read(async move { api.export_audit(request).await }).await.map(AuditLines)
    }
}

/// Lines of an export, as they come.
pub struct AuditLines(Streaming<v1::ExportAuditResponse>);

impl AuditLines {
    /// The next ones. `None` at the end of the whole.
    pub async fn next(&mut self) -> Result<Option<Vec<String>>, Failure> {
        let piece = match tokio::time::timeout(EXPORT_PATIENCE, self.0.message()).await {
            Ok(piece) => piece,
            Err(_) => Err(Status::deadline_exceeded("the export has stopped coming")),
        };
        piece.map(|piece| piece.map(|piece| piece.lines)).map_err(|status| refusal::of(&status, &Call::Reads))
    }
}
