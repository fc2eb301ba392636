//! An endpoint over HTTP.

use super::Source;
use super::address::Address;
use super::http::Client;
use crate::fault::Fault;
use ganger_observe::api::{
    self, Acted, Groups, Letters, Nodes, Processes, ProcessesQuery, Snapshot, Sockets,
    SocketsQuery, Tree, Waits,
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use std::io::Write;
use std::time::Duration;

/// The most bytes of an answer of the API.
const ANSWER: u64 = 32 << 20;

/// The most bytes of a trace.
const TRACE: u64 = 1 << 30;

/// The time for an answer: the endpoint itself gives up after ten seconds.
const TIME: Duration = Duration::from_secs(15);

/// An endpoint of another program: see `ganger_observe::serve`.
///
/// ```no_run
/// use ganger_top::{Remote, Source as _};
///
/// let program = Remote::new("127.0.0.1:7007".parse()?, None)?;
/// println!("{} processes", program.snapshot()?.schedulers[0].live);
/// # Ok::<(), ganger_top::Fault>(())
/// ```
pub struct Remote {
    client: Client,
}

impl Remote {
    /// Creates an endpoint at an address. Does not connect yet.
    ///
    /// # Errors
    /// [`Fault::Token`], if the token has other characters than visible ASCII.
    pub fn new(address: Address, token: Option<String>) -> Result<Self, Fault> {
        let is_visible = |text: &String| text.bytes().all(|byte| byte.is_ascii_graphic());
        if !token.as_ref().is_none_or(is_visible) {
            return Err(Fault::Token);
        }
        let client = Client { address, token };
        Ok(Self { client })
    }

    fn ask<T: DeserializeOwned>(&self, path: &str, more: Duration) -> Result<T, Fault> {
        let mut json = Vec::new();
        self.client.get(path, ANSWER, TIME + more, &mut json)?;
        Ok(api::from_json(&json)?)
    }
}

impl Source for Remote {
    fn name(&self) -> String {
        self.client.address.to_string()
    }

    fn snapshot(&self) -> Result<Snapshot, Fault> {
        self.ask("/api/v1/snapshot", Duration::ZERO)
    }

    fn processes(&self, query: &ProcessesQuery) -> Result<Processes, Fault> {
        let path = format!("/api/v1/processes?{query}");
        self.ask(&path, query.window.unwrap_or_default())
    }

    fn process(&self, scheduler: u64, pid: &str) -> Result<Processes, Fault> {
        let pid = utf8_percent_encode(pid, NON_ALPHANUMERIC);
        let path = format!("/api/v1/process/{pid}?scheduler={scheduler}");
        self.ask(&path, Duration::ZERO)
    }

    fn groups(&self) -> Result<Groups, Fault> {
        self.ask("/api/v1/groups", Duration::ZERO)
    }

    fn tree(&self) -> Result<Tree, Fault> {
        self.ask("/api/v1/tree", Duration::ZERO)
    }

    fn waits(&self) -> Result<Waits, Fault> {
        self.ask("/api/v1/waits", Duration::ZERO)
    }

    fn sockets(&self, query: &SocketsQuery) -> Result<Sockets, Fault> {
        self.ask(&format!("/api/v1/sockets?{query}"), Duration::ZERO)
    }

    fn nodes(&self) -> Result<Nodes, Fault> {
        self.ask("/api/v1/nodes", Duration::ZERO)
    }

    fn letters(&self) -> Result<Letters, Fault> {
        self.ask("/api/v1/letters", Duration::ZERO)
    }

    fn act(&self, action: &str, scheduler: u64, pid: &str) -> Result<Acted, Fault> {
        let [pid, action] = [pid, action].map(|it| utf8_percent_encode(it, NON_ALPHANUMERIC));
        let path = format!("/api/v1/process/{pid}/{action}?scheduler={scheduler}");
        let mut json = Vec::new();
        self.client.post(&path, ANSWER, TIME, &mut json)?;
        Ok(api::from_json(&json)?)
    }

    fn trace(&self, time: Duration, to: &mut dyn Write) -> Result<(), Fault> {
        let path = format!("/trace?seconds={}", time.as_secs());
        self.client.get(&path, TRACE, TIME + time, to)
    }
}
