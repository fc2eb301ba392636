//! Elements in blocks of the same size: growth adds a block, and no element moves.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::{Index, IndexMut, Range};

/// The end of a list of elements that are linked by index.
pub(crate) const NONE: u32 = u32::MAX;

/// Blocks of `N` elements; `N` is a power of two.
pub(crate) struct Blocks<E, const N: usize>(Vec<Box<[E; N]>>);

impl<E, const N: usize> Blocks<E, N> {
    pub(crate) const fn new() -> Self {
        const { assert!(N.is_power_of_two()) };
        Self(Vec::new())
    }

    /// Adds a block and returns the indices of its elements, which must lie below `most`.
    #[cold]
    pub(crate) fn grow(&mut self, most: u32, make: impl FnMut(u32) -> E) -> Range<u32> {
        let first = self.0.len() * N;
        let range = u32::try_from(first)
            .ok()
            .zip(u32::try_from(first + N).ok())
            .filter(|&(_, end)| end <= most);
        let (first, end) = range.expect("capacity overflow");
        let block: Box<[E]> = (first..end).map(make).collect();
        let block = <Box<[E; N]>>::try_from(block).ok();
        self.0.push(block.expect("a block has N elements"));
        first..end
    }

    /// Removes blocks from the end while `is_idle` returns true for the last block.
    pub(crate) fn shrink(&mut self, mut is_idle: impl FnMut(&[E; N]) -> bool) {
        while self.0.last().is_some_and(|block| is_idle(block)) {
            self.0.pop();
        }
        self.0.shrink_to_fit();
    }

    pub(crate) fn last(&self) -> Option<&[E; N]> {
        self.0.last().map(|block| &**block)
    }

    /// Returns the number of elements.
    pub(crate) fn len(&self) -> u32 {
        // The conversion never fails: `grow` has made an index for each element.
        u32::try_from(self.0.len() * N).unwrap_or(NONE)
    }

    pub(crate) fn get(&self, index: u32) -> Option<&E> {
        let block = self.0.get(index as usize / N)?;
        Some(&block[index as usize % N])
    }
}

impl<E, const N: usize> Index<u32> for Blocks<E, N> {
    type Output = E;

    fn index(&self, index: u32) -> &E {
        &self.0[index as usize / N][index as usize % N]
    }
}

impl<E, const N: usize> IndexMut<u32> for Blocks<E, N> {
    fn index_mut(&mut self, index: u32) -> &mut E {
        &mut self.0[index as usize / N][index as usize % N]
    }
}
