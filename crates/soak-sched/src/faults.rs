//! Faults on purpose: their rates. Each is counted before it happens.

use crate::account::Account;
use fastrand::Rng;
use ganger::BoxError;
use ganger_soak::chance::{one_in, pick};
use std::panic;

/// The beginning of every panic on purpose; such panics are not reported on the terminal.
pub(crate) const ON_PURPOSE: &str = "on purpose";

/// Once in how many times something goes wrong; 0: never.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Faults {
    pub(crate) step_panics: u32,
    pub(crate) step_fails: u32,
    pub(crate) init_panics: u32,
    pub(crate) init_fails: u32,
    pub(crate) close_panics: u32,
    /// A step leaves some of its events to the next.
    pub(crate) leave_some: u32,
}

impl Faults {
    /// Draws faults of all kinds, or of some, or none.
    pub(crate) fn new(random: &mut Rng) -> Self {
        let mut rarely = || *pick(random, &[0, 0, 50, 1_000]);
        Self {
            step_panics: rarely(),
            step_fails: rarely(),
            init_panics: rarely(),
            init_fails: rarely(),
            close_panics: rarely(),
            leave_some: *pick(random, &[0, 2, 20]),
        }
    }

    /// Returns the faults that end no process, for workloads that need all of their processes.
    pub(crate) fn harmless(self) -> Self {
        Self {
            close_panics: self.close_panics,
            leave_some: self.leave_some,
            ..Self::default()
        }
    }

    /// Makes a fault in a step: an error, a panic, or neither.
    pub(crate) fn in_step(self, account: &Account, random: &mut Rng) -> Result<(), BoxError> {
        panics("a step", self.step_panics, account, random);
        fails("a step", self.step_fails, random)
    }

    pub(crate) fn in_init(self, account: &Account, random: &mut Rng) -> Result<(), BoxError> {
        panics("an init", self.init_panics, account, random);
        fails("an init", self.init_fails, random)
    }

    pub(crate) fn in_close(self, account: &Account, random: &mut Rng) {
        panics("a close", self.close_panics, account, random);
    }
}

fn panics(place: &str, rarely: u32, account: &Account, random: &mut Rng) {
    if one_in(random, rarely) {
        account.panics.bump();
        panic!("{ON_PURPOSE}: {place}");
    }
}

fn fails(place: &str, rarely: u32, random: &mut Rng) -> Result<(), BoxError> {
    if one_in(random, rarely) {
        return Err(format!("{ON_PURPOSE}: {place}").into());
    }
    Ok(())
}

/// Lets panics on purpose happen without a report for each on the terminal.
pub fn quiet_panics() {
    let report = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let text = info.payload_as_str();
        if !text.is_some_and(|text| text.starts_with(ON_PURPOSE)) {
            report(info);
        }
    }));
}
