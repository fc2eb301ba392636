//! Simulated sockets, for a simulation of the scheduler: the code of users is the same. Connections
//! are late, partial, broken and cut by the seed, and packets of UDP are lost, doubled and in
//! disorder. Signals come when the test raises them.
//!
//! Of sockets with paths, no file is made: the path is free again when its listener is closed, and
//! a path without a listener refuses connections.

mod datagrams;
mod end;
mod signals;
mod traffic;
mod world;

use crate::by_number;
use crate::net::Net;
pub(crate) use datagrams::SimUdp;
pub(crate) use end::{End, SimListening};
use ganger_sched::{Alarm, Builder, CommandRegistry, Handle, Instant, Seat, Source};
#[cfg_attr(not(unix), allow(unused_imports, reason = "there are no signals"))]
pub(crate) use signals::SimSignal;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
pub(crate) use world::World;

/// A network without a system: a source of a scheduler, by that scheduler's clock.
///
/// ```
/// use ganger_net::sim::{Faults, SimNet};
/// use ganger_net::{TcpListener, TcpStream};
/// use ganger_sim::Sim;
/// use ganger_task::{Cx, SpawnTask};
///
/// Sim::new(0).builder(SimNet::add_to).check_seeds(20, |rt| {
///     let net = SimNet::of(rt).unwrap();
///     net.set_faults(rt.choose(1 << 30) as u64, Faults::some());
///     net.enter(|| {
///         let task = rt.spawn_task(async |_: Cx| {
///             let listener = TcpListener::bind("10.0.0.1:80")?;
///             let client = TcpStream::connect("10.0.0.1:80").await?;
///             let (server, _) = listener.accept().await?;
///             client.write_all(b"hello").await?;
///             let mut buffer = [0; 5];
///             server.read_exact(&mut buffer).await?;
///             Ok(buffer == *b"hello")
///         });
///         assert_eq!(rt.wait(task.unwrap()).into_result().unwrap().as_bool(), Some(true));
///     });
/// });
/// ```
pub struct SimNet {
    world: Arc<World>,
    net: Net,
}

/// What the simulated network does to connections. By default nothing, and nothing takes time.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Faults {
    /// How long what is sent is under way. The bytes of a connection stay in order.
    pub latency: RangeInclusive<Duration>,
    /// Reads and writes move any part of what they could.
    pub partial: bool,
    /// How many of a million writes break the connection.
    pub resets: u32,
    /// How many of a million packets of UDP are lost.
    pub losses: u32,
    /// How many of a million packets of UDP arrive twice.
    pub duplicates: u32,
}

/// What a simulated socket is reached by.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Site {
    /// The address of a listener, or of a socket of UDP.
    Address(SocketAddr),
    /// The path of a listener.
    Path(PathBuf),
}

impl From<SocketAddr> for Site {
    fn from(address: SocketAddr) -> Self {
        Self::Address(address)
    }
}

impl From<&Path> for Site {
    fn from(path: &Path) -> Self {
        Self::Path(path.into())
    }
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            latency: Duration::ZERO..=Duration::ZERO,
            partial: false,
            resets: 0,
            losses: 0,
            duplicates: 0,
        }
    }
}

impl Faults {
    /// Up to 20 ms of latency, and partial reads and writes. No connection breaks, and no packet is
    /// lost.
    #[must_use]
    pub fn some() -> Self {
        Self {
            latency: Duration::ZERO..=Duration::from_millis(20),
            partial: true,
            ..Self::default()
        }
    }

    /// The same, and of a million writes so many break the connection.
    #[must_use]
    pub fn resets(self, resets: u32) -> Self {
        Self { resets, ..self }
    }

    /// The same, and of a million packets of UDP so many are lost.
    #[must_use]
    pub fn losses(self, losses: u32) -> Self {
        Self { losses, ..self }
    }

    /// The same, and of a million packets of UDP so many arrive twice.
    #[must_use]
    pub fn duplicates(self, duplicates: u32) -> Self {
        Self { duplicates, ..self }
    }

    /// The same with that latency.
    #[must_use]
    pub fn latency(self, latency: RangeInclusive<Duration>) -> Self {
        Self { latency, ..self }
    }
}

impl SimNet {
    /// A network for a scheduler that is to be built.
    #[must_use]
    pub fn new() -> Self {
        let world = Arc::new(World::default());
        let net = Net::simulated(Arc::clone(&world));
        Self { world, net }
    }

    /// The builder, with a simulated network.
    pub fn add_to(builder: Builder) -> Builder {
        builder.source(Arc::new(Self::new()))
    }

    /// The network that the scheduler was built with, if it was built with one.
    #[must_use]
    pub fn of(scheduler: &Handle) -> Option<Arc<Self>> {
        scheduler.source()
    }

    /// Calls `f` with this network as that of the thread. A simulation moves its actors inside.
    pub fn enter<R>(&self, f: impl FnOnce() -> R) -> R {
        self.net.enter(f)
    }

    /// What goes wrong from now on, and the seed that decides when.
    pub fn set_faults(&self, seed: u64, faults: Faults) {
        self.world.set_faults(seed, faults);
    }

    /// What a name of a host means from now on: see [`resolve`](crate::resolve).
    pub fn set_host(&self, name: &str, addresses: &[IpAddr]) {
        self.world.set_host(name, addresses);
    }

    /// Whether nothing passes on the connections to that listener, in both directions, from now on.
    /// What is sent meanwhile waits, and arrives when the partition is over. Packets of UDP to that
    /// address, and from it, are lost.
    pub fn partition(&self, site: impl Into<Site>, is_cut: bool) {
        self.world.partition(site.into(), is_cut);
    }

    /// Breaks all connections to that listener: both sides see `ConnectionReset`.
    pub fn reset(&self, listener: impl Into<Site>) {
        self.world.reset_all(listener.into());
    }

    /// Has a signal come, as if the system had sent it.
    #[cfg(unix)]
    pub fn raise(&self, signal: crate::SignalKind) {
        self.world.raise(signal.as_raw());
    }

    /// How many sockets there are.
    #[must_use]
    pub fn sockets(&self) -> usize {
        self.net.sockets()
    }
}

impl Default for SimNet {
    fn default() -> Self {
        Self::new()
    }
}

impl Source for SimNet {
    fn attach(&self, alarm: Alarm, commands: &CommandRegistry) {
        by_number::register(commands);
        self.world.attach(alarm);
    }

    fn deliver(&self, seat: Seat, now: Instant, most: usize) {
        let due = self.world.deliver(seat, now, most);
        self.net.reactor().tell_due(due);
    }

    fn detach(&self) {
        self.world.detach();
        self.net.reactor().detach();
    }
}

impl fmt::Debug for SimNet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimNet")
            .field("sockets", &self.sockets())
            .finish()
    }
}
