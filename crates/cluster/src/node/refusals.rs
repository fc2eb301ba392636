//! Refusals in the log. A peer can cause them as often as it likes, so each kind is logged once in
//! a while.

use crate::session::Refusal;
use ganger_proc_api::Instant;
use std::mem::{Discriminant, discriminant};
use std::time::Duration;

/// Refusals of the same kind are logged once in this time.
const PAUSE: Duration = Duration::from_secs(10);

/// The kinds of refusals of a peer that were logged.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Vec<Logged>);

#[derive(Debug)]
struct Logged {
    kind: Discriminant<Refusal>,
    at: Instant,
    /// Since then.
    left_out: u64,
}

impl Refusals {
    /// Returns how many of the kind were left out, if a line is due now.
    pub(crate) fn due(&mut self, why: &Refusal, now: Instant) -> Option<u64> {
        let kind = discriminant(why);
        let Some(logged) = self.0.iter_mut().find(|it| it.kind == kind) else {
            self.0.push(Logged {
                kind,
                at: now,
                left_out: 0,
            });
            return Some(0);
        };
        if now < logged.at + PAUSE {
            logged.left_out += 1;
            return None;
        }
        logged.at = now;
        Some(std::mem::take(&mut logged.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_due_once_in_a_while_and_counted() {
        let at = |seconds| Instant::from_nanos(0) + Duration::from_secs(seconds);
        let mut refusals = Refusals::default();
        let mut due = |why, seconds| refusals.due(&why, at(seconds));
        assert_eq!(due(Refusal::WrongProof, 0), Some(0));
        assert_eq!(due(Refusal::WrongProof, 1), None);
        assert_eq!(due(Refusal::NameTaken, 1), Some(0));
        assert_eq!(due(Refusal::WrongProof, 9), None);
        assert_eq!(due(Refusal::WrongProof, 10), Some(2));
        // The kind counts, and not the name.
        assert_eq!(due(Refusal::OtherCluster("one".into()), 10), Some(0));
        assert_eq!(due(Refusal::OtherCluster("two".into()), 11), None);
    }
}
