//! The agents' lines to the coordinator, each through a proxy that breaks it on purpose.

use std::collections::BTreeMap;
use std::time::Duration;

use super::control::{Answer, Request};
use crate::proxy::{Proxy, Ways};

/// Every agent's line, by the agent's name. Clones control the same lines.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines {
    proxies: BTreeMap<String, Proxy>,
}

impl Lines {
    pub(super) fn add(&mut self, agent: &str, proxy: Proxy) {
        self.proxies.insert(agent.to_owned(), proxy);
    }

    /// Makes every line this much slower, each way.
    pub(super) fn slow(&self, delay: Duration) {
        self.proxies.values().for_each(|proxy| proxy.delay(delay));
    }

    /// What the agent sends vanishes; what it is sent still arrives, without delay.
    pub(super) fn mute(&self, agent: &str) {
        if let Some(proxy) = self.proxies.get(agent) {
            proxy.black_hole(Ways::Up);
        }
    }

    /// Nothing passes either way.
    pub(super) fn silence(&self, agent: &str) {
        if let Some(proxy) = self.proxies.get(agent) {
            proxy.black_hole(Ways::Both);
        }
    }

    /// Ends whatever is wrong with the agent's line.
    pub(super) async fn heal(&self, agent: &str) {
        if let Some(proxy) = self.proxies.get(agent) {
            proxy.heal().await;
        }
    }

    /// Ends whatever is wrong with every other line.
    pub(super) async fn heal_others(&self, agent: &str) {
        for (_, proxy) in self.proxies.iter().filter(|(name, _)| *name != agent) {
            proxy.heal().await;
        }
    }

    /// Does what another terminal asks for, and tells what will be seen of it. `None` for what is about a process.
    pub(super) async fn act(&self, request: &Request) -> Option<Answer> {
        let (agent, break_it): (_, Break) = match request {
            Request::Cut { agent } => (agent, Break::Cut),
            Request::Silence { agent } => (agent, Break::Silence),
            Request::Heal { agent } => (agent, Break::Heal),
            Request::Pause { .. } | Request::Resume { .. } | Request::Kill { .. } | Request::Start { .. } => {
                return None;
            }
        };
        let Some(proxy) = self.proxies.get(agent) else {
            return Some(unknown(agent, self.proxies.keys().map(String::as_str)));
        };
        let detail = match break_it {
            Break::Cut => {
                proxy.cut().await;
                format!(
                    "the line of {agent} is cut: its connections were reset, new ones are refused. `holdfast agents` shows \
                     it as silent at once; what it runs goes on, and goes uncertain when its lease runs out. \
                     Back: holdfast dev heal {agent}"
                )
            }
            Break::Silence => {
                proxy.black_hole(Ways::Both);
                format!(
                    "the line of {agent} is silent: what either end sends vanishes, and nobody is told. `holdfast watch` \
                     freezes into a silence in a few seconds; what it runs goes uncertain when its lease runs out. \
                     Back: holdfast dev heal {agent}"
                )
            }
            Break::Heal => {
                proxy.heal().await;
                format!(
                    "the line of {agent} is whole again: it reports what it did meanwhile. What went uncertain stays so \
                     until it is decided: holdfast reconcile list"
                )
            }
        };
        Some(Answer::Done { detail })
    }
}

enum Break {
    Cut,
    Silence,
    Heal,
}

/// There is no such agent, but there are others.
pub(super) fn unknown<'a>(agent: &str, known: impl Iterator<Item = &'a str>) -> Answer {
    let known: Vec<&str> = known.collect();
    Answer::Refused { detail: format!("there is no agent {agent:?} here; there are {}", known.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines() -> Lines {
        let mut lines = Lines::default();
        let nobody = "127.0.0.1:9".parse().expect("an address");
        lines.add("web-01", Proxy::start(nobody).await.expect("a proxy"));
        lines.add("web-02", Proxy::start(nobody).await.expect("a proxy"));
        lines
    }

    #[tokio::test]
    async fn a_cut_line_refuses_and_a_healed_one_accepts() {
        let lines = lines().await;
        let address = lines.proxies["web-01"].address();
        let dial = || tokio::net::TcpStream::connect(address);
        dial().await.expect("whole at first");
        let agent = || "web-01".to_owned();
        assert!(matches!(lines.act(&Request::Cut { agent: agent() }).await, Some(Answer::Done { .. })));
        dial().await.expect_err("cut");
        assert!(matches!(lines.act(&Request::Heal { agent: agent() }).await, Some(Answer::Done { .. })));
        dial().await.expect("healed");
    }

    #[tokio::test]
    async fn an_unknown_agent_is_refused_with_those_there_are() {
        let answer = lines().await.act(&Request::Cut { agent: "web-1".to_owned() }).await;
        let Some(Answer::Refused { detail }) = answer else { panic!("{answer:?}") };
        assert_eq!(detail, "there is no agent \"web-1\" here; there are web-01, web-02");
    }
}
