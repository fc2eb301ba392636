//! The endpoint: the schedulers of a program, shown over HTTP.
//!
//! **Problem.** A program whose workers are all stuck is the program to look into. So no part of
//! the endpoint runs on an observed scheduler.
//!
//! **Protocol.** The endpoint has a scheduler of its own, with one worker and its own network. A
//! process accepts, and each connection is a process (`connection`), which hyper serves. A request
//! passes the limits and the checks (`limits`, `access`), and has its answer from `routes`. Answers
//! of the API come from handles (`look`), which wait for no worker. Processes make the costly
//! answers, once for all viewers at a moment: snapshots (`maker`), answers that take a look at all
//! processes (`passes`), and those that take two looks (`windows`).
//!
//! **Memory** is bounded by the limits: connections, their buffers, an answer each.

mod access;
mod actions;
mod answer;
mod connection;
mod events;
mod limits;
mod look;
mod maker;
mod observed;
mod page;
mod passes;
mod process;
#[cfg_attr(not(feature = "profile"), path = "no_profile.rs")]
mod profile;
mod recent;
mod routes;
mod site;
mod stream;
#[cfg(test)]
mod tests;
mod traces;
mod windows;

use access::Access;
use ganger_net::{Net, TcpListener};
use ganger_proc_api::BoxError;
use ganger_sched::{ContextExt as _, Handle, Scheduler, StartError};
use ganger_task::Cx;
use observed::Observed;
use passes::Watched;
use site::Site;
use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

/// Begins to show schedulers over HTTP at an address, such as `127.0.0.1:7007`. Port 0 is any free
/// port.
///
/// ```
/// use ganger_sched::Scheduler;
///
/// let scheduler = Scheduler::start_default()?;
/// let endpoint = ganger_observe::serve("127.0.0.1:0").scheduler(&scheduler).start()?;
/// println!("http://{}/", endpoint.address());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The endpoint has one thread and a network of its own, and answers while all workers of the
/// observed schedulers are stuck. The endpoint only reads, unless the program [allows
/// actions](Serve::allow_actions), and shows no payload of a message. The endpoint looks at
/// processes at a pace of a small part of a core, once for all viewers with a question at the
/// moment.
///
/// | path | answer |
/// |---|---|
/// | `/` | a page that shows all of this live |
/// | `/paths` | a list of the paths |
/// | `/healthz` | 200: alive |
/// | `/readyz` | 200 when all schedulers run without a severe alarm, or 503 and why |
/// | `/metrics` | all metrics, as Prometheus reads them |
/// | `/api/v1/snapshot` | [`Snapshot`], a new one; `?since=` may have the number of the last |
/// | `/api/v1/processes` | [`Processes`], by a [`ProcessesQuery`] |
/// | `/api/v1/process/{pid}` | [`Processes`] with a single process; `?scheduler=` says of which |
/// | `…/{pid}/cancel`, `…/terminate`, `…/restart` | by `POST`, where allowed: [`Acted`] |
/// | `…/{pid}/state` | [`Inspected`], where the scheduler allows interventions |
/// | `…/{pid}/events` | [`ProcessEvents`], the last `?n=` of a scheduler that records |
/// | `…/{pid}/suspend`, `…/{pid}/resume` | as these, where the scheduler allows it, too |
/// | `/api/v1/groups` | [`Groups`]: processes that are alike |
/// | `/api/v1/tree` | [`Tree`]: supervisors, and what processes have started |
/// | `/api/v1/waits` | [`Waits`]: see [`watch_waits`](Serve::watch_waits) |
/// | `/api/v1/events` | server-sent events: a [`Snapshot`] a second, or `?every=` 250ms to 60s |
/// | `/api/v1/letters` | [`Letters`] |
/// | `/api/v1/nodes` | [`Nodes`]: the cluster, by the feature `cluster` |
/// | `/api/v1/sockets` | [`Sockets`], by a [`SocketsQuery`], where `ganger-net` drives |
/// | `/trace` | the last `?seconds=` of a flight recorder, for Perfetto |
/// | `/profile` | a file for pprof, or folded stacks, by the feature `profile` |
/// | `/login` | takes the token, and gives a cookie for it |
///
/// **Access.** On a loopback address all users of the machine may ask, unless a
/// [`token`](Serve::token) is set; another address needs a token. With a token, all paths but
/// `/healthz`, `/readyz` and `/login` need `Authorization: Bearer TOKEN` or the cookie of a login;
/// `/readyz` tells the text of an alarm by the token alone.
/// The connection is not encrypted. A `Host` that is no IP address, not `localhost` and no
/// [`host`](Serve::host) gets 421, and a request of another page 403, and so does a link from
/// another page to `/profile` or `/trace`.
///
/// **Limits.** 64 connections; further connections get 503. Heads of 8 KiB (431) and bodies of 64
/// KiB (413), each within 5 s (408). The endpoint makes an answer within 10 s (503), and the client
/// reads the answer within 10 s. A profile takes its seconds, 60 at the most, and a scheduler has
/// one at a time (409). Windows follow each other, and 8 different ones wait (503). The work for an
/// answer ends when its client goes. A refused request gets a sentence with advice.
///
/// [`Snapshot`]: crate::api::Snapshot
/// [`Processes`]: crate::api::Processes
/// [`ProcessesQuery`]: crate::api::ProcessesQuery
/// [`Groups`]: crate::api::Groups
/// [`Tree`]: crate::api::Tree
/// [`Waits`]: crate::api::Waits
/// [`Letters`]: crate::api::Letters
/// [`Nodes`]: crate::api::Nodes
/// [`Sockets`]: crate::api::Sockets
/// [`SocketsQuery`]: crate::api::SocketsQuery
/// [`Acted`]: crate::api::Acted
/// [`Inspected`]: crate::api::Inspected
/// [`ProcessEvents`]: crate::api::ProcessEvents
pub fn serve(address: impl ToSocketAddrs) -> Serve {
    Serve {
        addresses: address.to_socket_addrs().map(Iterator::collect),
        observed: Observed::default(),
        hosts: Vec::new(),
        token: None,
        watched: None,
        acts: false,
    }
}

/// An endpoint before its start: see [`serve`].
#[must_use = "`start` starts it"]
pub struct Serve {
    addresses: io::Result<Vec<SocketAddr>>,
    observed: Observed,
    hosts: Vec<String>,
    token: Option<String>,
    watched: Option<Watched>,
    acts: bool,
}

/// A running endpoint, until it is dropped. The drop ends its connections.
pub struct Endpoint {
    /// Dropped first.
    scheduler: Scheduler,
    observed: Arc<Observed>,
    address: SocketAddr,
}

/// Why an endpoint does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The address is none, or can't be listened at.
    #[error("can't listen at the address of the endpoint: {0}; choose a free port of this machine")]
    Address(#[source] io::Error),
    /// Other machines may reach the address.
    #[error("other machines may reach {0}: set a secret by `Serve::token`, or listen at 127.0.0.1")]
    TokenNeeded(SocketAddr),
    /// Actions are allowed without a token.
    #[error(
        "an endpoint that may end processes needs a token, at 127.0.0.1 too: set a secret by \
         `Serve::token`, or leave out `Serve::allow_actions`"
    )]
    TokenNeededToAct,
    /// The token is too weak or has other characters.
    #[error(
        "a token has 16 to 256 visible ASCII characters: take the output of `openssl rand -hex 16`"
    )]
    Token,
    /// The system refuses a poller.
    #[error("no network for the endpoint: {0}; check the limit of open files")]
    Network(#[source] io::Error),
    /// The scheduler of the endpoint does not start.
    #[error("no scheduler for the endpoint: {0}")]
    Start(#[source] BoxError),
}

impl Serve {
    /// Shows a scheduler. The endpoint does not keep it running, nor its memory.
    pub fn scheduler(self, scheduler: &Handle) -> Self {
        self.observed.add(scheduler);
        self
    }

    /// Takes requests for that host as well, such as `inside.example.org`, without a port.
    pub fn host(mut self, name: impl AsRef<str>) -> Self {
        self.hosts.push(name.as_ref().to_ascii_lowercase());
        self
    }

    /// Needs a token: 16 to 256 visible ASCII characters, chosen at random.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Has the program register its waits from now on, until the endpoint is dropped: for locks,
    /// channels, answers, room in mailboxes and ends. Without this, they are registered from the
    /// first question for `/api/v1/waits` on, and the parties of older waits are not known.
    ///
    /// Meanwhile a wait that sleeps takes a lock of the program twice, and a call costs an
    /// allocation.
    pub fn watch_waits(mut self) -> Self {
        self.watched.get_or_insert_with(Watched::begin);
        self
    }

    /// Lets clients end processes: a `POST` to `/api/v1/process/{pid}/cancel` is a
    /// [`Handle::cancel`], and one to `/terminate` a [`Handle::terminate`]. Without this, the
    /// endpoint only reads. It needs a [`token`](Self::token), on loopback too.
    ///
    /// So a supervisor starts a child again that is terminated, unless the child is temporary, and
    /// counts the restart as one after a failure. A cancelled child that ends is not started again.
    /// Each action is an event of `tracing`, with the target `ganger::observe`.
    ///
    /// ```
    /// use ganger_sched::Scheduler;
    ///
    /// # let secret = "0123456789abcdef";
    /// let scheduler = Scheduler::start_default()?;
    /// let endpoint = ganger_observe::serve("127.0.0.1:0").token(secret).allow_actions();
    /// let endpoint = endpoint.scheduler(&scheduler).start()?;
    /// // curl -X POST -H "authorization: Bearer $TOKEN" \
    /// //     "localhost:7007/api/v1/process/main%7C4294967296/terminate"
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn allow_actions(mut self) -> Self {
        self.acts = true;
        self
    }

    /// Starts the endpoint. Returns when it listens.
    ///
    /// # Errors
    /// [`ServeError`]. Nothing is left running then.
    pub fn start(self) -> Result<Endpoint, ServeError> {
        if let Some(token) = &self.token
            && !(limits::TOKEN.contains(&token.len())
                && token.bytes().all(|byte| byte.is_ascii_graphic()))
        {
            return Err(ServeError::Token);
        }
        if self.acts && self.token.is_none() {
            return Err(ServeError::TokenNeededToAct);
        }
        let net = Net::new().map_err(ServeError::Network)?;
        let addresses = self.addresses.map_err(ServeError::Address)?;
        let listener = listen(&net, &addresses, self.token.is_some())?;
        let address = listener.local_addr().map_err(ServeError::Address)?;
        let access = Access::new(self.hosts, self.token, address.port()).acting(self.acts);
        let observed = Arc::new(self.observed);
        let scheduler = Scheduler::builder()
            .workers(1)
            .host("observe")
            .max_spares(0)
            .step_limits(limits::STEP, limits::STEP)
            .thread_name("ganger-observe")
            .report_every(Duration::ZERO)
            .shutdown_deadline(Duration::from_secs(1))
            .driver(net)
            .build()
            .map_err(|error| ServeError::Start(error.into()))?;
        scheduler
            .start()
            .map_err(|error: StartError| ServeError::Start(error.into()))?;
        let (shown, watched) = (Arc::clone(&observed), self.watched);
        let server = async move |cx: Cx| run(cx, listener, access, shown, watched).await;
        let started = scheduler.spawn(server);
        started.map_err(|error| ServeError::Start(error.into()))?;
        Ok(Endpoint {
            scheduler,
            observed,
            address,
        })
    }
}

/// Listens at the first address that can be listened at.
fn listen(net: &Net, addresses: &[SocketAddr], has_token: bool) -> Result<TcpListener, ServeError> {
    let mut last = io::Error::new(io::ErrorKind::InvalidInput, "no address");
    for &address in addresses {
        if !has_token && !address.ip().to_canonical().is_loopback() {
            return Err(ServeError::TokenNeeded(address));
        }
        match net.enter(|| TcpListener::bind(address)) {
            Ok(listener) => return Ok(listener),
            Err(error) => last = error,
        }
    }
    Err(ServeError::Address(last))
}

/// The processes of an endpoint without connections.
const OWN: usize = 5;

/// Runs the process of the endpoint.
async fn run(
    cx: Cx,
    listener: TcpListener,
    access: Access,
    observed: Arc<Observed>,
    watched: Option<Watched>,
) -> Result<(), BoxError> {
    let shown = || Arc::clone(&observed);
    let (made, passed, windowed) = (shown(), shown(), shown());
    let allowed = actions::allowed(&access);
    let maker = cx.spawn(move |cx: Cx<maker::Ask>| maker::run(cx, made, allowed))?;
    let asked = maker.clone();
    let site = Site {
        maker,
        events: cx.spawn(move |cx: Cx<stream::Join>| events::run(cx, asked))?,
        streams: stream::Places::default(),
        passes: cx.spawn(move |cx: Cx<passes::Ask>| passes::run(cx, passed, watched))?,
        windows: cx.spawn(move |cx: Cx<windows::Ask>| windows::run(cx, windowed))?,
        tracing: Arc::default(),
        access,
        observed,
    };
    let site = Arc::new(site);
    connection::accept(cx, listener, site).await
}

impl Endpoint {
    /// Returns the address at which the endpoint listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Shows a further scheduler. A second call with the same scheduler changes nothing.
    pub fn add(&self, scheduler: &Handle) {
        self.observed.add(scheduler);
    }
}

impl fmt::Debug for Serve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serve")
            .field("addresses", &self.addresses)
            .field("hosts", &self.hosts)
            .field("acts", &self.acts)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("address", &self.address)
            .field(
                "connections",
                &self.scheduler.stats().live.saturating_sub(OWN),
            )
            .finish_non_exhaustive()
    }
}
