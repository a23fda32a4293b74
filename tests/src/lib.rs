//! Whole Holdfast processes on real sockets, and the harness that breaks them.
//!
//! ```text
//!   cli, api ───────────────▶ coordinator ◀── proxy ── agent web-01 ── shim ── ledger (the command under test)
//!                                  ▲  ▲◀───── proxy ── agent web-02
//!   peer (an agent's certificate, ─┘                        ▲
//!   any message in any order)              hostile (a coordinator that lies)
//! ```
//!
//! | module | holds |
//! | --- | --- |
//! | [`cluster`] | coordinator, agents and their proxies as processes that can be killed, frozen and started again |
//! | [`cli`] | the command line as a process: exit code, JSON |
//! | [`api`] | the operator's API, called directly |
//! | [`peer`] | an agent's side of the protocol by hand: hostile, duplicated, reordered, replayed messages |
//! | [`hostile`] | a coordinator by hand, towards a real agent |
//! | [`fleet`] | many agents in few processes, with everything real but their hands |
//! | [`echo`] | a bare server of the same stream: what the wire alone costs |
//! | [`reunion`] | many agents lose their coordinator and come back |
//! | [`manager`] | a service manager: notify, watchdog, restarts, another program in the place of the old |
//! | [`debian`] | a small Debian to install packages into |
//! | [`deploy_api`] | the deployment API of the examples |
//! | [`flags`] | the adapter program of the examples |
//! | [`machine`] | what the kernel says of processes and connections |
//! | [`ledger`] | the command under test, and the oracle that reads what it wrote |
//! | [`events`] | expected lists of events, compared with a readable difference |
//! | [`https`] | a server of files over https that cuts its answers |
//! | [`releases`] | what a release folder underwent, by its own ledger |
//! | [`files`], [`site`] | target and deployment files; archives |
//! | [`strace`] | what a process asked of the kernel: that syncs come before answers |
//! | [`netns`], [`tun`] | hosts and cables of the test's own, and a line that loses packets |
//! | [`ops`] | health and metrics of a process |
//! | [`wait`] | conditions with a bound; there are no bare sleeps |
//! | [`folder`], [`process`] | temporary folders and processes that leave nothing behind |
//!
//! A test says what went wrong by panicking; then the logs of every process are printed. `HOLDFAST_KEEP=1` keeps the folder.

pub mod api;
pub mod cli;
pub mod cluster;
pub mod database;
pub mod debian;
pub mod deploy_api;
pub mod echo;
pub mod events;
pub mod files;
pub mod fleet;
pub mod folder;
pub mod hostile;
pub mod https;
pub mod ledger;
pub mod machine;
pub mod manager;
pub mod netns;
pub mod ops;
pub mod peer;
pub mod process;
pub mod releases;
pub mod reunion;
pub mod site;
pub mod small_disk;
pub mod strace;
pub mod tun;
pub mod wait;

pub use holdfast_tests_flags as flags;
