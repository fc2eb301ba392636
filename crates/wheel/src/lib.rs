#![doc = include_str!("../README.md")]
//! # How it works
//!
//! **Problem.** Most timers are timeouts, which are cancelled. So to insert and to cancel should
//! cost nanoseconds and no memory that stays; and many timers may be due at once.
//!
//! **Rejected.**
//! - *Heaps and sorted maps*: each operation costs a logarithm in cache misses.
//! - *Slots that link their timers*: a slot that is emptied is a chain of loads, each of which
//!   waits for the one before.
//! - *Wheels that leave timers where they are*: late by an eighth of the delay.
//! - *Cancelled timers that stay until they are due*: memory for nothing, for minutes.
//!
//! **State.** A tick is a number of nine digits to the base 64. A timer is on the level of the
//! highest digit in which its tick differs from the wheel's, and there in the slot of that digit.
//! So all timers of a level are earlier than those of higher ones, and the slots of a level are in
//! order.
//!
//! **Protocol.**
//! 1. *Insert*: into the last place of the slot. An entry, which the key names, has the value and
//!    the place.
//! 2. *Cancel*: the last timer of the slot moves to the place that is free. If the cancelled one
//!    may have been the slot's earliest, the slot is marked.
//! 3. *Next*: the earliest of the first slot. A marked slot is read for it.
//! 4. *Advance*: the wheel's tick moves to the beginning of the first slot. On the lowest level all
//!    timers of the slot fire. On another they move down, as their ticks differ less now.
//! 5. *Stop half-way*: the slot that is being emptied stays the current one, and comes before all
//!    others. New timers cannot get into it: their ticks no longer differ in its digit, unless they
//!    are due.
//!
//! **Proof sketch.** *Order*: the first slot begins no later than any timer, and when its beginning
//! is the wheel's tick, nothing earlier is left. *Earliest*: a move changes no deadline, so what a
//! slot knew before it was emptied holds for what has moved and what has not, together. It ends
//! with a cancellation, which therefore marks the current slot too.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

// Each of these may import those to its right: wheel > entries > slots > blocks.
mod blocks;
mod entries;
mod slots;
mod wheel;

pub use entries::Key;
pub use wheel::Wheel;
