//! Addresses in the place of arguments.

use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// What can be meant as the address of a socket: an address, a pair of an IP address and a port, or
/// a text of both. Nothing here asks for the names of hosts, which would block the thread.
pub trait ToAddress {
    /// The address.
    ///
    /// # Errors
    /// `InvalidInput` when a text is no address: the name of a host, for example.
    fn to_address(&self) -> io::Result<SocketAddr>;
}

impl ToAddress for SocketAddr {
    fn to_address(&self) -> io::Result<SocketAddr> {
        Ok(*self)
    }
}

impl ToAddress for SocketAddrV4 {
    fn to_address(&self) -> io::Result<SocketAddr> {
        Ok((*self).into())
    }
}

impl ToAddress for SocketAddrV6 {
    fn to_address(&self) -> io::Result<SocketAddr> {
        Ok((*self).into())
    }
}

impl<I: Copy + Into<IpAddr>> ToAddress for (I, u16) {
    fn to_address(&self) -> io::Result<SocketAddr> {
        Ok(SocketAddr::new(self.0.into(), self.1))
    }
}

impl ToAddress for str {
    fn to_address(&self) -> io::Result<SocketAddr> {
        self.parse().map_err(|_| {
            let text =
                format!("`{self}` is no IP address with a port: resolve names of hosts before");
            io::Error::new(io::ErrorKind::InvalidInput, text)
        })
    }
}

impl ToAddress for String {
    fn to_address(&self) -> io::Result<SocketAddr> {
        self.as_str().to_address()
    }
}

impl<A: ToAddress + ?Sized> ToAddress for &A {
    fn to_address(&self) -> io::Result<SocketAddr> {
        (**self).to_address()
    }
}
