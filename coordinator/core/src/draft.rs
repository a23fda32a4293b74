//! A decision in the making: each event is applied as it is added, so that what follows sees what went before.

use std::borrow::Cow;

use crate::apply::{change, place};
use crate::decision::{Answer, Decision};
use crate::event::Event;
use crate::input::Now;
use crate::refusal::Refusal;
use crate::state::{Deployment, TargetState};

pub(crate) struct Draft<'a> {
    state: Cow<'a, TargetState>,
    pub(crate) now: Now,
    events: Vec<Event>,
    broken: Option<&'static str>,
}

impl<'a> Draft<'a> {
    pub(crate) fn on(state: &'a TargetState, now: Now) -> Self {
        Self { state: Cow::Borrowed(state), now, events: Vec::new(), broken: None }
    }

    /// The state after the events so far.
    pub(crate) fn state(&self) -> &TargetState {
        &self.state
    }

    /// The deployment that holds the target after the events so far.
    pub(crate) fn current(&self) -> Option<&Deployment> {
        self.state.current.as_ref()
    }

    /// Adds an event. One that is not legal breaks the whole decision: nothing of it will be written.
    pub(crate) fn record(&mut self, event: Event) {
        if self.broken.is_some() {
            return;
        }
        let recorded = place(Some(&self.state), self.now, event);
        match change(self.state.to_mut(), &recorded) {
            Ok(()) => self.events.push(recorded.event),
            Err(because) => self.broken = Some(because),
        }
    }

    pub(crate) fn answer(self, answer: Answer) -> Result<Decision, Refusal> {
        match self.broken {
            None => Ok(Decision { events: self.events, answer }),
            Some(because) => Err(Refusal::Broken { because }),
        }
    }
}
