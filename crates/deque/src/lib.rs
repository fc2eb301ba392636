#![doc = include_str!("../README.md")]
//! # How it works
//!
//! **Problem.** The owner pushes and pops all the time. Thieves come rarely, and should then take
//! many items at once. A read-modify-write or a full fence costs as much as the rest of a pop: the
//! owner's path must have neither.
//!
//! **Rejected.**
//! - *Chase and Lev's deque with a CAS from `top` to `top + n`.* While `bottom > top` the owner
//!   pops without a CAS, also between `top` and `top + n`. Take top = 0 and bottom = 4: a thief
//!   reads n = 2; the owner pops 3, 2 and 1; the thief's CAS succeeds, and item 1 is taken twice.
//! - *The same with one CAS an item.* Correct, with a full fence in every pop and n CASes for n
//!   items.
//! - *Two heads and a bounded ring.* The owner pays a CAS for every pop.
//! - *Help from the owner.* Thieves that ask and wait starve while the owner runs a long task.
//!
//! **State.** Items have consecutive indices; a ring holds the items from `head` to `bottom`.
//! Thieves may claim the first `exposed` items, up to the *limit*. The other items are the owner's
//! own.
//!
//! ```text
//!        head              limit                  bottom
//!   ......|#################|######################|......
//!          exposed: thieves  private: the owner
//!          claim by CAS      pops without one
//! ```
//!
//! `head` and `exposed` share a word with a `tentative` bit and a version, so a claim compares all
//! of them. `released` counts the claimed items that have been copied out.
//!
//! **Owner.**
//! 1. *Push*: write the slot, then move `bottom` up. If no slot is known to be free, compare
//!    `released` with `head`. If they are equal, every slot below `head` is free again. Otherwise
//!    move to a new ring, and never write the old ring again.
//! 2. *Pop*: move `bottom` down; light fence; read the word. At or above the limit, the item is the
//!    owner's. (`known` makes this check cheap.)
//! 3. *Pop below the limit*: CAS the limit to the middle of the remaining items, and take the item.
//!    If thieves have claimed it, the deque is empty, and the next push goes above it, to `head`.
//! 4. *Expose*: CAS the limit to `bottom`.
//! 5. *Shrink*: move to a smaller ring, as in 1 to a larger ring.
//!
//! **Thief.**
//! 1. Read the word and `bottom`. If no item lies between them, return.
//! 2. If no item is exposed, announce a claim: a CAS exposes everything, tentatively. The
//!    announcement of another thief serves as well.
//! 3. If the word is tentative, make a heavy fence, and read `bottom` again.
//! 4. Load the ring. Then claim half, by a CAS that moves `head` and settles the rest.
//! 5. Copy the items, and add their number to `released`.
//!
//! **Proof sketch.** *Claims*: the owner takes back only by changing the word, and a claim compares
//! the whole word. So a thief with an outdated view fails. The version distinguishes a word that
//! was changed back from an unchanged word.
//!
//! *Free pops*: the owner stores `bottom = b`, fences and reads the word. A thief announces an
//! exposure of `b`, fences and reads `bottom`. Either thread sees the other's store. If the owner
//! does, it takes the item back by a CAS. If the thief does, it leaves `b` alone, or finds a later
//! item there.
//!
//! *Slots*: a thief loads the ring after the bounds of the claim, so the ring is new enough to hold
//! the items. The thief loads the ring before the claim, so the owner has not left the items behind
//! in a move. Slots are read after the claim, and written again only after the release: no torn
//! reads, any `T`.
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
//! | `steal_half_and_pop` | as `steal_half_into` |
//! | all three, `Empty` | the load of `bottom` that leaves nothing above `head` |
//!
//! A pop of the last item stores `bottom` before it takes effect. Meanwhile a thief may call the
//! deque empty, although the owner may lose its last item to another thief.
//!
//! **Files**, from the bottom: `counts` lets tests count expensive operations; `word` is the state
//! machine, and `known` the owner's memory of it; `ring` has the slots, and `reclaim` frees old
//! rings; `shared` has the shared fields with their orderings; `worker` and `stealer` are the two
//! protocols.

mod counts;
mod known;
#[cfg(all(test, ganger_loom))]
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
