//! The lateness of processes that should run every millisecond (W12), or at a message (W13b, W13c).

use super::bell::{LAST, nanos};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The time between two ticks.
pub(super) const PERIOD: Duration = Duration::from_millis(1);

/// The unit of lateness: 32 bits are enough for 42 seconds.
const UNIT_NANOS: u64 = 10;

/// When each of many processes has run for each tick.
#[derive(Debug)]
pub(super) struct Board {
    start: OnceLock<Instant>,
    /// When each tick is due, in nanoseconds from the start.
    due: Vec<AtomicU64>,
    processes: usize,
    /// Tick by tick, for each process: its lateness, plus a unit. 0: it has not run.
    cells: Vec<AtomicU32>,
}

impl Board {
    /// Creates a board, not started yet.
    pub(super) fn new(processes: usize, ticks: usize) -> Self {
        let cells: Vec<_> = (0..processes * ticks).map(|_| AtomicU32::new(0)).collect();
        let due = (1..=ticks as u64).map(|period| AtomicU64::new(period * nanos(PERIOD)));
        Self {
            start: OnceLock::new(),
            due: due.collect(),
            processes,
            cells,
        }
    }

    /// Starts the ticks: a tick is due each period, the first after a period.
    pub(super) fn start(&self) {
        self.start.get_or_init(Instant::now);
    }

    /// Notes that a tick is due now, whatever its time on the board: the caller is about to send
    /// it.
    ///
    /// # Panics
    /// When the board has not been started, or has no such tick.
    pub(super) fn send(&self, tick: u64) {
        let now = nanos(self.begin().elapsed());
        // Ordering: Relaxed: the message publishes it.
        self.cell_of(tick).store(now, Ordering::Relaxed);
    }

    /// Returns when a tick is due.
    ///
    /// # Panics
    /// When the board has not been started, or has no such tick.
    #[must_use]
    pub(super) fn due(&self, tick: u64) -> Instant {
        // Ordering: Relaxed: the caller has heard of the tick, or nothing has changed it.
        let due = self.cell_of(tick).load(Ordering::Relaxed);
        self.begin() + Duration::from_nanos(due)
    }

    fn begin(&self) -> Instant {
        *self.start.get().expect("a board that has been started")
    }

    fn cell_of(&self, tick: u64) -> &AtomicU64 {
        &self.due[usize::try_from(tick).expect("a tick of this board")]
    }

    /// Returns whether every process has run for every tick.
    #[must_use]
    pub(super) fn is_full(&self) -> bool {
        // Ordering: Relaxed: a number by itself, read when it is there.
        let noted = self.cells.iter().map(|cell| cell.load(Ordering::Relaxed));
        noted.min() != Some(0)
    }

    /// Notes that a process runs for a tick. Returns whether the process should end.
    ///
    /// # Panics
    /// When the process has run for this tick before.
    #[must_use]
    pub(super) fn arrive(&self, process: usize, tick: u64) -> bool {
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

    /// Returns the lateness of each process at each tick. A tick without a run so far counts as
    /// late until this moment.
    pub(super) fn lateness(&self) -> impl Iterator<Item = Duration> + '_ {
        let now = Instant::now();
        let row = move |(tick, row): (usize, &'_ [AtomicU32])| {
            let so_far = units(now - self.due(tick as u64));
            // Ordering: Relaxed: a number by itself, read when it is there.
            let noted = row.iter().map(|cell| cell.load(Ordering::Relaxed));
            let late = noted.map(|late| if late == 0 { so_far } else { late });
            late.collect::<Vec<_>>()
        };
        let rows = self.cells.chunks(self.processes.max(1)).enumerate();
        rows.flat_map(row).map(duration)
    }
}

/// Returns the time of a number made by [`units`].
pub(super) fn duration(units: u32) -> Duration {
    Duration::from_nanos(u64::from(units - 1) * UNIT_NANOS)
}

/// Returns a lateness in units, plus a unit.
pub(super) fn units(late: Duration) -> u32 {
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
    fn a_tick_that_is_sent_is_due_then() {
        let board = Board::new(1, 2);
        board.start();
        let pause = Duration::from_millis(20);
        thread::sleep(pause);
        board.send(1);
        assert!(!board.arrive(0, 1) && !board.is_full());
        assert!(!board.arrive(0, 0) && board.is_full());
        let late: Vec<_> = board.lateness().collect();
        assert!(late[0] >= pause - PERIOD && late[1] < pause, "{late:?}");
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
