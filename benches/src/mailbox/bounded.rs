//! Bounded channels at capacity: producers that wait for room, and a consumer that sleeps while the
//! channel is empty.
//!
//! Producers make strings and the consumer drops them, as programs do. The number of producers
//! decides which side is faster.

use crate::contest::cpu::Clocks;
use crate::contest::{Contest, Run, nanoseconds};
use std::sync::Barrier;
use std::thread;

/// The time of a string, from the first send to the last receive.
#[derive(Clone, Copy)]
pub(super) struct Bounded {
    /// How many strings a channel has room for.
    pub(super) capacity: usize,
    /// How many threads send.
    pub(super) producers: usize,
    /// How many strings each sends.
    pub(super) each: usize,
}

/// The consumer's side of a bounded channel of strings.
trait Channel: Sized + 'static {
    const NAME: &'static str;
    type Sender: Clone + Send + 'static;

    fn with_room(capacity: usize) -> (Self::Sender, Self);
    fn send(sender: &Self::Sender, item: String);
    fn recv(&mut self) -> Option<String>;
}

/// Implements [`Channel`] for a package, whose channels have the same methods.
macro_rules! channel {
    ($package:ident, $name:literal) => {
        impl Channel for $package::Receiver<String> {
            const NAME: &'static str = $name;
            type Sender = channel!(@sender $package);

            fn with_room(capacity: usize) -> (Self::Sender, Self) {
                $package::bounded(capacity)
            }

            fn send(sender: &Self::Sender, item: String) {
                assert!(sender.send(item).is_ok(), "the consumer is gone");
            }

            fn recv(&mut self) -> Option<String> {
                Self::recv(self).ok()
            }
        }
    };
    (@sender ganger_mpsc) => { ganger_mpsc::BoundedSender<String> };
    (@sender $package:ident) => { $package::Sender<String> };
}

channel!(ganger_mpsc, "ganger-mpsc");
channel!(crossbeam_channel, "crossbeam-channel");
channel!(flume, "flume");

impl Bounded {
    /// Returns the contest of the channels that can be bounded, and whose producers can sleep.
    pub(super) fn contest(self) -> Contest {
        let entrants = vec![
            self.entrant::<ganger_mpsc::Receiver<String>>(),
            self.entrant::<crossbeam_channel::Receiver<String>>(),
            self.entrant::<flume::Receiver<String>>(),
        ];
        let producers = match self.producers {
            1 => "1 producer".to_owned(),
            many => format!("{many} producers"),
        };
        let name = format!("bounded {}, {producers}, strings", self.capacity);
        Contest::new(name, &["ns"], entrants)
    }

    fn entrant<C: Channel>(self) -> (&'static str, Run) {
        (C::NAME, Box::new(move || vec![self.run::<C>()]))
    }

    fn run<C: Channel>(self) -> f64 {
        let (sender, mut receiver) = C::with_room(self.capacity);
        let start = Barrier::new(self.producers + 1);
        thread::scope(|scope| {
            for _ in 0..self.producers {
                let (sender, start) = (sender.clone(), &start);
                scope.spawn(move || {
                    start.wait();
                    (0..self.each).for_each(|number| C::send(&sender, number.to_string()));
                });
            }
            drop(sender);
            start.wait();
            let clocks = Clocks::start();
            let (mut items, mut digits) = (0_u64, 0);
            while let Some(item) = receiver.recv() {
                items += 1;
                digits += item.len();
            }
            let wall = clocks.wall();
            let each = (0..self.each).map(|number| number.to_string().len());
            let expected = (
                self.producers * self.each,
                self.producers * each.sum::<usize>(),
            );
            assert_eq!((items, digits), (expected.0 as u64, expected.1));
            nanoseconds(wall, items)
        })
    }
}
