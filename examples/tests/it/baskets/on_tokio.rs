//! The service of `examples/baskets.rs` on tokio alone, to compare the two.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use std::collections::HashMap;
use std::future::IntoFuture;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// How long a stop may take.
const STOP: Duration = Duration::from_secs(10);
/// How many requests of a user may come at once.
const BURST: f64 = 20.0;

/// Puts an item into a basket, if it has a name. The answer is the content of the basket; `None`
/// when the user asks too often.
struct Ask(String, oneshot::Sender<Option<String>>);

struct Basket {
    items: String,
    per_second: f64,
    allowed: f64,
    since: Instant,
}

impl Basket {
    fn is_allowed(&mut self, now: Instant) -> bool {
        let earned = (now - self.since).as_secs_f64() * self.per_second;
        self.allowed = (self.allowed + earned).min(BURST);
        self.since = now;
        let is_allowed = self.allowed >= 1.0;
        self.allowed -= f64::from(u8::from(is_allowed));
        is_allowed
    }

    fn receive(&mut self, Ask(item, reply): Ask) {
        let is_allowed = self.is_allowed(Instant::now());
        if is_allowed && !item.is_empty() {
            self.items += &(item + "\n");
        }
        // The client may be gone.
        let _ = reply.send(is_allowed.then(|| self.items.clone()));
    }
}

#[derive(Clone)]
struct Baskets {
    idle: Duration,
    per_second: f64,
    all: Arc<Mutex<All>>,
}

type All = HashMap<String, mpsc::UnboundedSender<Ask>>;

impl Baskets {
    fn all(&self) -> MutexGuard<'_, All> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends under the lock, so that an eviction loses no message.
    fn send(&self, user: String, ask: Ask) {
        let mut all = self.all();
        let ask = match all.get(&user) {
            Some(basket) => match basket.send(ask) {
                Ok(()) => return,
                Err(error) => error.0, // Its task has panicked.
            },
            None => ask,
        };
        let (send, receive) = mpsc::unbounded_channel();
        let _ = send.send(ask);
        all.insert(user.clone(), send);
        tokio::spawn(self.clone().basket(user, receive));
    }

    async fn basket(self, user: String, mut asks: mpsc::UnboundedReceiver<Ask>) {
        let mut basket = Basket {
            items: String::new(),
            per_second: self.per_second,
            allowed: BURST,
            since: Instant::now(),
        };
        loop {
            match timeout(self.idle, asks.recv()).await {
                Ok(Some(ask)) => basket.receive(ask),
                Ok(None) => return,
                Err(_) => {
                    let mut all = self.all();
                    match asks.try_recv() {
                        Ok(ask) => basket.receive(ask),
                        Err(_) => {
                            all.remove(&user);
                            return;
                        }
                    }
                }
            }
        }
    }
}

type Answer = (StatusCode, String);

async fn basket(State(all): State<Baskets>, Path(user): Path<String>, item: String) -> Answer {
    let (reply, answer) = oneshot::channel();
    all.send(user, Ask(item, reply));
    match answer.await {
        Ok(Some(items)) => (StatusCode::OK, items),
        Ok(None) => (StatusCode::TOO_MANY_REQUESTS, "later\n".into()),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")),
    }
}

async fn health(State(all): State<Baskets>) -> String {
    format!("{} baskets\n", all.all().len())
}

pub(crate) struct Server {
    ask: watch::Sender<()>,
    ended: JoinHandle<std::io::Result<()>>,
}

/// Starts the service, and returns its server. `idle` is how long a basket is kept whose user asks
/// for nothing.
pub(crate) fn start(
    listener: std::net::TcpListener,
    (idle, per_second): (Duration, f64),
) -> Result<Server, BoxError> {
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let all = Arc::default();
    let router = Router::new()
        .route("/baskets/{user}", get(basket).post(basket))
        .route("/health", get(health))
        .with_state(Baskets {
            idle,
            per_second,
            all,
        });
    let (ask, mut asked) = watch::channel(());
    let server = axum::serve(listener, router).with_graceful_shutdown(async move {
        let _ = asked.changed().await;
    });
    let ended = tokio::spawn(server.into_future());
    Ok(Server { ask, ended })
}

/// Stops the server. A late answer is an error.
pub(crate) async fn stop(server: Server) -> Result<(), BoxError> {
    server.ask.send(())?;
    Ok(timeout(STOP, server.ended).await???)
}

/// Runs the service as a program. The runtime has a thread for each core.
#[allow(dead_code, reason = "to count its lines beside the other's")]
pub(crate) fn main() -> Result<(), BoxError> {
    let listener = std::net::TcpListener::bind("127.0.0.1:8080")?;
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let server = start(listener, (Duration::from_secs(600), 10.0))?;
        tokio::signal::ctrl_c().await?;
        stop(server).await
    })
}
