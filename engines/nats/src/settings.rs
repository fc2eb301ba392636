//! The settings of the engine, and their check.

use crate::error::NatsError;
use crate::notice::Notice;
use async_nats::ServerAddr;
use ganger_cluster::MAX_NAME;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How the node proves its user to the broker.
#[derive(Clone, Default)]
pub(crate) enum Auth {
    #[default]
    None,
    Credentials(PathBuf),
    Nkey(String),
    User(String, String),
    Token(String),
}

#[derive(Debug, Clone)]
pub(crate) struct Tls {
    pub(crate) root: PathBuf,
    /// The own certificate and its key.
    pub(crate) own: Option<(PathBuf, PathBuf)>,
}

type Callback = Arc<dyn Fn(&Notice) + Send + Sync>;

#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) servers: String,
    pub(crate) cluster: String,
    pub(crate) auth: Auth,
    pub(crate) tls: Option<Tls>,
    pub(crate) is_insecure: bool,
    pub(crate) room: usize,
    pub(crate) beacon: Duration,
    pub(crate) ping: Duration,
    pub(crate) within: Duration,
    pub(crate) on_notice: Option<Callback>,
}

impl Settings {
    pub(crate) fn new(servers: String) -> Self {
        Self {
            servers,
            cluster: "ganger".to_owned(),
            auth: Auth::None,
            tls: None,
            is_insecure: false,
            room: 2 << 20,
            beacon: Duration::from_secs(1),
            ping: Duration::from_secs(1),
            within: Duration::from_secs(5),
            on_notice: None,
        }
    }

    /// Returns the servers, if the settings may be used.
    pub(crate) fn checked(&self) -> Result<Vec<ServerAddr>, NatsError> {
        let texts = self.servers.split(',').map(str::trim);
        let servers = texts.filter(|it| !it.is_empty()).map(|text| {
            text.parse::<ServerAddr>().map_err(|why| NatsError::Server {
                server: without_user(text),
                why,
            })
        });
        let servers: Vec<ServerAddr> = servers.collect::<Result<_, _>>()?;
        if servers.is_empty() {
            return Err(NatsError::NoServer);
        }
        if !(1..=MAX_NAME).contains(&self.cluster.len()) {
            return Err(NatsError::Cluster(self.cluster.len()));
        }
        let is_open = |it: &&ServerAddr| !it.tls_required() && !is_loopback(it.host());
        if !self.is_hidden()
            && let Some(server) = servers.iter().find(is_open)
        {
            return Err(NatsError::Insecure(server.host().to_owned()));
        }
        Ok(servers)
    }

    /// Returns whether a server on another machine may be used.
    pub(crate) fn is_hidden(&self) -> bool {
        self.tls.is_some() || self.is_insecure
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse().is_ok_and(|it: IpAddr| it.is_loopback())
}

/// Without secrets.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let auth = match &self.auth {
            Auth::None => "none",
            Auth::Credentials(_) => "credentials",
            Auth::Nkey(_) => "nkey",
            Auth::User(..) => "user",
            Auth::Token(_) => "token",
        };
        let servers = self.servers.split(',').map(without_user);
        f.debug_struct("Nats")
            .field("servers", &servers.collect::<Vec<_>>())
            .field("cluster", &self.cluster)
            .field("auth", &auth)
            .field("tls", &self.tls)
            .finish_non_exhaustive()
    }
}

/// Returns the address without name and password.
pub(crate) fn without_user(server: &str) -> String {
    let server = server.trim();
    let (scheme, rest) = server.split_once("://").unwrap_or(("nats", server));
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    format!("{scheme}://{host}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(servers: &str) -> Settings {
        Settings::new(servers.to_owned())
    }

    #[test]
    fn a_list_of_servers_has_commas() {
        let servers = settings("nats://localhost:1, 127.0.0.1:2,").checked();
        let ports: Vec<u16> = servers.unwrap().iter().map(ServerAddr::port).collect();
        assert_eq!(ports, [1, 2]);
        assert!(matches!(settings(" ,").checked(), Err(NatsError::NoServer)));
        let wrong = settings("http://localhost").checked().unwrap_err();
        assert!(
            wrong.to_string().starts_with("\"http://localhost\" is not"),
            "{wrong}"
        );
    }

    #[test]
    fn another_machine_needs_tls_or_a_word() {
        let loopback = "nats://localhost,nats://127.0.0.2:4222,nats://[::1]";
        assert_eq!(settings(loopback).checked().unwrap().len(), 3);
        for far in ["nats://10.0.0.1", "nats://localhost,broker", "nats://[::2]"] {
            let error = settings(far).checked().unwrap_err();
            assert!(matches!(error, NatsError::Insecure(_)), "{far}: {error}");
            let mut said = settings(far);
            said.is_insecure = true;
            said.checked().unwrap();
            let mut hidden = settings(far);
            hidden.tls = Some(Tls {
                root: "ca.pem".into(),
                own: None,
            });
            hidden.checked().unwrap();
        }
        settings("tls://broker").checked().unwrap();
    }

    #[test]
    fn no_secret_is_shown() {
        let mut settings = settings("nats://user:secret@broker:4222,tls://b");
        settings.auth = Auth::Nkey("SUSECRET".to_owned());
        let shown = format!("{settings:?}");
        assert!(
            shown.contains("nats://broker:4222") && shown.contains("tls://b"),
            "{shown}"
        );
        assert!(!shown.to_lowercase().contains("secret"), "{shown}");
        // Each is no address: a scheme, a port, and the middle of a list.
        for wrong in [
            "http://user:secret@broker",
            "nats://user:secret@broker:port",
            "nats://a,tls://user:s@cret@broker:70000",
        ] {
            let error = Settings::new(wrong.to_owned()).checked().unwrap_err();
            let shown = format!("{error} {error:?}");
            assert!(
                shown.contains("broker") && !shown.contains("cret"),
                "{shown}"
            );
        }
    }
}
