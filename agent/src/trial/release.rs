//! A release folder: read and fenced off by the agent itself.

use std::path::Path;

use holdfast_common::fence::Fence;
use holdfast_common::outcome::OperationState;

use super::{Trial, Verdict, never};
use crate::adapters::release;
use crate::internal::with_causes;

impl Trial {
    pub(super) fn release(&mut self, root: &Path) {
        let what = "it can be read";
        let above = root.parent().is_some_and(Path::is_dir);
        if !above {
            return self.found(what, Verdict::False, format!("the folder above {} is not there", root.display()));
        }
        let reading = release::inspect(root, &never());
        if reading.state == OperationState::Unknown && !reading.resource_identity.is_empty() {
            return self.found(what, Verdict::False, reading.detail);
        }
        self.found(what, Verdict::Shown, root.display().to_string());
        self.reading(&reading, true);
        let what = "a raise that changes nothing goes well, twice";
        // At its highest fence an attempt may be at work; below it everything was refused when that attempt began.
        match reading.highest_fence.filter(|highest| highest.counter() > 1) {
            None => self.found(what, Verdict::NotTried, "there is no fence below the highest".to_owned()),
            Some(highest) => {
                let below = Fence::from_u64(highest.as_u64() - 1).expect("above the first of its epoch");
                let raised = [release::raise(root, below), release::raise(root, below)].into_iter().collect();
                let raised: Result<Vec<_>, _> = raised;
                match raised {
                    Ok(_) => self.unchanged(what, &reading, Ok(release::inspect(root, &never()))),
                    Err(error) => self.found(what, Verdict::False, with_causes(&error)),
                }
            }
        }
    }
}
