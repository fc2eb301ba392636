//! The end of a program with an endless move within a move.
//!
//! A step holds a lock while other actors move, and a process among them takes the same lock: both
//! wait for each other for ever, because they are on the same thread. A thread of its own notices
//! such a wait, and ends the program. The thread counts seconds of its own sleep, so a debugger may
//! stop the program for any time.

use std::io::{self, Write};
use std::process;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::time::Duration;

/// After this many seconds a move within a move counts as endless.
const LIMIT: u32 = 30;

static MOVES: Mutex<Moves> = Mutex::new(Moves {
    last: 0,
    watched: Vec::new(),
});

struct Moves {
    last: u64,
    watched: Vec<Watched>,
}

struct Watched {
    nth: u64,
    seed: Option<u64>,
    seconds: u32,
}

impl Moves {
    fn begin(&mut self, seed: Option<u64>) -> u64 {
        self.last += 1;
        self.watched.push(Watched {
            nth: self.last,
            seed,
            seconds: 0,
        });
        self.last
    }

    fn end(&mut self, nth: u64) {
        self.watched.retain(|it| it.nth != nth);
    }

    /// Notes a passed second. Returns the description of a stuck move, if any.
    fn tick(&mut self) -> Option<String> {
        self.watched.iter_mut().for_each(|it| it.seconds += 1);
        let stuck = self.watched.iter().find(|it| it.seconds >= LIMIT)?;
        let seed = stuck
            .seed
            .map_or(String::new(), |it| format!(" of seed {it}"));
        Some(format!(
            "ganger-sim: a move within a move{seed} has no end. A step, or an `init`, probably \
             holds a lock while it calls its context, and a process that moves meanwhile takes the \
             same lock. Release the lock before the call, or set `Faults::others_move` to 0. \
             aborting"
        ))
    }
}

/// Makes a move within a move.
pub(crate) fn watch<R>(seed: Option<u64>, advance: impl FnOnce() -> R) -> R {
    struct End(u64);
    impl Drop for End {
        fn drop(&mut self) {
            moves().end(self.0);
        }
    }
    static STARTED: Once = Once::new();
    // Without such a thread the program waits for ever, and says nothing.
    STARTED.call_once(|| drop(thread::Builder::new().spawn(look_on)));
    let nth = moves().begin(seed);
    let _end = End(nth);
    advance()
}

fn look_on() {
    loop {
        thread::sleep(Duration::from_secs(1));
        if let Some(report) = moves().tick() {
            let _told = writeln!(io::stderr(), "{report}");
            process::abort();
        }
    }
}

fn moves() -> MutexGuard<'static, Moves> {
    MOVES.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_move_without_an_end_is_found_and_one_that_ends_is_not() {
        let mut moves = Moves {
            last: 0,
            watched: Vec::new(),
        };
        let stuck = moves.begin(Some(7));
        for second in 1..LIMIT {
            let short = moves.begin(None);
            assert_eq!(moves.tick(), None, "{second}");
            moves.end(short);
        }
        assert!(moves.tick().unwrap().contains("of seed 7 has no end"));
        moves.end(stuck);
        assert_eq!(moves.tick(), None);
    }
}
