//! The calls of schedulers around the present place in a thread.
//!
//! **Problem.** A `stop` waits for the turns, the submissions and the threads of its scheduler.
//! From inside one of them it would wait for itself, so the scheduler refuses it. Nor may a thread
//! wait for a process while it starts the same process or ends processes.
//!
//! **Protocol.** Such a call puts a frame on its own stack, linked to the frame around it, and
//! removes the frame when it returns or unwinds. A look follows the links, which are few.
//!
//! Nothing here has a destructor, so that looks work in the destructors of other thread-locals as
//! well.

use ganger_sync::scoped;
use std::cell::Cell;
use std::ptr;

thread_local! {
    /// The innermost frame on this thread's stack, or null.
    static INNERMOST: Cell<*const Entry> = const { Cell::new(ptr::null()) };
}

/// The most submissions around the present place in a thread: each but the first comes from the
/// `init` of the submission around it, or from another call within it.
///
/// A level takes the stack of a submission, 3 kB, or 11 kB in a debug build, and the stack of the
/// user's `init`. So a thread with 2 MiB, which is the default, has 20 kB for each `init`.
const MAX_SUBMISSIONS: usize = 64;

/// The most bytes of stack between the first submission and the last, for an `init` with large
/// frames.
const MAX_STACK: usize = 1 << 20;

/// A call of a scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// All work of a thread of the scheduler.
    Thread,
    /// The work of the supervisor of a stop, which also empties the queues.
    Supervisor,
    /// The turn of a process, on a thread that is no worker: in a shutdown only.
    Turn,
    /// The submission of the process with this id. No thread runs the process before the submission
    /// is over.
    Submission(u64),
    /// The work of a `stop`.
    Stop,
}

struct Entry {
    scheduler: *const (),
    frame: Frame,
    outer: *const Self,
}

/// Calls `f` within a frame of the scheduler.
#[inline]
pub(crate) fn within<S, R>(scheduler: &S, frame: Frame, f: impl FnOnce() -> R) -> R {
    let entry = Entry {
        scheduler: ptr::from_ref(scheduler).cast(),
        frame,
        outer: INNERMOST.get(),
    };
    scoped(&INNERMOST, &raw const entry, f)
}

/// Calls `f` as if this thread were in the middle of nothing.
#[cfg(feature = "sim")]
pub(crate) fn outside<R>(f: impl FnOnce() -> R) -> R {
    scoped(&INNERMOST, ptr::null(), f)
}

/// Counts the submissions of any schedulers that this thread is inside of, if their number or their
/// stack has reached its limit. O(frames).
pub(crate) fn too_deep() -> Option<usize> {
    // Includes the stack of the `init` starting another process.
    let here = 0_u8;
    let here = (&raw const here).addr();
    let (mut submissions, mut first) = (0, here);
    let mut at = INNERMOST.get();
    // SAFETY: null, or an entry of a `within` further out on this thread's stack, as in `find`.
    while let Some(entry) = unsafe { at.as_ref() } {
        if matches!(entry.frame, Frame::Submission(_)) {
            submissions += 1;
            first = at.addr();
        }
        at = entry.outer;
    }
    let is_too_deep = submissions >= MAX_SUBMISSIONS || here.abs_diff(first) >= MAX_STACK;
    is_too_deep.then_some(submissions)
}

/// Returns whether this thread is inside any call of the scheduler.
pub(crate) fn is_inside<S>(scheduler: &S) -> bool {
    any(scheduler, |_| true)
}

/// Returns whether this thread, not a worker of the scheduler, ends one of its processes.
pub(crate) fn ends_processes<S>(scheduler: &S) -> bool {
    any(scheduler, |frame| frame == Frame::Turn)
}

/// Returns whether this thread, not a worker of the scheduler, looks at its queues when the call is
/// over.
pub(crate) fn looks_itself<S>(scheduler: &S) -> bool {
    any(scheduler, |frame| {
        matches!(frame, Frame::Supervisor | Frame::Turn)
    })
}

/// Returns whether this thread is submitting the process with this id to the scheduler.
pub(crate) fn submits<S>(scheduler: &S, id: u64) -> bool {
    any(scheduler, |frame| frame == Frame::Submission(id))
}

/// Returns the id of the innermost process under submission to the scheduler by this thread.
pub(crate) fn submitted<S>(scheduler: &S) -> Option<u64> {
    find(scheduler, |frame| match frame {
        Frame::Submission(id) => Some(id),
        _ => None,
    })
}

fn any<S>(scheduler: &S, is_wanted: impl Fn(Frame) -> bool) -> bool {
    find(scheduler, |frame| is_wanted(frame).then_some(())).is_some()
}

/// Returns the first `Some` of `f` over the scheduler's frames, from the innermost on.
fn find<S, R>(scheduler: &S, f: impl Fn(Frame) -> Option<R>) -> Option<R> {
    let scheduler = ptr::from_ref(scheduler).cast();
    let mut at = INNERMOST.get();
    // SAFETY: null, or an entry of a `within` further out on this thread's stack: the `within` has
    // not returned, or it would have restored the former pointer.
    while let Some(entry) = unsafe { at.as_ref() } {
        if entry.scheduler == scheduler
            && let Some(found) = f(entry.frame)
        {
            return Some(found);
        }
        at = entry.outer;
    }
    None
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use crate::base::contain::contain;

    #[test]
    fn frames_are_found_by_their_scheduler_however_deep_they_are() {
        let (here, there) = (1_u32, 2_u32);
        let seen = || [is_inside(&here), ends_processes(&here), submits(&here, 7)];
        assert_eq!(seen(), [false; 3]);
        within(&here, Frame::Submission(7), || {
            within(&there, Frame::Turn, || {
                within(&there, Frame::Submission(8), || {
                    assert_eq!(seen(), [true, false, true]);
                    assert!(!submits(&here, 8));
                    assert_eq!((submitted(&here), submitted(&there)), (Some(7), Some(8)));
                });
            });
            within(&here, Frame::Turn, || assert_eq!(seen(), [true; 3]));
            assert_eq!(seen(), [true, false, true]);
        });
        assert_eq!(seen(), [false; 3]);
    }

    // pins: P8
    #[test]
    fn frames_count_the_submissions_of_all_schedulers() {
        let (here, there) = (1_u32, 2_u32);
        fn nest(schedulers: [&u32; 2], depth: usize) {
            assert_eq!(too_deep(), (depth >= MAX_SUBMISSIONS).then_some(depth));
            if depth < MAX_SUBMISSIONS + 3 {
                let id = depth as u64;
                within(schedulers[depth % 2], Frame::Submission(id), || {
                    within(schedulers[0], Frame::Turn, || nest(schedulers, depth + 1));
                });
            }
        }
        within(&here, Frame::Thread, || nest([&here, &there], 0));
    }

    #[test]
    fn a_frame_is_gone_after_a_panic() {
        let here = 1_u32;
        let panicked = contain(|| within(&here, Frame::Stop, || panic!("on purpose")));
        assert!(panicked.is_err() && !is_inside(&here));
    }
}
