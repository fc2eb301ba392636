//! The two halves of an asymmetric fence.
//!
//! **Problem.** A thread stores A, then loads B. Another thread stores B, then loads A. Either
//! thread must see the other's store. This takes a full fence between store and load on both sides.
//! A full fence costs as much as a read-modify-write, even on a side that runs far more often than
//! the other.
//!
//! **Protocol.** The frequent side calls [`light`], the rare side [`heavy`]. Each light fence is
//! ordered against each heavy fence, as two `fence(SeqCst)` are. Two light fences are not ordered
//! against each other, and a light fence publishes nothing. (The C++ Concurrency TS 2 calls them
//! `asymmetric_thread_fence_light` and `_heavy`, P1202.)
//!
//! | | light | heavy |
//! |---|---|---|
//! | Linux with the feature `membarrier` | a compiler fence | `membarrier(2)`, private expedited |
//! | anywhere else | `fence(SeqCst)` | `fence(SeqCst)` |
//!
//! The system call makes every processor that runs a thread of this program execute a full fence.
//! So each light fence of another thread lies entirely before or after this full fence.
//!
//! The first [`heavy`] or [`prepare`] of the program decides between the two rows.
//! `GANGER_MEMBARRIER=off` in the environment chooses the second row, and so does a kernel that
//! refuses.
//!
//! **Why the two sides never disagree.** A light fence may be full while a heavy fence is a system
//! call: stronger than needed. The reverse never occurs. A light fence is a compiler fence only
//! after the decision, and a heavy fence reads the decision before it acts.

mod behind_rmw;

pub use behind_rmw::behind_rmw;
#[cfg(not(ganger_loom))]
pub use real::{free, heavy, is_asymmetric, light, light_is_free, prepare};

#[cfg(ganger_loom)]
pub use model::{
    Flushing, flushing, free, heavy, is_asymmetric, light, light_is_free, prepare, symmetric,
    without_light,
};

#[cfg(not(ganger_loom))]
mod real {
    use super::membarrier;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, Ordering, compiler_fence, fence};

    static DECISION: OnceLock<bool> = OnceLock::new();

    /// A copy of the decision, read by a light fence with a single load.
    static LIGHT_IS_FREE: AtomicBool = AtomicBool::new(false);

    /// Executes the fence of the frequent side. Ordered against every [`heavy`] fence. Does not
    /// block.
    #[inline(always)]
    pub fn light() {
        if light_is_free() {
            free();
        } else {
            full();
        }
    }

    #[cold]
    #[inline(always)]
    fn full() {
        // Ordering: pairs with the fence in `heavy`.
        fence(Ordering::SeqCst);
    }

    /// Returns whether light fences are free. Once `true`, it stays `true`.
    #[inline(always)]
    pub fn light_is_free() -> bool {
        // Ordering: Relaxed, because a thread that still reads `false` makes a full fence, stronger
        // than needed.
        LIGHT_IS_FREE.load(Ordering::Relaxed)
    }

    /// Executes a light fence if [`light_is_free`] was `true` before. Otherwise it only restrains
    /// the compiler. For callers that learn the kind of the fence afterwards.
    #[inline(always)]
    pub fn free() {
        // Ordering: pairs with the system call in `heavy`.
        compiler_fence(Ordering::SeqCst);
    }

    /// Executes the fence of the rare side. Ordered against every [`light`] fence.
    ///
    /// The system call takes longer the more processors run threads of this program. The call waits
    /// for these processors, for other calls of the same kind, and for memory if the kernel has
    /// none. The call does not wait for the work of any thread.
    ///
    /// # Panics
    /// If the kernel refuses the call although it has accepted it before: a filter for system calls
    /// has been installed meanwhile. The message says how to avoid the call.
    #[inline]
    pub fn heavy() {
        // Ordering: pairs with the fence in `light`. The fence also orders this thread's own
        // accesses, which the kernel does not promise for a program with a single thread.
        fence(Ordering::SeqCst);
        if is_asymmetric() {
            membarrier::issue();
        }
    }

    /// Decides how the fences work, if this is not decided yet. Makes system calls once a program.
    /// Until then light fences are full fences.
    pub fn prepare() {
        is_asymmetric();
    }

    /// Returns whether light fences are free, at the price of a system call for each heavy fence.
    #[inline]
    pub fn is_asymmetric() -> bool {
        *DECISION.get_or_init(|| {
            let is_asymmetric = membarrier::register();
            // Ordering: Relaxed: see `light_is_free`.
            LIGHT_IS_FREE.store(is_asymmetric, Ordering::Relaxed);
            is_asymmetric
        })
    }
}

#[cfg(all(
    not(ganger_loom),
    feature = "membarrier",
    target_os = "linux",
    not(miri)
))]
mod membarrier {
    use rustix::io::Errno;
    use rustix::thread::{MembarrierCommand, membarrier};

    /// Registers this program, unless the environment or the kernel forbids it.
    pub(super) fn register() -> bool {
        std::env::var_os("GANGER_MEMBARRIER").is_none_or(|choice| choice != "off")
            && membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
            && membarrier(MembarrierCommand::PrivateExpedited).is_ok()
    }

    /// Makes a full fence on every processor that runs a thread of this program.
    pub(super) fn issue() {
        loop {
            match membarrier(MembarrierCommand::PrivateExpedited) {
                Ok(()) => return,
                // The kernel had no memory for its list of processors.
                Err(Errno::NOMEM) => std::thread::yield_now(),
                Err(error) => panic!(
                    "membarrier was accepted before and fails now: {error}; \
                     set GANGER_MEMBARRIER=off in the environment"
                ),
            }
        }
    }
}

#[cfg(all(
    not(ganger_loom),
    not(all(feature = "membarrier", target_os = "linux", not(miri)))
))]
mod membarrier {
    pub(super) fn register() -> bool {
        false
    }

    pub(super) fn issue() {
        unreachable!("nothing was registered");
    }
}

#[cfg(ganger_loom)]
mod model {
    use crate::atomic::{Ordering, fence};
    use std::cell::{Cell, RefCell};
    use std::mem::ManuallyDrop;
    use std::rc::Rc;

    /// Has no destructor: after a failed model, its value must not be dropped outside of the model.
    type Flush = ManuallyDrop<Rc<dyn Fn()>>;

    thread_local! {
        // All threads of a model run on one system thread, so they share a thread-local.
        static HAS_LIGHT: Cell<bool> = const { Cell::new(true) };
        static IS_ASYMMETRIC: Cell<bool> = const { Cell::new(true) };
        static FLUSH: RefCell<Option<Flush>> = const { RefCell::new(None) };
    }

    /// Executes a full fence. Does nothing inside [`without_light`].
    pub fn light() {
        if HAS_LIGHT.get() {
            // Ordering: pairs with the fence in `heavy`.
            fence(Ordering::SeqCst);
        }
    }

    /// Executes a light fence, as [`light`] does. Does nothing inside [`symmetric`].
    pub fn free() {
        if IS_ASYMMETRIC.get() {
            light();
        }
    }

    /// Executes a full fence, after the function set by [`flushing`].
    pub fn heavy() {
        let flush = FLUSH.with_borrow(|flush| flush.as_deref().cloned());
        if let Some(flush) = flush {
            flush();
        }
        // Ordering: pairs with the fence in `light`.
        fence(Ordering::SeqCst);
    }

    /// Does nothing: a model's fences need no decision.
    pub fn prepare() {}

    /// Returns `true`, except for models inside [`symmetric`].
    pub fn is_asymmetric() -> bool {
        IS_ASYMMETRIC.get()
    }

    /// Returns the result of [`is_asymmetric`].
    pub fn light_is_free() -> bool {
        is_asymmetric()
    }

    /// Runs a model as on a platform without free light fences.
    pub fn symmetric(model: impl FnOnce()) {
        IS_ASYMMETRIC.set(false);
        model();
        IS_ASYMMETRIC.set(true);
    }

    /// Makes each heavy fence call `flush` first, until the guard is dropped.
    ///
    /// For models of a store buffer: `flush` publishes stores that other threads do not see yet. A
    /// real heavy fence publishes them, and a fence of loom's does not.
    pub fn flushing(flush: impl Fn() + 'static) -> Flushing {
        FLUSH.set(Some(ManuallyDrop::new(Rc::new(flush))));
        Flushing(())
    }

    /// Ends the effect of [`flushing`] when dropped.
    #[must_use]
    pub struct Flushing(());

    impl Drop for Flushing {
        fn drop(&mut self) {
            let flush = FLUSH.take();
            if !std::thread::panicking() {
                drop(flush.map(ManuallyDrop::into_inner));
            }
        }
    }

    /// Runs a model in which light fences do nothing. Code without heavy fences must be correct
    /// even then, because a light fence publishes nothing.
    pub fn without_light(model: impl FnOnce()) {
        HAS_LIGHT.set(false);
        model();
        HAS_LIGHT.set(true);
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    const ROUNDS: u32 = 100_000;

    /// How long the rounds last: if the two threads share a processor, a round takes milliseconds.
    const ENOUGH: Duration = Duration::from_secs(1);

    /// The store of a thread, and its fence after the store.
    #[derive(Clone, Copy)]
    struct Manner {
        put: fn(&AtomicU32, u32),
        fence: fn(),
    }

    /// The shared state of both threads.
    #[derive(Default)]
    struct Round {
        stores: [AtomicU32; 2],
        ready: [AtomicU32; 2],
        is_over: AtomicBool,
    }

    // Ordering: Relaxed, here and below, because the test is about the fence.
    const STORE: fn(&AtomicU32, u32) = |place, value| place.store(value, Ordering::Relaxed);
    const SWAP: fn(&AtomicU32, u32) = |place, value| _ = place.swap(value, Ordering::Relaxed);
    // Ordering: the full fence with which the test compares.
    const FULL: fn() = || fence(Ordering::SeqCst);

    /// Runs a thread of the two: stores, fences, and returns for each round whether this thread saw
    /// the other's store.
    fn side(nth: usize, shared: &Round, how: Manner) -> Vec<bool> {
        let Round { stores, ready, .. } = shared;
        let mut saw = Vec::new();
        for round in 1..=ROUNDS {
            // Ordering: Relaxed, here and in the loop, because it only makes both start together.
            ready[nth].store(round, Ordering::Relaxed);
            let mut turns = 0;
            while ready[1 - nth].load(Ordering::Relaxed) < round {
                turns += 1;
                if turns % 1_000 == 0 {
                    thread::yield_now();
                    // Ordering: Relaxed: the flag tells only the end of the rounds.
                    if shared.is_over.load(Ordering::Relaxed) {
                        return saw;
                    }
                }
            }
            (how.put)(&stores[nth], round);
            (how.fence)();
            // Ordering: Relaxed, because the test is about the fence.
            saw.push(stores[1 - nth].load(Ordering::Relaxed) >= round);
        }
        saw
    }

    /// Checks that in each round at least one thread sees the other's store.
    fn one_sees_the_other(manners: [Manner; 2]) {
        let shared = Round::default();
        let (done, is_done) = mpsc::channel::<()>();
        prepare();
        let (one, other) = thread::scope(|scope| {
            let one = scope.spawn(|| side(0, &shared, manners[0]));
            let is_over = &shared.is_over;
            scope.spawn(move || {
                if is_done.recv_timeout(ENOUGH).is_err() {
                    // Ordering: Relaxed: the flag tells only the end of the rounds.
                    is_over.store(true, Ordering::Relaxed);
                }
            });
            let other = side(1, &shared, manners[1]);
            let one = one.join().unwrap();
            drop(done);
            (one, other)
        });
        // A round proves nothing unless both threads have ended it.
        for (round, (one, other)) in one.iter().zip(&other).enumerate() {
            assert!(one | other, "round {round}: neither saw the other's store");
        }
    }

    const fn manner(put: fn(&AtomicU32, u32), fence: fn()) -> Manner {
        Manner { put, fence }
    }

    #[test]
    fn a_light_fence_is_ordered_against_a_heavy_one() {
        one_sees_the_other([manner(STORE, light), manner(STORE, heavy)]);
    }

    #[test]
    fn a_fence_behind_a_read_modify_write_is_full() {
        let behind = manner(SWAP, behind_rmw);
        one_sees_the_other([behind, behind]);
        one_sees_the_other([behind, manner(STORE, FULL)]);
        one_sees_the_other([behind, manner(STORE, heavy)]);
    }

    /// Starts the test's own program twice, with each value of the variable, because a program
    /// decides only once.
    #[cfg(all(feature = "membarrier", target_os = "linux", not(miri)))]
    #[test]
    fn the_environment_and_the_kernel_decide() {
        use rustix::thread::{MembarrierCommand, membarrier};

        const CHILD: &str = "GANGER_TEST_PRINTS_ITS_DECISION";
        if std::env::var_os(CHILD).is_some() {
            println!("asymmetric: {}", is_asymmetric());
            return;
        }
        let decision = |choice| {
            let name = "fence::tests::the_environment_and_the_kernel_decide";
            let output = std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", name, "--nocapture"])
                .env(CHILD, "1")
                .env("GANGER_MEMBARRIER", choice)
                .output()
                .unwrap();
            let stdout = String::from_utf8(output.stdout).unwrap();
            stdout.contains("asymmetric: true")
        };
        let kernel_has_it = membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok();
        assert_eq!(decision("on"), kernel_has_it);
        assert!(!decision("off"));
    }

    #[test]
    fn the_decision_stands() {
        let first = is_asymmetric();
        light();
        heavy();
        prepare();
        assert_eq!(is_asymmetric(), first);
    }
}
