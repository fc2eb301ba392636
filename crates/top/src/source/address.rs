//! The address of an endpoint, as a person writes it.

use crate::fault::Fault;
use std::fmt;
use std::str::FromStr;

/// The port of an endpoint without a wish.
const PORT: u16 = 7007;

/// The host and port of an endpoint.
///
/// ```
/// use ganger_top::Address;
///
/// for text in ["localhost", "localhost:7007", "http://localhost:7007/"] {
///     assert_eq!(text.parse::<Address>()?.to_string(), "localhost:7007");
/// }
/// assert_eq!("[::1]:80".parse::<Address>()?.port(), 80);
/// # Ok::<(), ganger_top::Fault>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Without brackets.
    host: String,
    port: u16,
}

impl Address {
    /// Returns the name or IP address of the machine.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl FromStr for Address {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        let wrong = || Fault::Address(text.chars().take(80).collect());
        if text.starts_with("https://") {
            return Err(Fault::Tls);
        }
        let rest = text.strip_prefix("http://").unwrap_or(text);
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = match rest.strip_prefix('[') {
            Some(rest) => {
                let (host, after) = rest.split_once(']').ok_or_else(wrong)?;
                let is_ip = host.parse::<std::net::Ipv6Addr>().is_ok();
                let port = match after.strip_prefix(':') {
                    Some(port) if is_ip => Some(port),
                    None if is_ip && after.is_empty() => None,
                    _ => return Err(wrong()),
                };
                (host, port)
            }
            None => match rest.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (rest, None),
            },
        };
        let is_part = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
        if !host.chars().all(is_part) || host.is_empty() && port.is_none() {
            return Err(wrong());
        }
        let port = match port {
            Some(port) => port.parse().map_err(|_| wrong())?,
            None => PORT,
        };
        let host = if host.is_empty() { "127.0.0.1" } else { host };
        let host = host.to_owned();
        Ok(Self { host, port })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        match host.contains(':') {
            true => write!(f, "[{host}]:{port}"),
            false => write!(f, "{host}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_is_written() {
        for (text, expected) in [
            ("127.0.0.1", "127.0.0.1:7007"),
            (":80", "127.0.0.1:80"),
            ("http://inside.example:1/", "inside.example:1"),
            ("[::1]", "[::1]:7007"),
            ("http://[::1]:9", "[::1]:9"),
        ] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), expected);
        }
        for wrong in [
            "", "http://", "a b", "a:b", "a:70000", "[::1", "[::1]9", "[x]:1", "a\r\nb", "a/b",
            "::1",
        ] {
            let error = wrong.parse::<Address>().unwrap_err();
            assert!(matches!(error, Fault::Address(_)), "{wrong:?}: {error}");
        }
        assert!(matches!("https://a".parse::<Address>(), Err(Fault::Tls)));
    }
}
