//! The memory of tables that have been larger.

use std::collections::HashMap;
use std::hash::Hash;

/// Smaller tables keep their memory.
const SMALL: usize = 1024;

/// Releases memory after a removal, when most of the table is empty. O(1), amortised.
pub(crate) fn shrink<K: Eq + Hash, V>(table: &mut HashMap<K, V>) {
    if table.capacity() > SMALL && table.len() < table.capacity() / 8 {
        table.shrink_to(SMALL.max(2 * table.len()));
    }
}
