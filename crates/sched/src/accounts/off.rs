//! What is left of `accounts` without the feature: nothing.

use crate::core::item::Item;
use crate::core::step_events::StepEvents;
use ganger_mpsc::Batch;
use ganger_proc_api::{Pid, Tag};
use std::marker::PhantomData;

pub(crate) struct Accounts;

#[derive(Clone, Copy)]
pub(crate) struct Noted;

#[derive(Clone, Copy)]
pub(crate) struct Closing<'a>(PhantomData<&'a ()>);

impl Accounts {
    pub(crate) fn new() -> Self {
        Self
    }

    #[inline(always)]
    pub(crate) fn note(&self, _: &Batch<Item>) -> Noted {
        Noted
    }

    #[inline(always)]
    pub(crate) fn note_item(&self, _: &Item) -> Noted {
        Noted
    }

    #[inline(always)]
    pub(crate) fn accept(&self, _: Pid, _: Noted) {}

    #[inline(always)]
    pub(crate) fn begin_yield(&self, _: Pid, _: u64, _: Tag) {}

    #[inline(always)]
    pub(crate) fn answer(&self) {}

    #[inline(always)]
    pub(crate) fn refuse_answer(&self) {}

    #[inline(always)]
    pub(crate) fn accept_answer(&self, _: Pid, _: Tag, _: u64) {}

    #[inline(always)]
    pub(crate) fn show(&self, _: Pid, _: &StepEvents<'_>) {}

    #[inline(always)]
    pub(crate) fn settle(&self, _: Pid, _: &StepEvents<'_>) {}

    #[inline(always)]
    pub(crate) fn take_upgrade(&self, _: Pid) {}

    #[inline(always)]
    pub(crate) fn upgrade(&self, _: Pid) {}

    #[inline(always)]
    pub(crate) fn open(&self, _: Pid) {}

    #[inline(always)]
    pub(crate) fn closing(&self, _: Pid) -> Closing<'_> {
        Closing(PhantomData)
    }

    #[inline(always)]
    pub(crate) fn drop_rest(&self, _: Pid, _: &Batch<Item>) {}

    #[inline(always)]
    pub(crate) fn exit(&self, _: Pid) {}

    #[inline(always)]
    pub(crate) fn forget(&self, _: Pid) {}

    #[inline(always)]
    pub(crate) fn tell(&self, _: Pid, _: impl FnOnce() -> bool) {}
}

impl Closing<'_> {
    #[inline(always)]
    pub(crate) fn close(self) {}
}
