//! What is left of `check` without the feature: nothing but the pushes themselves.

use crate::base::config::Config;
use crate::core::local::LocalQueue;
use crate::core::shared::Shared;
use crate::core::token::Token;
use ganger_mpsc::Injector;

pub(crate) struct Check;

pub(crate) struct Pushing;

pub(crate) struct Glimpse;

pub(crate) struct ProcessCheck;

impl Check {
    pub(crate) fn new(_: &Config, _: usize) -> Self {
        Self
    }

    #[inline(always)]
    pub(crate) fn begin_pick(&self, _: usize) {}

    #[inline(always)]
    pub(crate) fn end_pick(&self, _: usize) {}

    #[inline(always)]
    pub(crate) fn begin_push(&self, _: impl FnOnce() -> Option<usize>) -> Pushing {
        Pushing
    }

    #[inline(always)]
    pub(crate) fn begin_look(&self) {}

    #[inline(always)]
    pub(crate) fn end_look(&self) {}

    #[inline(always)]
    pub(crate) fn rest(&self) {}

    #[inline(always)]
    pub(crate) fn push(&self, queue: &LocalQueue, token: Token) {
        queue.deque.push(token);
    }

    #[inline(always)]
    pub(crate) fn push_global(&self, global: &Injector<Token>, token: Token) {
        global.push(token);
    }

    #[inline(always)]
    pub(crate) fn push_urgent(&self, urgent: &Injector<Token>, token: Token) {
        urgent.push(token);
    }

    #[inline(always)]
    pub(crate) fn move_global(&self, global: &Injector<Token>, token: Token) {
        global.push(token);
    }

    #[inline(always)]
    pub(crate) fn glimpse(&self, _: usize) -> Glimpse {
        Glimpse
    }

    #[inline(always)]
    pub(crate) fn steal(&self, _: usize, _: Glimpse) {}

    #[inline(always)]
    pub(crate) fn balance(&self, _: usize, _: Glimpse) {}

    #[inline(always)]
    pub(crate) fn take_over(&self, _: usize, _: usize) {}

    #[inline(always)]
    pub(crate) fn pick(&self, _: usize, _: &Token) {}

    #[inline(always)]
    pub(crate) fn audit(&self, _: &Shared) -> bool {
        false
    }
}

impl ProcessCheck {
    #[inline(always)]
    pub(crate) fn new(_: &Check) -> Self {
        Self
    }

    #[inline(always)]
    pub(crate) fn begin(&self) {}

    #[inline(always)]
    pub(crate) fn end(&self) {}
}
