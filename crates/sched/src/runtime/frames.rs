//! The calls of schedulers that a thread is in the middle of.
//!
//! **Problem.** A `stop` waits for the turns, the submissions and the threads of its scheduler.
//! Made from inside one of them it would wait for itself, so it is refused there. A process may
//! also not be waited for by the thread that is to start it, nor by one that ends processes.
//!
//! **Protocol.** Such a call puts a frame on its own stack, linked to the frame around it, and
//! takes it away when it returns or unwinds. A look follows the links, which are few.
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

/// How many submissions a thread may be in the middle of: each but the first comes from the `init`
/// of the one around it, or from another call that is part of it.
///
/// A level takes the stack of a submission, 3 kB, or 11 kB in a debug build, and that of the user's
/// `init`. So a thread with 2 MiB, which is the default, has 20 kB for each `init`.
const MAX_SUBMISSIONS: usize = 64;

/// How many bytes of stack there may be between the first submission and the last, for an `init`
/// that takes much.
const MAX_STACK: usize = 1 << 20;

/// A call of a scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// All that one of its threads does for it.
    Thread,
    /// The work of the thread that looks after a stop, and at the queues until nothing is left.
    Supervisor,
    /// The turn of a process, on a thread that is no worker: that happens in a shutdown only.
    Turn,
    /// The submission of the process with that id, which no thread runs before the submission is
    /// over.
    Submission(u64),
    /// The work of a `stop`.
    Stop,
}

struct Entry {
    scheduler: *const (),
    frame: Frame,
    outer: *const Self,
}

/// Calls `f` within a frame of that scheduler.
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

/// How many submissions this thread is in the middle of, of whichever schedulers, if they are as
/// many as there may be, or take as much of its stack. O(frames).
pub(crate) fn too_deep() -> Option<usize> {
    // What the `init` that starts another has taken counts as well.
    let here = 0_u8;
    let here = (&raw const here).addr();
    let (mut submissions, mut first) = (0, here);
    let mut at = INNERMOST.get();
    // SAFETY: as in `find`.
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

/// Whether this thread is in the middle of any call of that scheduler.
pub(crate) fn is_inside<S>(scheduler: &S) -> bool {
    any(scheduler, |_| true)
}

/// Whether this thread, which is no worker of that scheduler, ends one of its processes.
pub(crate) fn ends_processes<S>(scheduler: &S) -> bool {
    any(scheduler, |frame| frame == Frame::Turn)
}

/// Whether this thread, which is no worker of that scheduler, looks at its queues when the call is
/// over.
pub(crate) fn looks_itself<S>(scheduler: &S) -> bool {
    any(scheduler, |frame| {
        matches!(frame, Frame::Supervisor | Frame::Turn)
    })
}

/// Whether this thread is submitting the process with that id to that scheduler.
pub(crate) fn submits<S>(scheduler: &S, id: u64) -> bool {
    any(scheduler, |frame| frame == Frame::Submission(id))
}

/// The id of the process that this thread is submitting to that scheduler: the innermost one.
pub(crate) fn submitted<S>(scheduler: &S) -> Option<u64> {
    find(scheduler, |frame| match frame {
        Frame::Submission(id) => Some(id),
        _ => None,
    })
}

fn any<S>(scheduler: &S, is_wanted: impl Fn(Frame) -> bool) -> bool {
    find(scheduler, |frame| is_wanted(frame).then_some(())).is_some()
}

/// What `f` says of the innermost frame of that scheduler of which it says something.
fn find<S, R>(scheduler: &S, f: impl Fn(Frame) -> Option<R>) -> Option<R> {
    let scheduler = ptr::from_ref(scheduler).cast();
    let mut at = INNERMOST.get();
    // SAFETY: null, or an entry of a `within` further out on this thread's stack: that one has not
    // returned, or it would have put back what was there before.
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
