//! Host names.

use super::blocking::blocking;
use crate::reactor::Reactor;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

/// Looks up the addresses of a host, each with the port. The system answers on a thread that may
/// block: the process waits and its worker does not. A wait dropped before the question is asked
/// revokes the question.
///
/// An IP address is its own answer. In a simulation,
/// [`SimNet::set_host`](crate::sim::SimNet::set_host) sets the answers.
///
/// ```
/// # use ganger_net::Net;
/// # use ganger_sched::Scheduler;
/// # use ganger_task::Cx;
/// # let scheduler = Scheduler::builder().driver(Net::new()?).build()?;
/// # scheduler.start()?;
/// # let task = scheduler.spawn(async |_: Cx| {
/// let addresses = ganger_net::resolve("localhost", 80).await?;
/// assert!(addresses.iter().all(|it| it.ip().is_loopback() && it.port() == 80));
/// # Ok(()) })?;
/// # task.wait().into_result()?;
/// # Ok::<(), ganger_proc_api::BoxError>(())
/// ```
///
/// # Errors
/// Errors of the system for an unknown host; `Other` outside of a process.
pub async fn resolve(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    addresses(host.to_owned(), port, None).await
}

/// Resolves a name as [`resolve`] does, within a time.
pub(crate) async fn addresses(
    host: String,
    port: u16,
    within: Option<Duration>,
) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    if let Some(world) = Reactor::current()?.world() {
        let hosts = world.host(&host).ok_or_else(|| {
            let text = format!("unknown host: `{host}`; `SimNet::set_host` sets its addresses");
            io::Error::new(io::ErrorKind::NotFound, text)
        })?;
        return Ok(hosts
            .into_iter()
            .map(|host| SocketAddr::new(host, port))
            .collect());
    }
    let ask = move || Ok((&*host, port).to_socket_addrs()?.collect());
    blocking(within, ask).await
}
