//! Messages of users' own types and the program's allocator.

use super::{ALLOCATED, alone, end};
use crate::support::*;
use ganger_proc_api::{Actor, Context, StepOutput, StepResult};
use ganger_sched::Address;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How often a token goes to and fro in a round.
const TRIPS: u64 = 10_000;

/// Forty bytes.
enum Token {
    To(Address<Token>),
    Left([u64; 4]),
}

/// Sends the token back, with a trip less to make.
struct Player {
    other: Option<Address<Token>>,
    rounds: Arc<AtomicU64>,
}

impl Actor for Player {
    type Message = Token;

    fn receive(&mut self, _: &Context, token: Token, _: &mut StepOutput) -> StepResult {
        match (token, &self.other) {
            (Token::To(other), _) => self.other = Some(other),
            (Token::Left([0, ..]), _) => {
                // Ordering: Release pairs with the Acquire of the test.
                self.rounds.fetch_add(1, Ordering::Release);
            }
            (Token::Left([left, rest @ ..]), Some(other)) => {
                let [a, b, c] = rest;
                other.send(Token::Left([left - 1, a, b, c]))?;
            }
            (Token::Left(_), None) => return Err("no other player".into()),
        }
        Ok(())
    }
}

// pins: P13
#[test]
fn messages_of_forty_bytes_are_sent_and_received_without_the_allocator() {
    assert_eq!(size_of::<Token>(), 40);
    let _alone = alone();
    let scheduler = start(1);
    let rounds = Arc::new(AtomicU64::new(0));
    let player = || Player {
        other: None,
        rounds: Arc::clone(&rounds),
    };
    let first = scheduler.spawn(player()).unwrap();
    let second = scheduler.spawn(player()).unwrap();
    first.send(Token::To(second.address().clone())).unwrap();
    second.send(Token::To(first.address().clone())).unwrap();
    let mut least = usize::MAX;
    for round in 1..=10 {
        // Ordering: Relaxed: counts, which are still while this thread looks.
        let before = ALLOCATED.load(Ordering::Relaxed);
        first.send(Token::Left([TRIPS, 1, 2, 3])).unwrap();
        // Ordering: Acquire pairs with the Release of the player.
        until("a round is over", || {
            rounds.load(Ordering::Acquire) == round
        });
        // Ordering: Relaxed: counts, which are still while this thread looks.
        least = least.min(ALLOCATED.load(Ordering::Relaxed) - before);
    }
    assert_eq!(least, 0, "of {TRIPS} messages and their values");
    for handle in [&first, &second] {
        scheduler.terminate(handle.pid()).unwrap();
    }
    assert!(!first.wait().is_done() && !second.wait().is_done());
    end(scheduler, Vec::new());
}
