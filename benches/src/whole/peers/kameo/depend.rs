//! A supervised actor. A restarted actor has the mailbox of the actor before it.

use super::{Kameo, start};
use crate::whole::contestant::Timed;
use crate::whole::gate::Gate;
use ::kameo::Actor;
use ::kameo::actor::{ActorRef, Spawn};
use ::kameo::error::Infallible;
use ::kameo::mailbox;
use ::kameo::message::{Context, Message};
use ::kameo::supervision::RestartPolicy;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub(super) fn restart(kameo: &Kameo, restarts: u64) -> Timed {
    let _inside = kameo.enter();
    let gate = kameo.gate;
    let left = Arc::new(AtomicU64::new(restarts));
    let supervisor = start::<Supervisor>(());
    let its = supervisor.clone();
    let child = async move {
        let make = move || (Arc::clone(&left), restarts, gate);
        Failing::supervise_with(&its, make)
            .restart_policy(RestartPolicy::Transient)
            .restart_limit(u32::MAX, Duration::from_secs(1))
            .spawn_with_mailbox(mailbox::unbounded())
            .await
    };
    gate.time(1, || {
        drop(kameo.runtime.spawn(child));
        Ok(())
    })
}

/// Restarts its child alone. Ends with the last reference.
struct Supervisor;

impl Actor for Supervisor {
    type Args = ();
    type Error = Infallible;

    async fn on_start((): (), _: ActorRef<Self>) -> Result<Self, Infallible> {
        Ok(Self)
    }
}

/// Fails at its first message, which it sends itself, while any failures are left.
struct Failing {
    left: Arc<AtomicU64>,
    restarts: u64,
    gate: &'static Gate,
}

/// It fails.
#[derive(Debug)]
struct Failed;

struct Begin;

impl Actor for Failing {
    type Args = (Arc<AtomicU64>, u64, &'static Gate);
    type Error = Infallible;

    async fn on_start(
        (left, restarts, gate): Self::Args,
        this: ActorRef<Self>,
    ) -> Result<Self, Infallible> {
        this.tell(Begin).await.expect("it has just been started");
        Ok(Self {
            left,
            restarts,
            gate,
        })
    }
}

impl Message<Begin> for Failing {
    type Reply = Result<(), Failed>;

    async fn handle(&mut self, _: Begin, ctx: &mut Context<Self, Self::Reply>) -> Self::Reply {
        // Ordering: Relaxed: a single actor at a time, and each is started by the end of the actor
        // before it.
        let left = self.left.load(Ordering::Relaxed);
        if left > 0 {
            self.left.store(left - 1, Ordering::Relaxed);
            return Err(Failed);
        }
        self.gate.hit_with(self.restarts);
        ctx.stop();
        Ok(())
    }
}
