//! A list that only grows, and lends what is in it for as long as it lives.

use std::cell::OnceCell;

/// The schedulers of a run, with those of crashed machines: machines borrow them.
#[derive(Default)]
pub(crate) struct Lives<T>(OnceCell<Box<Link<T>>>);

struct Link<T> {
    item: T,
    next: Lives<T>,
}

impl<T> Lives<T> {
    pub(crate) fn new() -> Self {
        Self(OnceCell::new())
    }

    /// Adds an item. O(items).
    pub(crate) fn add(&self, item: T) -> &T {
        let mut end = self;
        while let Some(link) = end.0.get() {
            end = &link.next;
        }
        let next = Self::new();
        &end.0.get_or_init(|| Box::new(Link { item, next })).item
    }

    /// Returns the items, in the order in which they came.
    pub(crate) fn into_items(self) -> Vec<T> {
        let mut items = Vec::new();
        let mut rest = self.0.into_inner();
        while let Some(link) = rest {
            let Link { item, next } = *link;
            items.push(item);
            rest = next.0.into_inner();
        }
        items
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_stay_where_they_are_while_others_come() {
        let lives = Lives::new();
        let first = lives.add("first".to_owned());
        let second = lives.add("second".to_owned());
        assert_eq!((first.as_str(), second.as_str()), ("first", "second"));
        assert_eq!(lives.into_items(), ["first", "second"]);
    }
}
