//! The policy of picks: every number in a worker's choice of the next process.
//!
//! Other files say how a rule works, this file with which number. A number of type `u64` is a span
//! in nanoseconds. A *setting* is the default of a setting of [`Builder`](crate::Builder). The last
//! column names the workloads (`docs/BENCHMARKS.md`) and promises (`docs/PROMISES.md`) that measure
//! a change.
//!
//! | constant | value | decides | shown by |
//! |---|---|---|---|
//! | **Lanes before the deque** | | | |
//! | [`URGENT_STREAK`] | 8 | picks from the urgent lane in a row | G4 |
//! | [`SYSTEM_STREAK`] | 8 | batches of system events while messages wait | P4 |
//! | [`ARRIVALS_STREAK`] | 256 | picks from the lane of arrivals in a row | G4, W16b |
//! | [`ARRIVALS_SPAN`] | 1 ms | the same by time | W16b |
//! | **Deque, global queue, thieves** | | | |
//! | [`GLOBAL_BATCH`] | 16, setting | processes taken from the global queue for later | W1, G4 |
//! | [`STEAL_ROUNDS`] | 4 | rounds over all victims in a search | W2 |
//! | [`EXPOSED_AT_ONCE`] | 16 | wakes in a turn until the deque is exposed | W7 |
//! | [`SPIN_LOOKS`] | 4, setting | empty searches before a worker stops spinning | W1, W10 |
//! | [`YIELD_LOOKS`] | 4, setting | empty searches before a worker sleeps | W10busy |
//! | [`BRIEF_WAIT`] | 50 us | a wait below this has the next begin with searches | S1out, W8 |
//! | [`BRIEF_LOOKS`] | 256 | searches before the sleep then | S1out, W8, W10busy |
//! | **Rotation** | | | |
//! | [`ROTATION`] | 127, setting | picks between two rotations, at most | G4, W13 |
//! | [`CHAIN_LIMIT`] | 10 ms, setting | time between two rotations, at most | G4, W13c |
//! | [`ROTATION_SPAN`] | 20 us | mean time between rotations, with no woken process | W13c, W6 |
//! | [`SHORT_STEPS`] | 10 | steps per `ROTATION_SPAN` from which on steps are short | W3b, W6 |
//! | [`ROTATION_LOOKS`] | 8 | measures of the length of steps per `CHAIN_LIMIT` | W13c |
//! | [`SLICE`] | 100 us | time for woken processes, at least, then for the others | W13b |
//! | [`SLICE_UNSEEN`] | 8 | picks between two reads of the clock in a slice | W13b, W6 |
//! | **Balance** | | | |
//! | [`BALANCE_INTERVAL`] | 1 ms | time between two comparisons of workers, at least | W13 |
//! | [`BALANCE_ODDS`] | 4 | rotations per comparison, in the mean | W13 |
//! | [`BALANCE_SLACK`] | 1/32 | surplus of the other worker that is left | W13 |
//! | **Timers and drivers** | | | |
//! | [`TIMER_NEAR`] | 4 ms | time before a deadline from which on clocks are read | W16 |
//! | [`TIMER_SPAN`] | 5 us | mean time between two reads of the clock then | W16b10 |
//! | [`TIMER_UNSEEN`] | 256 | picks between two reads of the clock then, at most | W16b10 |
//! | [`TIMER_BATCH`] | 64 | timers of a shard that a thread fires in a call | W15, W16 |
//! | [`LATE_AT_WORKERS`] | 100 us | lateness at which others deliver; brief turns | W16stuck |
//! | [`LATE_AT_MONITOR`] | 2 ms | lateness at which the monitor delivers | W16stuck |
//! | [`DRIVER_UNSEEN`] | 50 us | time without a look in the driver | net_peers |
//! | [`KEPT_SPAN`] | 500 us | turns that a worker keeps when it leaves the driver | net_peers |
//! | [`KEPT_MOST`] | 256 | the same by number, at most | net_peers |
//! | [`KEPT_LONG`] | 100 us | the same span, where turns take longer than [`KEPT_TURN`] | – |
//! | [`KEPT_TURN`] | 20 us | the length of a turn from which on fewer are kept | – |
//! | **The turn** | | | |
//! | [`EVENT_BATCH`] | 256, setting | events shown to a step | P4, W6 |
//! | [`INLINE_STEPS`] | 16 | steps in a turn on answers that came at once | W9 |
//! | [`CATCH_UP_BATCHES`] | 3 | batches in a mailbox that make a process far behind | W6 |
//! | [`CATCH_UP_TURNS`] | 64 | turns of such a process in a pick | W6, G4 |
//! | [`CATCH_UP_SPAN`] | 100 us | time after which such a pick has no further turn | W6 |
//! | **The monitor** | | | |
//! | [`HAND_OFF_DELAY`] | 50 us, setting | wait of a lone process behind a long step | G2, W4 |
//! | [`LONGEST_LOOK`] | 2 ms | time between two looks, at most | W11 |
//! | [`CLOSE_LOOK`] | 500 us | the same while a step keeps others waiting | W12 |
//! | [`QUIET`] | 10 ms | time without work until the monitor sleeps | W11 |
//! | [`BLOCKED_STEP`] | 1 ms, setting | sleep of a step that costs it its worker | W12, G6 |
//! | [`LONG_STEP`] | 10 ms, setting | computing of a step that costs it its worker | W12cpu, G6 |

use std::time::Duration;

/// System events are rare and short, and the bound of G4 grows with the number.
pub(crate) const URGENT_STREAK: u32 = 8;
/// As [`URGENT_STREAK`], within a process.
pub(crate) const SYSTEM_STREAK: u8 = 8;
/// Thousands of timers may be due at once, and other processes have to run between them.
pub(crate) const ARRIVALS_STREAK: u32 = 256;
/// Arrivals may have long steps.
pub(crate) const ARRIVALS_SPAN: u64 = 1_000_000;

/// Spreads the cost of an access; the bound of G4 grows with the number.
pub(crate) const GLOBAL_BATCH: usize = 16;
/// A victim may have pushed since the thief looked at its deque.
pub(crate) const STEAL_ROUNDS: usize = 4;
/// A thief that finds nothing exposed interrupts the worker by a heavy fence.
pub(crate) const EXPOSED_AT_ONCE: u32 = 16;
/// A process pushed soon after finds the worker awake.
pub(crate) const SPIN_LOOKS: u32 = 4;
/// Equal to [`SPIN_LOOKS`], so the worker does not yield its thread: in a yield it counts as awake,
/// and comes back a time slice later when the processor is busy.
pub(crate) const YIELD_LOOKS: u32 = 4;
/// A sleep and a wake-up take 5 us, and 30 us where the woken thread waits behind its waker.
pub(crate) const BRIEF_WAIT: u64 = 50_000;
/// These last as long as a sleep and a wake-up.
pub(crate) const BRIEF_LOOKS: u32 = 256;

/// A prime, so no pattern of picks meets the rotations.
pub(crate) const ROTATION: u32 = 127;
/// A process woken from outside waits for it, and 10 ms pass unnoticed.
pub(crate) const CHAIN_LIMIT: Duration = Duration::from_millis(10);
/// A process woken from outside waits for it; a consumer among busy producers has fewer turns.
pub(crate) const ROTATION_SPAN: u64 = 20_000;
/// Short steps have no rotation by time, which would slow them.
pub(crate) const SHORT_STEPS: u32 = 10;
/// The coarse time changes every 2 ms at best, by [`LONGEST_LOOK`].
pub(crate) const ROTATION_LOOKS: u64 = 8;
/// Some steps of 10 us, so a burst of woken processes is soon over. Next to longer steps the slice
/// is as long as these.
pub(crate) const SLICE: u64 = 100_000;
/// A read costs as much as a short step.
pub(crate) const SLICE_UNSEEN: u32 = 8;

/// A comparison reads two cache lines of the other worker.
pub(crate) const BALANCE_INTERVAL: u64 = 1_000_000;
/// With a comparison at each rotation two workers could hand a process to and fro for ever.
pub(crate) const BALANCE_ODDS: usize = 4;
/// A smaller difference costs less than a theft.
pub(crate) const BALANCE_SLACK: usize = 32;

/// Twice [`LONGEST_LOOK`], the delay of the coarse time.
pub(crate) const TIMER_NEAR: u64 = 4_000_000;
/// As late is a timer whose worker is busy.
pub(crate) const TIMER_SPAN: u64 = 5_000;
/// The next steps may be longer than the last.
pub(crate) const TIMER_UNSEEN: u32 = 256;
/// The call comes between two turns.
pub(crate) const TIMER_BATCH: usize = 64;
/// The timer's own worker nearly always delivers sooner, also behind turns that are over by then.
pub(crate) const LATE_AT_WORKERS: u64 = 100_000;
/// All workers are in long steps by then.
pub(crate) const LATE_AT_MONITOR: u64 = 2_000_000;
/// A look is a system call.
pub(crate) const DRIVER_UNSEEN: u64 = 50_000;
/// The longest wait of kept processes.
pub(crate) const KEPT_SPAN: u64 = 500_000;
/// As many as the poller finds at a time. The next steps may be longer than the last.
pub(crate) const KEPT_MOST: u32 = 256;
/// To move a process costs less than a turn of this length.
pub(crate) const KEPT_TURN: u64 = 20_000;
/// As [`KEPT_SPAN`], where the turns are longer than [`KEPT_TURN`].
pub(crate) const KEPT_LONG: u64 = 100_000;

/// Amortises the turn; a step with more events keeps others waiting.
pub(crate) const EVENT_BATCH: usize = 256;
/// Processes in the deque wait meanwhile.
pub(crate) const INLINE_STEPS: u32 = 16;
/// Its messages outgrow the caches: further turns in the pick take 0.47 of the time.
pub(crate) const CATCH_UP_BATCHES: usize = 3;
/// The bound of G4 counts picks.
pub(crate) const CATCH_UP_TURNS: u32 = 64;
/// As a [`SLICE`].
pub(crate) const CATCH_UP_SPAN: Duration = Duration::from_micros(100);

/// Most steps end sooner, and a wake-up costs more than these.
pub(crate) const HAND_OFF_DELAY: Duration = Duration::from_micros(50);
/// Each look wakes a processor; the coarse time is as late.
pub(crate) const LONGEST_LOOK: Duration = Duration::from_millis(2);
/// Half of [`BLOCKED_STEP`].
pub(crate) const CLOSE_LOOK: Duration = Duration::from_micros(500);
/// A pause between two bursts of work is shorter.
pub(crate) const QUIET: Duration = Duration::from_millis(10);
/// A spare is a thread, which costs more than a short wait.
pub(crate) const BLOCKED_STEP: Duration = Duration::from_millis(1);
/// By then the system shares the processor among threads anyway.
pub(crate) const LONG_STEP: Duration = Duration::from_millis(10);
