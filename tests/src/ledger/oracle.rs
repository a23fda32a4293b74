use holdfast_agent::boottime::BootTime;

use super::Line;

/// One time that a command ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interval {
    /// `<deployment id>/<step>`.
    pub operation: String,
    /// UUID.
    pub attempt: String,
    /// The decimal number.
    pub fence: u64,
    /// The process.
    pub pid: u32,
    /// When the kernel says it was started.
    pub start: u64,
    /// When it began.
    pub began: BootTime,
    /// When it ended by itself; `None` where it did not, or not yet.
    pub ended: Option<BootTime>,
}

impl Interval {
    /// The deployment of its operation.
    #[must_use]
    pub fn deployment(&self) -> &str {
        self.operation.split_once('/').map_or("", |(deployment, _)| deployment)
    }
}

/// Two that were open at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// Open when the other began.
    pub earlier: Interval,
    /// The other.
    pub later: Interval,
}

/// Every time that a command ran, in the order of their begins.
#[must_use]
pub fn intervals(lines: &[Line]) -> Vec<Interval> {
    let mut found: Vec<Interval> = Vec::new();
    for line in lines {
        match line {
            Line::Begin { operation, attempt, fence, pid, start, at } => found.push(Interval {
                operation: operation.clone(),
                attempt: attempt.clone(),
                fence: *fence,
                pid: *pid,
                start: *start,
                began: *at,
                ended: None,
            }),
            Line::End { pid, at, .. } => {
                if let Some(open) = found.iter_mut().rev().find(|open| open.pid == *pid && open.ended.is_none()) {
                    open.ended = Some(*at);
                }
            }
            Line::Dead { .. } | Line::Attested { .. } => {}
        }
    }
    found
}

/// Every pair that overlaps without an attestation about the earlier one's deployment in between.
#[must_use]
pub fn overlaps(lines: &[Line]) -> Vec<Overlap> {
    let mut found = Vec::new();
    let mut open: Vec<Interval> = Vec::new();
    for line in lines {
        match line {
            Line::Begin { .. } => {
                let later = intervals(std::slice::from_ref(line)).remove(0);
                found.extend(open.iter().map(|earlier| Overlap { earlier: earlier.clone(), later: later.clone() }));
                open.push(later);
            }
            Line::End { pid, .. } | Line::Dead { pid, .. } => open.retain(|interval| interval.pid != *pid),
            Line::Attested { deployment, .. } => open.retain(|interval| interval.deployment() != deployment),
        }
    }
    found
}

/// What has no end yet and was not seen dead.
pub(super) fn still_open(lines: &[Line]) -> Vec<(u32, u64)> {
    let mut open = Vec::new();
    for line in lines {
        match line {
            Line::Begin { pid, start, .. } => open.push((*pid, *start)),
            Line::End { pid, .. } | Line::Dead { pid, .. } => open.retain(|(open, _)| open != pid),
            Line::Attested { .. } => {}
        }
    }
    open
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<Line> {
        text.lines().map(|line| Line::parse(line.trim())).collect()
    }

    #[test]
    fn one_after_the_other_is_no_overlap() {
        let lines = read("begin d1/a x 1 10 5 100\nend d1/a x 10 200\nbegin d2/a y 2 11 6 300\nend d2/a y 11 400");
        assert_eq!(overlaps(&lines), []);
        assert_eq!(intervals(&lines).len(), 2);
        assert!(intervals(&lines).iter().all(|interval| interval.ended.is_some()));
    }

    #[test]
    fn a_missing_end_is_open_until_its_process_is_seen_dead() {
        let open = "begin d1/a x 1 10 5 100\nbegin d2/a y 2 11 6 300";
        assert_eq!(overlaps(&read(open)).len(), 1);
        let dead = "begin d1/a x 1 10 5 100\ndead 10 250\nbegin d2/a y 2 11 6 300";
        assert_eq!(overlaps(&read(dead)), []);
        let too_late = "begin d1/a x 1 10 5 100\nbegin d2/a y 2 11 6 300\ndead 10 350";
        assert_eq!(overlaps(&read(too_late)).len(), 1);
    }

    #[test]
    fn an_attestation_closes_only_its_own_deployment() {
        let own = "begin d1/a x 1 10 5 100\nattested d1 200\nbegin d2/a y 2 11 6 300";
        assert_eq!(overlaps(&read(own)), []);
        let other = "begin d1/a x 1 10 5 100\nattested d3 200\nbegin d2/a y 2 11 6 300";
        assert_eq!(overlaps(&read(other)).len(), 1);
    }

    #[test]
    fn the_same_operation_twice_at_once_is_an_overlap_too() {
        let lines = read("begin d1/a x 1 10 5 100\nbegin d1/a z 2 11 6 300\nend d1/a x 10 310\nend d1/a z 11 320");
        assert_eq!(overlaps(&lines).len(), 1);
    }

    #[test]
    fn lines_are_read_back_as_written() {
        let text = "begin d1/a x 1 10 5 100\nend d1/a x 10 200\ndead 10 250\nattested d1 300";
        let again: Vec<String> = read(text).iter().map(Line::to_string).collect();
        assert_eq!(again.join("\n"), text);
    }
}
