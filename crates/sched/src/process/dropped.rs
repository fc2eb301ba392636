//! Completers dropped unused by a turn.
//!
//! **Problem.** A reply is often dropped because its process ends: by a panic, by an error, or with
//! the messages never taken by a step. The asking process should learn the cause; the cause is
//! known only when the step is over.
//!
//! **Protocol.** A turn opens a scope, which collects the completers dropped on this thread. The
//! end of a process reports the cause to all of them. The end of a scope, when the process
//! continues, reports a plain drop. A step about to block answers its dropped completers first.
//!
//! Only the simulation nests scopes, as it has other turns in the middle of a turn.

use ganger_proc_api::{CommandError, CompletionSink, Tag};
use ganger_sync::scoped;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

thread_local! {
    /// The innermost scope on this thread's stack: an even number, above the scopes around it. 0
    /// without a scope, and odd where this thread acts for another. Without a destructor: a
    /// destructor of another thread-local may drop a completer.
    static INNERMOST: Cell<u32> = const { Cell::new(0) };
    /// How many completers are collected.
    static COUNT: Cell<usize> = const { Cell::new(0) };
    static ASIDE: RefCell<Vec<Dropped>> = const { RefCell::new(Vec::new()) };
}

/// A completer dropped unused.
struct Dropped {
    scope: u32,
    sink: Arc<dyn CompletionSink>,
    tag: Tag,
    token: u64,
}

/// A scope, until it is dropped.
pub(crate) struct Scope {
    outer: u32,
}

/// Opens a scope on this thread.
pub(crate) fn open() -> Scope {
    let outer = INNERMOST.get();
    INNERMOST.set((outer | 1) + 1);
    Scope { outer }
}

/// Opens a scope as [`open`](self::open) does, outside of all scopes, which costs less.
pub(crate) fn open_first() -> Scope {
    debug_assert_eq!(INNERMOST.get(), 0, "a scope is open");
    INNERMOST.set(2);
    Scope { outer: 0 }
}

impl Drop for Scope {
    fn drop(&mut self) {
        answer(|| CommandError::Dropped);
        INNERMOST.set(self.outer);
    }
}

/// Collects the completer. Returns it outside of scopes.
#[cold]
pub(crate) fn put_aside<S: CompletionSink + 'static>(
    sink: Arc<S>,
    tag: Tag,
    token: u64,
) -> Result<(), Arc<S>> {
    let scope = INNERMOST.get();
    // An ending thread has lost its list.
    if scope == 0 || scope % 2 == 1 || ASIDE.try_with(|_| ()).is_err() {
        return Err(sink);
    }
    let dropped = Dropped {
        scope,
        sink,
        tag,
        token,
    };
    ASIDE.with_borrow_mut(|aside| {
        aside.push(dropped);
        COUNT.set(aside.len());
    });
    Ok(())
}

/// Answers the completers of the innermost scope.
#[inline]
pub(crate) fn answer(error: impl Fn() -> CommandError) {
    if COUNT.get() > 0 {
        answer_each(&error);
    }
}

#[cold]
fn answer_each(error: &dyn Fn() -> CommandError) {
    let scope = INNERMOST.get();
    // The answers run users' wakers, so the list is not borrowed meanwhile.
    let own = ASIDE.try_with(|aside| {
        let mut aside = aside.borrow_mut();
        let first = aside.partition_point(|it| it.scope < scope);
        let own = aside.split_off(first);
        COUNT.set(aside.len());
        if aside.is_empty() {
            *aside = Vec::new();
        }
        own
    });
    for Dropped {
        sink, tag, token, ..
    } in own.unwrap_or_default()
    {
        sink.complete(tag, token, Err(error()));
    }
}

/// Calls `f` as if on another thread, which is in no scope.
pub(crate) fn outside<R>(f: impl FnOnce() -> R) -> R {
    scoped(&INNERMOST, INNERMOST.get() | 1, f)
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use ganger_proc_api::{Completer, ExitCause, Payload, Pid};
    use std::sync::Mutex;

    /// Keeps its answers.
    #[derive(Default)]
    struct Asker(Mutex<Vec<(Tag, String)>>);

    impl Asker {
        fn answers(&self) -> Vec<(Tag, String)> {
            std::mem::take(&mut self.0.lock().unwrap())
        }
    }

    impl CompletionSink for Asker {
        fn complete(self: Arc<Self>, tag: Tag, _: u64, result: Result<Payload, CommandError>) {
            let text = format!("{:?}", result.unwrap_err());
            self.0.lock().unwrap().push((tag, text));
        }

        fn complete_dropped(self: Arc<Self>, tag: Tag, token: u64) {
            if let Err(this) = put_aside(self, tag, token) {
                this.complete(tag, token, Err(CommandError::Dropped));
            }
        }

        fn pid(&self) -> Option<Pid> {
            None
        }

        fn is_cancelled(&self, _: u64) -> bool {
            false
        }
    }

    fn dropped(tag: Tag) -> (Tag, String) {
        (tag, "Dropped".to_owned())
    }

    fn ended(tag: Tag) -> (Tag, String) {
        (tag, "Ended(Terminated)".to_owned())
    }

    // pins: C1, C2
    #[test]
    fn each_is_answered_once_by_the_scope_or_by_the_end_within_it() {
        let asker = Arc::new(Asker::default());
        let drop_one = |tag| drop(Completer::new(asker.clone(), tag, 0));
        let end = || answer(|| CommandError::Ended(ExitCause::Terminated));
        drop_one(1);
        assert_eq!(asker.answers(), [dropped(1)]);
        let outer = open();
        drop_one(2);
        {
            let _inner = open();
            drop_one(3);
            drop_one(4);
            assert_eq!(asker.answers(), []);
            end();
            assert_eq!(asker.answers(), [ended(3), ended(4)]);
            drop_one(5);
        }
        assert_eq!(asker.answers(), [dropped(5)]);
        drop_one(6);
        end();
        assert_eq!(asker.answers(), [ended(2), ended(6)]);
        drop_one(7);
        drop(outer);
        assert_eq!(asker.answers(), [dropped(7)]);
        drop_one(8);
        assert_eq!(asker.answers(), [dropped(8)]);
    }
}
