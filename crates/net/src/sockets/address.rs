//! Addresses as arguments.

use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// A value that names the address of a socket: an address, a pair of an IP address and a port, or a
/// text of both. For operations that look up hosts, such as
/// [`TcpStream::connect`](crate::TcpStream::connect), a text may have the name of a host.
pub trait ToAddress {
    /// Returns the address.
    ///
    /// # Errors
    /// `InvalidInput` when a text is not an address: the name of a host, for example.
    fn to_address(&self) -> io::Result<SocketAddr>;

    /// Returns the name of a host and the port, if the text has them.
    fn to_name(&self) -> Option<(&str, u16)> {
        None
    }
}

/// An address, or the name of a host with a port.
pub(crate) enum Target {
    Address(SocketAddr),
    Name(String, u16),
}

impl Target {
    pub(crate) fn of(address: &impl ToAddress) -> io::Result<Self> {
        match (address.to_address(), address.to_name()) {
            (Err(_), Some((name, port))) => Ok(Self::Name(name.to_owned(), port)),
            (address, _) => address.map(Self::Address),
        }
    }
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
            let text = format!(
                "invalid address: `{self}`; expected an IP address with a port, such as \
                 `10.0.0.1:80`, and `resolve` finds the addresses of a host"
            );
            io::Error::new(io::ErrorKind::InvalidInput, text)
        })
    }

    fn to_name(&self) -> Option<(&str, u16)> {
        let (host, port) = self.rsplit_once(':')?;
        let is_name = !host.is_empty() && !host.contains([':', '[', '/']);
        is_name.then_some((host, port.parse().ok()?))
    }
}

impl ToAddress for String {
    fn to_address(&self) -> io::Result<SocketAddr> {
        self.as_str().to_address()
    }

    fn to_name(&self) -> Option<(&str, u16)> {
        self.as_str().to_name()
    }
}

impl<A: ToAddress + ?Sized> ToAddress for &A {
    fn to_address(&self) -> io::Result<SocketAddr> {
        (**self).to_address()
    }

    fn to_name(&self) -> Option<(&str, u16)> {
        (**self).to_name()
    }
}
