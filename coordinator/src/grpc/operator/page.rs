//! Pages of lists.

use holdfast_common::code::Code;
use tonic::Status;

use crate::grpc::status;

const DEFAULT: u32 = 50;
const LARGEST: u32 = 500;

/// How many to list. 0 is the default; more than the largest is the largest.
pub(super) fn size(asked: u32) -> u32 {
    if asked == 0 { DEFAULT } else { asked.min(LARGEST) }
}

/// What a page token of ours says; `None` for the first page.
pub(super) fn token<T: std::str::FromStr>(text: &str) -> Result<Option<T>, Status> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| status::plain(Code::InvalidMessage, "field `page_token`: not a page token"))
}

/// One page out of a sorted list: what comes after `after`, and the token of the next page.
pub(super) fn cut<T>(all: Vec<T>, after: Option<&str>, size: u32, name: impl Fn(&T) -> &str) -> (Vec<T>, String) {
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let mut rest = all.into_iter().filter(|one| after.is_none_or(|after| name(one) > after));
    let page: Vec<T> = rest.by_ref().take(size).collect();
    let next = rest.next().and_then(|_| page.last()).map(|last| name(last).to_owned()).unwrap_or_default();
    (page, next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_each_other_without_loss_and_end() {
        let all = || vec!["a", "b", "c"];
        let page = |after| cut(all(), after, 2, |name| name);
        assert_eq!(page(None), (vec!["a", "b"], "b".to_owned()));
        assert_eq!(page(Some("b")), (vec!["c"], String::new()));
        assert_eq!(page(Some("c")), (vec![], String::new()));
        assert_eq!((size(0), size(7), size(10_000)), (50, 7, 500));
        assert!(token::<u64>("x").is_err());
    }
}
