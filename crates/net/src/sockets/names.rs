//! Names of hosts.

use super::blocking::blocking;
use crate::reactor::Reactor;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

/// The addresses of a host, each with that port. The system is asked for them, on a thread that
/// may block, so the process waits and its worker does not. A wait that is dropped before the
/// system is asked takes the question back.
///
/// An IP address is its own answer. In a simulation,
/// [`SimNet::set_host`](crate::sim::SimNet::set_host) says what names mean.
///
/// ```
/// # use ganger_net::Net;
/// # use ganger_sched::Scheduler;
/// # use ganger_task::{Cx, SpawnTask};
/// # let scheduler = Scheduler::builder().driver(Net::new()?).build()?;
/// # scheduler.start()?;
/// # let task = scheduler.spawn_task(async |_: Cx| {
/// let addresses = ganger_net::resolve("localhost", 80).await?;
/// assert!(addresses.iter().all(|it| it.ip().is_loopback() && it.port() == 80));
/// # Ok(()) })?;
/// # task.wait().into_result()?;
/// # Ok::<(), ganger_proc_api::BoxError>(())
/// ```
///
/// # Errors
/// Those of the system when there is no such host; `Other` outside of a process.
pub async fn resolve(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    addresses(host.to_owned(), port, None).await
}

/// As [`resolve`], within that time.
pub(crate) async fn addresses(
    host: String,
    port: u16,
    within: Option<Duration>,
) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    if let Some(world) = Reactor::current()?.world() {
        let hosts = world.host(&host).ok_or(io::ErrorKind::NotFound)?;
        return Ok(hosts
            .into_iter()
            .map(|host| SocketAddr::new(host, port))
            .collect());
    }
    let ask = move || Ok((&*host, port).to_socket_addrs()?.collect());
    blocking(within, ask).await
}
