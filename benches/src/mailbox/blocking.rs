//! A producer, and a consumer that sleeps while the queue is empty.

use super::contest::title;
use super::ganger::Ganger;
use super::payload::Payload;
use super::peers::{AsyncChannel, Crossbeam, Flume, Kanal, Std, Tokio};
use super::producers::{Producers, send_each};
use super::traits::Waits;
use crate::contest::{Contest, Run, nanoseconds};

/// The time of a message of a stream. The consumer sleeps whenever it is faster than the producers.
#[derive(Clone, Copy, Debug)]
pub struct Blocking {
    /// The number of messages.
    pub messages: u64,
}

impl Blocking {
    /// All queues whose consumer can sleep.
    #[must_use]
    pub fn contest<P: Payload>(self) -> Contest {
        let entrants = vec![
            self.entrant::<P, Ganger<P>>(),
            self.entrant::<P, Std<P>>(),
            self.entrant::<P, Crossbeam<P>>(),
            self.entrant::<P, Flume<P>>(),
            self.entrant::<P, Kanal<P>>(),
            self.entrant::<P, Tokio<P>>(),
            self.entrant::<P, AsyncChannel<P>>(),
        ];
        Contest::new(title::<P>("1 producer, blocking"), &["ns"], entrants)
    }

    fn entrant<P: Payload, M: Waits<P>>(self) -> (&'static str, Run) {
        let producers = Producers {
            producers: 1,
            each: self.messages,
        };
        let run = move || {
            let times = producers.run::<P, M>(send_each::<P, M>, |mailbox, tally, over| {
                while !tally.is_full(over) {
                    let Some(item) = mailbox.recv() else { break };
                    tally.add(item);
                }
            });
            vec![nanoseconds(times.wall, producers.messages())]
        };
        (M::NAME, Box::new(run))
    }
}
