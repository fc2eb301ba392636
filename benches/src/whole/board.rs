//! How late processes are that should run every millisecond (W12).

use super::contestant::LAST;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// From one tick to the next.
pub(super) const PERIOD: Duration = Duration::from_millis(1);

/// In what lateness is noted: 32 bits are enough for 42 seconds.
const UNIT_NANOS: u64 = 10;

/// When each of many processes has run for each tick.
#[derive(Debug)]
pub struct Board {
    start: OnceLock<Instant>,
    processes: usize,
    /// Tick by tick, for each process: how late it was, plus one unit. 0: it has not run.
    cells: Vec<AtomicU32>,
}

impl Board {
    /// A board that has not been started.
    #[must_use]
    pub fn new(processes: usize, ticks: usize) -> Self {
        let cells: Vec<_> = (0..processes * ticks).map(|_| AtomicU32::new(0)).collect();
        Self {
            start: OnceLock::new(),
            processes,
            cells,
        }
    }

    /// How many processes there are.
    #[must_use]
    pub fn processes(&self) -> usize {
        self.processes
    }

    /// From now on ticks are due, the first of them in a period.
    pub fn start(&self) {
        self.start.get_or_init(Instant::now);
    }

    /// When a tick is due.
    ///
    /// # Panics
    /// When the board has not been started.
    #[must_use]
    pub fn due(&self, tick: u64) -> Instant {
        let start = *self.start.get().expect("a board that has been started");
        start + PERIOD * u32::try_from(tick + 1).unwrap_or(u32::MAX)
    }

    /// A process runs for a tick. Returns whether it is to end.
    ///
    /// # Panics
    /// When the process has run for this tick before.
    #[must_use]
    pub fn arrive(&self, process: usize, tick: u64) -> bool {
        if tick == LAST {
            return true;
        }
        let late = units(self.due(tick).elapsed());
        let index = usize::try_from(tick).expect("a tick of this board") * self.processes + process;
        // Ordering: Relaxed: a number by itself, read when it is there.
        let before = self.cells[index].swap(late, Ordering::Relaxed);
        assert_eq!(before, 0, "process {process} got tick {tick} twice");
        false
    }

    /// How late each process was at each tick. A tick that has not run yet counts as late until
    /// this moment.
    pub fn lateness(&self) -> impl Iterator<Item = Duration> + '_ {
        let now = Instant::now();
        let row = move |(tick, row): (usize, &'_ [AtomicU32])| {
            let so_far = units(now - self.due(tick as u64));
            // Ordering: Relaxed: as in `arrive`.
            let noted = row.iter().map(|cell| cell.load(Ordering::Relaxed));
            let late = noted.map(|late| if late == 0 { so_far } else { late });
            late.collect::<Vec<_>>()
        };
        let rows = self.cells.chunks(self.processes.max(1)).enumerate();
        rows.flat_map(row)
            .map(|late| Duration::from_nanos(u64::from(late - 1) * UNIT_NANOS))
    }
}

fn units(late: Duration) -> u32 {
    u32::try_from(late.as_nanos() / u128::from(UNIT_NANOS) + 1).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn who_has_run_is_as_late_as_it_was_and_who_has_not_as_late_as_it_is() {
        let board = Board::new(2, 2);
        board.start();
        thread::sleep(board.due(1) - Instant::now());
        assert!(!board.arrive(0, 0));
        assert!(!board.arrive(1, 1));
        let pause = Duration::from_millis(20);
        thread::sleep(pause);
        let late: Vec<_> = board.lateness().collect();
        assert_eq!(late.len(), 4);
        assert!(late[0] >= PERIOD && late[0] < late[1], "{late:?}");
        assert!(late[1] >= pause + PERIOD && late[2] >= pause, "{late:?}");
        assert!(late[3] < late[2], "{late:?}");
        assert!(board.arrive(0, LAST));
    }

    #[test]
    #[should_panic(expected = "process 1 got tick 0 twice")]
    fn a_tick_counts_once() {
        let board = Board::new(2, 1);
        board.start();
        for _ in 0..2 {
            let _ = board.arrive(1, 0);
        }
    }
}
