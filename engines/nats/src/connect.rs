//! Connections to a broker.

use crate::error::NatsError;
use crate::settings::{Auth, Settings, without_user};
use async_nats::rustls::crypto::{CryptoProvider, ring};
use async_nats::{
    Client, ConnectError, ConnectErrorKind, ConnectOptions, Event, ServerAddr, rustls,
};
use std::future::Future;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// Messages of the engine in the client's own queue.
const CLIENT_QUEUE: usize = 64;

/// Messages from the broker in the queue for the engine. A window of 1 MiB has fewer frames, even
/// of the shortest.
const SUBSCRIPTION: usize = 1 << 16;

/// The time of a server for its answer.
pub(crate) const ANSWER: Duration = Duration::from_secs(2);

/// The most time between two attempts. The client's own limit of 4 s would be more than half of the
/// time until a session is dead.
const BETWEEN: Duration = Duration::from_millis(400);

/// Connects a client, with its name for the broker and its subject for answers. Tries again until
/// the time is up, unless another attempt can't help.
pub(crate) async fn connect<F>(
    settings: &Settings,
    servers: &[ServerAddr],
    (name, answers): (&str, String),
    on_event: impl Fn(Event) -> F + Send + Sync + 'static,
) -> Result<Client, NatsError>
where
    F: Future<Output = ()> + Send + Sync + 'static,
{
    let options = options(settings).await?;
    let options = options
        .name(name)
        .custom_inbox_prefix(answers)
        .event_callback(on_event);
    let start = Instant::now();
    let mut attempt = 1;
    loop {
        let error = match options.clone().connect(servers).await {
            Ok(client) => return Ok(client),
            Err(error) => error,
        };
        if let Some(error) = hopeless(&error) {
            return Err(error);
        }
        let pause = between(attempt);
        attempt += 1;
        if start.elapsed() + pause >= settings.within {
            let servers: Vec<_> = settings.servers.split(',').map(without_user).collect();
            return Err(NatsError::Unreachable {
                servers: servers.join(", "),
                within: settings.within,
                why: error.to_string(),
            });
        }
        sleep(pause).await;
    }
}

async fn options(settings: &Settings) -> Result<ConnectOptions, NatsError> {
    let mut options = match &settings.auth {
        Auth::None => ConnectOptions::new(),
        Auth::Credentials(path) => {
            let options = ConnectOptions::with_credentials_file(path).await;
            options.map_err(|why| NatsError::Credentials {
                path: path.clone(),
                why,
            })?
        }
        Auth::Nkey(seed) => ConnectOptions::with_nkey(seed.clone()),
        Auth::User(name, password) => {
            ConnectOptions::with_user_and_password(name.clone(), password.clone())
        }
        Auth::Token(token) => ConnectOptions::with_token(token.clone()),
    };
    if CryptoProvider::get_default().is_none() {
        // The client asks for the default of the process. If another thread is faster, its choice
        // is as good.
        let _other = rustls::crypto::CryptoProvider::install_default(ring::default_provider());
    }
    if let Some(tls) = &settings.tls {
        options = options
            .require_tls(true)
            .add_root_certificates(tls.root.clone());
        if let Some((certificate, key)) = &tls.own {
            options = options.add_client_certificate(certificate.clone(), key.clone());
        }
    }
    if !settings.is_hidden() {
        // A broker may name servers on other machines.
        options = options.ignore_discovered_servers();
    }
    Ok(options
        .no_echo()
        .ping_interval(settings.ping)
        .connection_timeout(ANSWER)
        .client_capacity(CLIENT_QUEUE)
        .subscription_capacity(SUBSCRIPTION)
        // Subjects are made of escaped names.
        .skip_subject_validation(true)
        .reconnect_delay_callback(between))
}

/// Returns the error, if another attempt can't help.
fn hopeless(error: &ConnectError) -> Option<NatsError> {
    match error.kind() {
        ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
            Some(NatsError::Denied(error.to_string()))
        }
        ConnectErrorKind::Tls => Some(NatsError::Tls(error.to_string())),
        _ => None,
    }
}

/// Returns the pause before an attempt, by its number. Up to a half longer, so that the nodes of a
/// lost broker do not come back together.
fn between(attempt: usize) -> Duration {
    let Some(doublings) = attempt.checked_sub(2) else {
        return Duration::ZERO;
    };
    let doublings = u32::try_from(doublings).unwrap_or(u32::MAX).min(9);
    let pause = (Duration::from_millis(2) * (1 << doublings)).min(BETWEEN);
    pause + pause.mul_f64(fastrand::f64() / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound() {
        assert_eq!([between(0), between(1)], [Duration::ZERO; 2]);
        let bounds = |attempt, least: u64, most: u64| {
            let pause = between(attempt);
            let range = Duration::from_millis(least)..=Duration::from_millis(most);
            assert!(range.contains(&pause), "{attempt}: {pause:?}");
        };
        bounds(2, 2, 3);
        bounds(5, 16, 24);
        for attempt in [11, 100, usize::MAX] {
            bounds(attempt, 400, 600);
        }
    }
}
