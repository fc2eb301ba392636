//! The name of a type in two bytes.
//!
//! **Problem.** The error of a send to another node names the type that has no codec. A name is two
//! words, and each successful send would pay for so large a result.
//!
//! **Protocol.** As for pairs of types (`type_pair.rs`): the first refusal puts the name into a
//! table, and the error carries its place. The table is bounded, and nothing leaves it.

use std::fmt;
use std::sync::{PoisonError, RwLock};

/// The most names. A program that refuses more types has a defect.
const MAX: usize = 1_024;

static NAMES: RwLock<Vec<&'static str>> = RwLock::new(Vec::new());

/// The name of a type, in the error of a send.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TypeName(u16);

impl TypeName {
    /// Stores the name, for an error. Takes a lock. O(names so far).
    #[must_use]
    #[cold]
    pub fn new(name: &'static str) -> Self {
        let mut names = NAMES.write().unwrap_or_else(PoisonError::into_inner);
        let place = names.iter().position(|it| *it == name);
        let place = place.unwrap_or_else(|| {
            if names.len() < MAX {
                names.push(name);
                names.len() - 1
            } else {
                MAX
            }
        });
        Self(u16::try_from(place).unwrap_or(u16::MAX))
    }

    /// Returns the name, with its path; "another type" when the table was full.
    #[must_use]
    pub fn get(self) -> &'static str {
        let names = NAMES.read().unwrap_or_else(PoisonError::into_inner);
        let name = names.get(usize::from(self.0)).copied();
        name.unwrap_or("another type")
    }
}

impl fmt::Display for TypeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl fmt::Debug for TypeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TypeName").field(&self.get()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_once() {
        let name = TypeName::new("shop::Order");
        assert_eq!(TypeName::new("shop::Order"), name);
        assert_ne!(TypeName::new("shop::Cart"), name);
        assert_eq!(name.to_string(), "shop::Order");
        assert_eq!(TypeName(u16::MAX).get(), "another type");
    }
}
