//! What is sent.

/// A message that carries a number.
pub trait Payload: Copy + Send + 'static {
    /// Its name in the tables.
    const NAME: &'static str;

    /// Returns a message with a number.
    fn of(number: u64) -> Self;

    /// Returns a value to which every word contributes, so that no queue is spared copying all
    /// words: the number times [`Payload::WORDS`].
    fn weight(self) -> u64;

    /// The number of words.
    const WORDS: u64;
}

impl Payload for u64 {
    const NAME: &'static str = "u64";
    const WORDS: u64 = 1;

    #[inline]
    fn of(number: u64) -> Self {
        number
    }

    #[inline]
    fn weight(self) -> u64 {
        self
    }
}

impl Payload for [u64; 6] {
    const NAME: &'static str = "48 bytes";
    const WORDS: u64 = 6;

    #[inline]
    fn of(number: u64) -> Self {
        [number; 6]
    }

    #[inline]
    fn weight(self) -> u64 {
        self.iter().sum()
    }
}

/// Returns the weight of a message for each number from 1 to `last`.
pub(super) fn weight_to<P: Payload>(last: u64) -> u64 {
    P::WORDS * (last * (last + 1) / 2)
}
