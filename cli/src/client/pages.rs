//! Lists that come in pages, read to their end.

use holdfast_proto::v1;

use crate::failure::Failure;

/// Items of one page.
const PAGE: u32 = 200;
/// Pages that are read at most: a server that never ends a list is not followed for ever.
const MAX_PAGES: usize = 500;

/// Which page is asked for.
pub(super) struct Page {
    pub(super) size: u32,
    pub(super) token: String,
}

/// An answer that is a page of a list, and pages put together.
pub(super) trait Paged: Default {
    /// Puts the next page behind what is there.
    fn add(&mut self, page: Self);

    /// How many items there are.
    fn count(&self) -> usize;

    /// Of the page that follows; empty at the end.
    fn next(&self) -> &str;
}

/// All pages together, up to the last one or to `limit` items. The token says whether there is more.
pub(super) async fn whole<P: Paged>(
    limit: usize,
    mut read: impl AsyncFnMut(Page) -> Result<P, Failure>,
) -> Result<P, Failure> {
    let mut whole = P::default();
    for _ in 0..MAX_PAGES {
        let left = limit.saturating_sub(whole.count()).max(1);
        let size = u32::try_from(left).unwrap_or(PAGE).min(PAGE);
        whole.add(read(Page { size, token: whole.next().to_owned() }).await?);
        if whole.next().is_empty() || whole.count() >= limit {
            break;
        }
    }
    Ok(whole)
}

macro_rules! paged {
    ($($answer:ident: $items:ident)*) => {
        $(
            impl Paged for v1::$answer {
                fn add(&mut self, page: Self) {
                    self.$items.extend(page.$items);
                    self.next_page_token = page.next_page_token;
                }

                fn count(&self) -> usize {
                    self.$items.len()
                }

                fn next(&self) -> &str {
                    &self.next_page_token
                }
            }
        )*
    };
}

paged! {
    ListAgentsResponse: agents
    ListAuditResponse: entries
    ListDeploymentsResponse: deployments
    ListJoinTokensResponse: tokens
    ListTargetsResponse: targets
    ListTokensResponse: tokens
}
