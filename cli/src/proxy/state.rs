use std::net::SocketAddr;
use std::time::Duration;

/// Directions that a fault covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ways {
    /// Both directions.
    Both,
    /// From the client (the agent) to the upstream (the coordinator).
    Up,
    /// From the upstream (the coordinator) to the client (the agent).
    Down,
}

/// One direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Up,
    Down,
}

impl Ways {
    pub(super) fn covers(self, way: Way) -> bool {
        match self {
            Ways::Both => true,
            Ways::Up => way == Way::Up,
            Ways::Down => way == Way::Down,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    None,
    Cut,
    BlackHole(Ways),
    Stall(Ways),
    Delay(Duration),
}

/// When connections are ended in good order, whatever is under way on them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Recycle {
    pub(super) age: Option<Duration>,
    pub(super) idle: Option<Duration>,
}

/// What the proxy shall do. Lasting faults are a value, momentary ones a count that a connection compares with the one
/// it began with, so that none is missed.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    pub(super) upstream: SocketAddr,
    pub(super) fault: Fault,
    pub(super) resets: u64,
    pub(super) recycle: Recycle,
    ends_up: u64,
    ends_down: u64,
}

impl State {
    pub(super) fn new(upstream: SocketAddr) -> Self {
        Self { upstream, fault: Fault::None, resets: 0, recycle: Recycle::default(), ends_up: 0, ends_down: 0 }
    }

    pub(super) fn end(&mut self, ways: Ways) {
        self.ends_up += u64::from(ways.covers(Way::Up));
        self.ends_down += u64::from(ways.covers(Way::Down));
    }

    pub(super) fn ends(&self, way: Way) -> u64 {
        match way {
            Way::Up => self.ends_up,
            Way::Down => self.ends_down,
        }
    }

    pub(super) fn is_cut(&self) -> bool {
        self.fault == Fault::Cut
    }

    pub(super) fn is_dark(&self, way: Way) -> bool {
        matches!(self.fault, Fault::BlackHole(ways) if ways.covers(way))
    }

    pub(super) fn is_stalled(&self, way: Way) -> bool {
        matches!(self.fault, Fault::Stall(ways) if ways.covers(way))
    }

    pub(super) fn delay(&self) -> Duration {
        match self.fault {
            Fault::Delay(delay) => delay,
            Fault::None | Fault::Cut | Fault::BlackHole(_) | Fault::Stall(_) => Duration::ZERO,
        }
    }
}
