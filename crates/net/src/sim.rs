//! Simulated sockets, for a simulation of the scheduler: the code of users stays the same. A seed
//! decides when connections are late, partial, broken or cut, and when UDP packets are lost,
//! doubled or reordered. Signals come when the test raises them.
//!
//! A Unix socket makes no file: its path is free again after the close of the listener, and a path
//! without a listener refuses connections.

use crate::commands::by_number;
use crate::reactor::Reactor;
use crate::world::World;
pub use crate::world::{Faults, Site};
use ganger_sched::internal::HandleInternals as _;
use ganger_sched::{Builder, Handle};
use ganger_time::internal::OnTime;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Weak};

/// A network without a system, by the timers of its scheduler.
///
/// ```
/// use ganger_net::sim::{Faults, SimNet};
/// use ganger_net::{TcpListener, TcpStream};
/// use ganger_sim::Sim;
/// use ganger_task::Cx;
///
/// Sim::new(0).builder(SimNet::add_to).check_seeds(20, |rt| {
///     let net = SimNet::of(rt).unwrap();
///     net.set_faults(rt.choose(1 << 30) as u64, Faults::some());
///     net.enter(|| {
///         let task = rt.spawn(async |_: Cx| {
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
    reactor: Arc<Reactor>,
}

impl SimNet {
    fn new() -> Self {
        let world = Arc::new(World::default());
        let reactor = Reactor::simulated(Arc::clone(&world));
        Self { world, reactor }
    }

    /// The builder, with a simulated network.
    pub fn add_to(builder: Builder) -> Builder {
        builder.when_built(|scheduler| {
            by_number::register_handlers(scheduler.commands());
            let net = scheduler.extension(|_| Self::new());
            let on_time: Weak<Self> = Arc::downgrade(&net);
            net.world.attach(scheduler.timers().clone(), on_time);
            scheduler.at_halt(move || {
                net.world.detach();
                net.reactor.halt();
            });
        })
    }

    /// The simulated network of a scheduler, if it has one.
    #[must_use]
    pub fn of(scheduler: &Handle) -> Option<Arc<Self>> {
        scheduler.find_extension()
    }

    /// Calls `f` with this network as the network of the thread. A simulation steps inside.
    pub fn enter<R>(&self, f: impl FnOnce() -> R) -> R {
        self.reactor.enter(f)
    }

    /// Sets the faults from now on, and the seed that decides when they happen.
    pub fn set_faults(&self, seed: u64, faults: Faults) {
        self.world.set_faults(seed, faults);
    }

    /// Sets the addresses of a host name from now on: see [`resolve`](crate::resolve).
    pub fn set_host(&self, name: &str, addresses: &[IpAddr]) {
        self.world.set_host(name, addresses);
    }

    /// Cuts all connections to a listener in both directions, or joins them again. Bytes sent in a
    /// partition wait, and arrive after its end. UDP packets to and from the address are lost.
    pub fn partition(&self, site: impl Into<Site>, is_cut: bool) {
        self.world.partition(site.into(), is_cut);
    }

    /// Breaks all connections to a listener: both sides see `ConnectionReset`.
    pub fn reset(&self, listener: impl Into<Site>) {
        self.world.reset_all(listener.into());
    }

    /// Raises a signal, as if the system had sent it.
    #[cfg(unix)]
    pub fn raise(&self, signal: crate::os::signal::SignalKind) {
        self.world.raise(signal.as_raw());
    }

    pub(crate) fn reactor(&self) -> &Reactor {
        &self.reactor
    }

    /// The number of open sockets.
    #[must_use]
    pub fn sockets(&self) -> usize {
        self.reactor.sockets()
    }
}

impl OnTime for SimNet {
    fn fire(self: Arc<Self>) {
        let (events, expired) = self.world.fire();
        self.reactor.dispatch(events);
        self.reactor.end_late(expired);
    }
}

impl fmt::Debug for SimNet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimNet")
            .field("sockets", &self.sockets())
            .finish()
    }
}
