//! The global queue: new processes, and processes that are woken from outside of any worker; first in, first out.

use crate::cell::ProcessCell;
use crate::fifo::Fifo;
use crate::token::Token;

pub(crate) struct GlobalQueue(Fifo<ProcessCell>);

impl GlobalQueue {
    pub(crate) fn new() -> Self {
        Self(Fifo::new())
    }

    /// Puts a process behind the others. To be followed by a wake-up, or by this worker's own look.
    #[inline]
    pub(crate) fn push(&self, token: Token) {
        self.0.push(token.into_raw());
    }

    /// Takes so many processes at the most, the first ones, and hands each to `give`. It may find fewer than
    /// there are, when one of them is being pushed.
    #[inline]
    pub(crate) fn take(&self, most: usize, mut give: impl FnMut(Token)) {
        // SAFETY: what is pushed are tokens, and each is taken once.
        self.0
            .take(most, |raw| give(unsafe { Token::from_raw(raw) }));
    }

    /// Takes the first process, as [`take`](Self::take) does.
    pub(crate) fn pop(&self) -> Option<Token> {
        let mut first = None;
        self.take(1, |token| first = Some(token));
        first
    }

    /// How many are queued, or about to be.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing is queued, or about to be.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
