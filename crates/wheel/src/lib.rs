#![doc = include_str!("../README.md")]
//! # How it works
//!
//! **Problem.** Most timers are timeouts, which are usually cancelled. Inserting and cancelling
//! should therefore cost nanoseconds and no lasting memory; and many timers may be due at once.
//!
//! **Rejected.**
//! - *Heaps and sorted maps*: each operation costs a logarithm in cache misses.
//! - *Slots that link their timers*: to empty a slot is a chain of loads, each of which waits for
//!   the previous load.
//! - *Wheels that leave timers where they are*: late by an eighth of the delay.
//! - *Cancelled timers that stay until they are due*: memory for nothing, for minutes.
//!
//! **State.** A tick is a number of nine digits to the base 64. A timer is on the level of the
//! highest digit in which its tick differs from the wheel's, in the slot of its own digit on this
//! level. All timers of a level are therefore earlier than the timers of higher levels, and the
//! slots of a level are in order.
//!
//! **Protocol.**
//! 1. *Insert*: the timer takes the last place of the slot. The entry, which the key names, has the
//!    value and the place.
//! 2. *Cancel*: the last timer of the slot moves to the free place. The slot keeps its bound, which
//!    may then be too early.
//! 3. *Next*: the bound of the first slot, or of the current slot if that is earlier.
//! 4. *Advance*: the wheel's tick moves to the beginning of the first slot. On the lowest level all
//!    timers of the slot fire. On other levels they move down, as their ticks now differ in a lower
//!    digit only.
//! 5. *Stop half-way*: the slot that is being emptied stays the current slot, and comes before all
//!    other slots. New timers do not enter it, unless they are due: the ticks of later timers
//!    differ from the wheel's in another digit.
//!
//! **Proof sketch.** *Order*: the first slot begins no later than any timer's tick, and while the
//! wheel moves to its beginning, no earlier timer waits. *Bound*: a move changes no deadline, so
//! the bound of the current slot holds for its timers, whether they have moved down or not. A
//! cancellation removes a deadline, so the bound is only early, never late.
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
