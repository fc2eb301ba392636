//! Simulated sockets, for a simulation of the scheduler: the code of users stays the same. A seed
//! decides when connections are late, partial, broken or cut, and when UDP packets are lost,
//! doubled or reordered. Signals come when the test raises them.
//!
//! A Unix socket makes no file: its path is free again after the close of the listener, and a path
//! without a listener refuses connections.

use crate::commands::by_number;
use crate::reactor::Reactor;
pub use crate::world::{Faults, Site};
use crate::world::{Sea, World};
use ganger_proc_api::NodeName;
use ganger_sched::internal::carrier::{Arrival, Carrier, Change};
use ganger_sched::internal::{Around, HandleInternals as _};
use ganger_sched::{Builder, Handle};
use ganger_time::internal::OnTime;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

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
    fn new(sea: &Arc<Sea>) -> Self {
        let world = Arc::new(sea.join());
        let reactor = Reactor::simulated(Arc::clone(&world));
        Self { world, reactor }
    }

    /// Returns the builder with a simulated network.
    pub fn add_to(builder: Builder) -> Builder {
        builder.when_built(|scheduler| Self::add_in(&Arc::default(), scheduler))
    }

    fn add_in(sea: &Arc<Sea>, scheduler: &Handle) {
        by_number::register_handlers(scheduler.commands());
        let net = scheduler.extension(|_| Self::new(sea));
        let on_time: Weak<Self> = Arc::downgrade(&net);
        let name = scheduler.node_name().map_or("", NodeName::as_str);
        net.world.attach(name, scheduler.timers().clone(), on_time);
        let around = Arc::downgrade(&net);
        let _first = scheduler.extension(|_| {
            Around::new(move |f| match around.upgrade() {
                Some(net) => net.enter(f),
                None => f(),
            })
        });
        scheduler.at_halt(move || {
            net.world.detach();
            net.reactor.halt();
        });
    }

    /// Returns the simulated network of a scheduler, if it has one.
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

    /// Returns the number of open sockets.
    #[must_use]
    pub fn sockets(&self) -> usize {
        self.reactor.sockets()
    }
}

/// A network without a system, between the machines of a simulation. A clone is the same network.
///
/// The machines share the addresses: no two listen at the same. Their names are those of the
/// schedulers' nodes, and lives of a machine have the same name.
///
/// ```
/// use ganger_net::sim::Lan;
/// use ganger_net::{TcpListener, TcpStream};
/// use ganger_sim::Sim;
/// use ganger_task::Cx;
/// use std::time::Duration;
///
/// Sim::new(0).check_worlds(20, |world| {
///     let lan = Lan::new();
///     let own = lan.clone();
///     world.builder(move |builder| own.add_to(builder));
///     world.carrier(lan);
///     world.start("server", |machine| {
///         let server = machine.spawn(async |_: Cx| {
///             let listener = TcpListener::bind("10.0.0.1:80")?;
///             let (client, _) = listener.accept().await?;
///             client.write_all(b"hello").await?;
///             Ok(())
///         });
///         server.unwrap();
///     });
///     world.run_for(Duration::from_millis(1));
///     world.start("client", |_| {});
///     let client = world.machine("client").spawn(async |_: Cx| {
///         let server = TcpStream::connect("10.0.0.1:80").await?;
///         let mut buffer = [0; 5];
///         server.read_exact(&mut buffer).await?;
///         Ok(buffer == *b"hello")
///     });
///     let client = world.machine("client").wait(client.unwrap());
///     assert_eq!(client.into_result().unwrap().as_bool(), Some(true));
/// });
/// ```
#[derive(Clone, Default)]
pub struct Lan(Arc<Sea>);

impl Lan {
    /// Creates a network without machines.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the builder of a machine, with its part of this network: [`SimNet::of`] gives the
    /// part.
    pub fn add_to(&self, builder: Builder) -> Builder {
        let sea = Arc::clone(&self.0);
        builder.when_built(move |scheduler| SimNet::add_in(&sea, scheduler))
    }

    /// Sets the faults of all machines from now on, and the seed that decides when they happen.
    pub fn set_faults(&self, seed: u64, faults: Faults) {
        self.0.set_faults(seed, faults);
    }

    /// Cuts the way from a machine to another, or joins it again. Bytes of connections wait, and
    /// arrive after the end of the cut. UDP packets are lost.
    pub fn cut(&self, from: &str, to: &str, is_cut: bool) {
        self.0.cut(from, to, is_cut);
    }

    /// Sets how much longer the way from a machine to another takes from now on.
    pub fn delay(&self, from: &str, to: &str, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.0.delay(from, to, nanos);
    }

    /// Takes a machine away at once: its addresses are free. With `resets` its connections break at
    /// their other ends, as when the program is killed. Without, nothing comes back until the
    /// machine starts again, as when its power fails.
    pub fn crash(&self, name: &str, resets: bool) {
        self.0.crash(name, resets);
    }
}

/// The network follows the test's acts on machines. A crashed machine resets its connections, as a
/// killed program: [`Lan::crash`] has the other way.
impl Carrier for Lan {
    fn set_now(&self, _: Duration) {}

    fn next_due(&self) -> Option<Duration> {
        None
    }

    fn take_due(&self) -> Option<Arrival> {
        None
    }

    fn changed(&self, change: Change<'_>) {
        match change {
            Change::Crashed(name) => self.crash(name, true),
            Change::Cut(from, to) => self.cut(from, to, true),
            Change::Healed(from, to) => self.cut(from, to, false),
            Change::Delayed(from, to, time) => self.delay(from, to, time),
            _ => {}
        }
    }
}

impl fmt::Debug for Lan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lan").finish_non_exhaustive()
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
