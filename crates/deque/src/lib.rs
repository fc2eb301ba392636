#![doc = include_str!("../README.md")]
//! # How it works
//!
//! **Problem.** The owner pushes and pops all the time, thieves come rarely, and when they come they
//! should take many items at once. A read-modify-write or a full fence costs as much as everything
//! else in a pop: the owner's path must have neither.
//!
//! **Rejected.**
//! - *Chase and Lev's deque with a CAS from `top` to `top + n`.* The owner pops without a CAS while
//!   `bottom > top`, also what lies between `top` and `top + n`: top = 0, bottom = 4; a thief reads
//!   n = 2; the owner pops 3, 2 and 1; the thief's CAS succeeds, and item 1 is there twice.
//! - *The same with one CAS an item.* Correct, with a full fence in every pop and n CASes for n items.
//! - *Two heads and a bounded ring.* The owner still pays a CAS for every pop.
//! - *Help from the owner.* Thieves that ask and wait starve while the owner runs a long task.
//!
//! **State.** Items have consecutive indices; a ring holds those from `head` to `bottom`. The first
//! `exposed` of them may be claimed by thieves, up to the *limit*; the rest is the owner's own.
//!
//! ```text
//!        head              limit                  bottom
//!   ......|#################|######################|......
//!          exposed: thieves  private: the owner
//!          claim by CAS      pops without one
//! ```
//!
//! `head` and `exposed` are in one word together with a `tentative` bit and a version, so that a
//! claim compares all of it. `released` counts the claimed items that have been copied out.
//!
//! **Owner.**
//! 1. *Push*: write the slot, then `bottom` up. When the ring is full as far as it knows, it compares
//!    `released` with `head`: if they are equal every slot below `head` is free again; otherwise it
//!    moves to a new ring and never writes the old one again.
//! 2. *Pop*: `bottom` down; light fence; read the word. At or above the limit, the item is its own.
//!    (`known` makes that check cheap.)
//! 3. Below the limit: CAS the limit to the middle of what is left, and take the item. If thieves
//!    have claimed it, the deque is empty, and the next push goes above the item, to `head`.
//! 4. *Expose*: CAS the limit to `bottom`.
//! 5. *Shrink*: move to a smaller ring, as in 1 to a larger one.
//!
//! **Thief.**
//! 1. Read the word and `bottom`. Nothing between them: return.
//! 2. If nothing is exposed: announce it, by a CAS that exposes everything, tentatively. If somebody
//!    else has announced it already, that does.
//! 3. If it is tentative: heavy fence, and read `bottom` again.
//! 4. Load the ring; then claim half, by a CAS that moves `head`, and settles the rest.
//! 5. Copy the items; add their number to `released`.
//!
//! **Proof sketch.** *Claims*: the owner reclaims only by changing the word, and a claim compares all
//! of it, so a thief whose view is out of date fails; the version tells a word that was changed back
//! from one that was not. *Free pops*: of an owner that stores `bottom = b`, fences and reads the word,
//! and a thief that announces an exposure of `b`, fences and reads `bottom`, one sees the other's store.
//! If it is the owner, it goes the long way; if it is the thief, it leaves `b` alone, or finds a
//! newer item there that was pushed after.
//!
//! *Slots*: the ring is loaded after the bounds of the claim, so it is not too old to hold the items,
//! and before the claim, so the owner cannot have left them behind when it moved. Slots are read after
//! the claim only, and written again after they are released only: no torn reads, any `T`.
//!
//! **Linearization points.**
//!
//! | operation | takes effect at |
//! |---|---|
//! | `push` | its store of `bottom` |
//! | `pop`, private | its store of `bottom` |
//! | `pop`, exposed | its CAS |
//! | `pop`, `None` | its last load of the word, which shows `head` past the item |
//! | `steal`, `steal_half_into` | the CAS that claims; for `dest`, its store of `bottom` |
//! | the same, `Empty` | the load of `bottom` that leaves nothing above `head` |
//!
//! A pop of the last item has stored `bottom` before it takes effect, so a thief may call a deque empty
//! whose last item the owner is about to take, or to lose to another thief that is already at work.
//!
//! **Files.** `word` is the state machine, `known` what the owner remembers of it, `shared` the fields
//! around it with their orderings, `ring` the slots, `reclaim` the old rings; `worker` and `stealer`
//! are the two protocols. `counts` lets tests count what is expensive.

mod counts;
mod known;
#[cfg(all(test, loom))]
mod loom_publication;
mod reclaim;
mod ring;
mod shared;
mod steal;
mod stealer;
mod word;
mod worker;

pub use steal::Steal;
pub use stealer::Stealer;
pub use worker::Worker;
