//! The machine's acts as time passes.

use super::{Lease, Machine, Purpose, State};
use crate::store::StoreOp;
use ganger_proc_api::Instant;

impl Machine {
    /// Renews the lease, and tries again, where the time has come.
    pub(crate) fn tick(&mut self, now: Instant) {
        self.expire(now);
        if let Lease::Held(held) = &mut self.lease
            && held.renew_at <= now
        {
            if self.claims.is_empty() {
                return self.lapse();
            }
            let lease = held.id;
            held.renew_at = now + self.ttl / 5;
            self.ask(
                Purpose::Renew { lease, sent: now },
                StoreOp::Renew { lease },
            );
        }
        if self.retry_at.is_some_and(|at| at <= now) {
            self.retry_at = None;
            let mut unsure = Vec::new();
            let mut releasing = Vec::new();
            for (id, claim) in &self.claims {
                match claim.state {
                    State::Unsure => unsure.push(*id),
                    State::Releasing(revision) => releasing.push((*id, revision)),
                    _ => {}
                }
            }
            self.bury_all();
            unsure.into_iter().for_each(|id| self.create(id));
            for (id, revision) in releasing {
                let is_asked = |it: &Purpose| matches!(it, Purpose::Delete(of) if *of == id);
                if !self.asked.values().any(is_asked) {
                    self.delete(id, revision);
                }
            }
        }
    }
}
