//! The parameters of a round of the soak, drawn from its seed.

use fastrand::Rng;
use ganger_soak::Kind;
use ganger_soak::chance::pick;

/// A round's parameters.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) kind: Kind,
    pub(crate) items: usize,
    pub(crate) capacity: usize,
    /// The longest burst of the owner.
    pub(crate) push: usize,
    pub(crate) pop: usize,
    /// How rarely the owner does this after a burst; 0 is never.
    pub(crate) expose: u32,
    pub(crate) shrink: u32,
    pub(crate) steal: u32,
    /// How rarely the owner stands still until thieves have taken everything.
    pub(crate) stand: u32,
    /// Whether the last items are left to the worker's destructor.
    pub(crate) leave: bool,
    /// How rarely a thread yields.
    pub(crate) yields: u32,
    pub(crate) thieves: Vec<Thief>,
}

/// A thief's parameters.
#[derive(Debug)]
pub(crate) struct Thief {
    pub(crate) seed: u64,
    /// How many of eight attempts are for a single item, rather than half.
    pub(crate) singles: u32,
    /// The largest limit of the other attempts.
    pub(crate) limit: usize,
    pub(crate) capacity: usize,
    /// Whether it keeps a part of its loot in its own deque, where other thieves steal it.
    pub(crate) keeps: bool,
    /// How many of eight attempts are on another thief.
    pub(crate) detours: u32,
    /// Whether the last items of its own deque are left to the destructor.
    pub(crate) leave: bool,
}

impl ganger_soak::Plan for Plan {
    fn new(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        // Short bursts keep the deque nearly empty, where the races are.
        let push = *pick(&mut random, &[1, 2, 4, 4, 16, 100, 3_000]);
        Self {
            seed,
            kind: *pick(&mut random, &Kind::ALL),
            // Most rounds are short, for beginnings and ends; some are long. If threads meet often,
            // an item takes long, so the round has fewer items.
            items: (random.usize(1..64) << random.u32(3..10)) * push.clamp(1, 50),
            capacity: *pick(&mut random, &[0, 1, 2, 16, 1_000]),
            push,
            pop: *pick(&mut random, &[0, push / 2, push, push, 2 * push]),
            expose: *pick(&mut random, &[0, 1, 4, 50]),
            shrink: *pick(&mut random, &[0, 3, 50, 1_000]),
            steal: *pick(&mut random, &[0, 20]),
            stand: *pick(&mut random, &[0, 30, 1_000]),
            leave: random.bool(),
            yields: *pick(&mut random, &[8, 64, 500]),
            thieves: (0..random.u32(1..=4))
                .map(|_| Thief::new(&mut random))
                .collect(),
        }
    }
}

impl Thief {
    fn new(random: &mut Rng) -> Self {
        Self {
            seed: random.u64(..),
            singles: *pick(random, &[0, 1, 4, 8]),
            limit: *pick(random, &[1, 2, 32, usize::MAX]),
            capacity: *pick(random, &[0, 1, 64]),
            keeps: random.bool(),
            detours: *pick(random, &[0, 1, 6]),
            leave: random.bool(),
        }
    }
}
