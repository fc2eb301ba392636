//! A service by axum: an actor for each user, ended when it is idle; a limit of a user's requests;
//! health; an end that cuts no client off. `cargo run -p ganger-examples --features baskets --bin
//! baskets`, and then `curl -d apple localhost:8080/baskets/ann`, `curl localhost:8080/health`;
//! Ctrl-C stops it.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use ganger::keyed::Keyed;
use ganger::lock::RateLimiter;
use ganger::prelude::*;
use ganger::tokio::{Tokio, serve, shutdown_signal};
use std::time::Duration;
use tokio::net::TcpListener;

/// How many requests of a user may come at once.
const BURST: u32 = 20;

/// Puts an item into a basket, if it has a name. The answer is the content of the basket; `None`
/// when the user asks too often.
struct Ask(String, Reply<Option<String>>);

struct Basket {
    items: String,
    limiter: RateLimiter,
}

impl Actor for Basket {
    type Message = Ask;

    fn receive(&mut self, _: &Context, ask: Ask, _: &mut StepOutput) -> StepResult {
        let Ask(item, reply) = ask;
        let is_allowed = self.limiter.try_acquire(1).is_ok();
        if is_allowed && !item.is_empty() {
            self.items += &(item + "\n");
        }
        reply.complete(is_allowed.then(|| self.items.clone()));
        Ok(())
    }
}

type Baskets = Keyed<Ask>;
type Answer = (StatusCode, String);

async fn basket(State(all): State<Baskets>, Path(user): Path<String>, item: String) -> Answer {
    match all.of(user).call(|reply| Ask(item, reply)).await {
        Ok(Some(items)) => (StatusCode::OK, items),
        Ok(None) => (StatusCode::TOO_MANY_REQUESTS, "later\n".into()),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")),
    }
}

async fn health(State(all): State<Baskets>) -> String {
    format!("{} baskets\n", all.len())
}

/// Starts the service. `idle` is how long a basket is kept whose user asks for nothing.
pub(crate) fn start(
    scheduler: &Scheduler,
    listener: std::net::TcpListener,
    (idle, per_second): (Duration, f64),
) -> Result<(), BoxError> {
    let handle = scheduler.handle();
    let baskets = scheduler.kind("basket").start(move |_, _| Basket {
        items: String::new(),
        limiter: RateLimiter::new(&handle, per_second, BURST),
    });
    let router = Router::new()
        .route("/baskets/{user}", get(basket).post(basket))
        .route("/health", get(health))
        .with_state(baskets.idle_after(idle).build());
    listener.set_nonblocking(true)?;
    scheduler.spawn(async |_: Cx| Ok(serve(TcpListener::from_std(listener)?, router).await?))?;
    Ok(())
}

fn main() -> Result<(), BoxError> {
    let listener = std::net::TcpListener::bind("127.0.0.1:8080")?;
    let scheduler = Scheduler::builder().driver(Tokio::new()?).start()?;
    start(&scheduler, listener, (Duration::from_secs(600), 10.0))?;
    let asked = scheduler.spawn(async |_: Cx| Ok(shutdown_signal().await?))?;
    asked.wait().into_result()?;
    // The baskets end last, so that each request has its answer.
    println!("{:?}", scheduler.stop(Duration::from_secs(10))?);
    Ok(())
}
