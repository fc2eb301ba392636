//! Completers whose message an encoder has taken.
//!
//! **Problem.** An encoder sees a message by reference, and a refused message keeps its completers.
//! When the message has been taken, its completers belong to the encoder, and the message is
//! dropped: that must not answer.
//!
//! **Rejected.** A mark in each completer: a word in all messages for a few. To take completers out
//! of the message by a lock inside: the same.
//!
//! **Protocol.** The encoder notes the parts of a completer. With them it makes another completer
//! for the same yield, when the message has been taken, and drops the message in a scope that has
//! the parts. A completer that is dropped unused, or completed by a destructor inside of the
//! message, asks the scope, and finds itself there.

use super::{CompletionSink, Tag};
use std::cell::{Cell, RefCell};
use std::sync::Arc;

thread_local! {
    /// How many parts are in scopes of this thread. Without a destructor: a destructor of another
    /// thread-local may drop a completer.
    static COUNT: Cell<usize> = const { Cell::new(0) };
    static TAKEN: RefCell<Vec<Parts>> = const { RefCell::new(Vec::new()) };
}

/// A completer without its duty.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) sink: Arc<dyn CompletionSink>,
    pub(crate) tag: Tag,
    pub(crate) token: u64,
}

impl Parts {
    /// Returns whether both are of the same yield.
    #[cfg(feature = "serde")]
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.is_of(&other.sink, other.tag, other.token)
    }

    fn is_of(&self, sink: &Arc<dyn CompletionSink>, tag: Tag, token: u64) -> bool {
        Arc::as_ptr(&self.sink).addr() == Arc::as_ptr(sink).addr()
            && (self.tag, self.token) == (tag, token)
    }
}

/// Returns whether the completer that is used or dropped here and now is of a message that has been
/// taken. Forgets the completer then.
#[inline]
pub(super) fn is_taken(sink: &Arc<dyn CompletionSink>, tag: Tag, token: u64) -> bool {
    COUNT.get() > 0 && remove(sink, tag, token)
}

#[cold]
fn remove(sink: &Arc<dyn CompletionSink>, tag: Tag, token: u64) -> bool {
    let removed = TAKEN.try_with(|taken| {
        let mut taken = taken.borrow_mut();
        let at = taken.iter().position(|it| it.is_of(sink, tag, token))?;
        let parts = taken.swap_remove(at);
        COUNT.set(taken.len());
        Some(parts)
    });
    // The sink's destructor is foreign code, and runs here, without the list.
    removed.is_ok_and(|it| it.is_some())
}

/// Calls `drop_message`, in which completers with these parts answer nothing.
#[cfg(feature = "serde")]
pub(crate) fn silently(parts: Vec<Parts>, drop_message: impl FnOnce()) {
    struct Scope(Vec<Parts>);

    impl Drop for Scope {
        fn drop(&mut self) {
            let left = TAKEN.with_borrow_mut(|taken| {
                let is_own = |it: &mut Parts| self.0.iter().any(|own| own.is_same(it));
                let left: Vec<_> = taken.extract_if(.., is_own).collect();
                COUNT.set(taken.len());
                left
            });
            drop(left);
        }
    }

    TAKEN.with_borrow_mut(|taken| {
        taken.extend(parts.iter().cloned());
        COUNT.set(taken.len());
    });
    let _scope = Scope(parts);
    drop_message();
}
