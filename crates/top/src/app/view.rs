//! The views, and the cursor of each.

/// The content of the lower part of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum View {
    Processes,
    Groups,
    Tree,
    Waits,
    Sockets,
    Nodes,
    Alarms,
    Letters,
    /// A single process.
    One,
}

impl View {
    /// The views with a key, in the order of the key Tab.
    pub(crate) const ALL: [Self; 8] = [
        Self::Processes,
        Self::Groups,
        Self::Tree,
        Self::Waits,
        Self::Sockets,
        Self::Nodes,
        Self::Alarms,
        Self::Letters,
    ];

    pub(crate) fn key(self) -> Option<char> {
        match self {
            Self::Processes => Some('p'),
            Self::Groups => Some('g'),
            Self::Tree => Some('e'),
            Self::Waits => Some('w'),
            Self::Sockets => Some('o'),
            Self::Nodes => Some('c'),
            Self::Alarms => Some('a'),
            Self::Letters => Some('l'),
            Self::One => None,
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Processes => "Processes",
            Self::Groups => "Groups",
            Self::Tree => "Tree",
            Self::Waits => "Waits",
            Self::Sockets => "Sockets",
            Self::Nodes => "Nodes",
            Self::Alarms => "Alarms",
            Self::Letters => "Dead letters",
            Self::One => "Process",
        }
    }

    /// Returns the next view, or the view before.
    pub(crate) fn beside(self, is_forward: bool) -> Self {
        let count = Self::ALL.len();
        let Some(place) = Self::ALL.iter().position(|it| *it == self) else {
            return Self::Processes;
        };
        let step = if is_forward { 1 } else { count - 1 };
        Self::ALL[(place + step) % count]
    }
}

/// The selected row of a list. The selection stays with its row when the list changes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cursor {
    at: usize,
    /// The identity of the selected row; none until a person moves.
    id: Option<String>,
    /// The first visible row.
    offset: usize,
}

impl Cursor {
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Finds the selected row again in a changed list; where it is gone, its place stays.
    pub(crate) fn follow(&mut self, ids: &[String]) {
        let found = self
            .id
            .as_ref()
            .and_then(|id| ids.iter().position(|it| it == id));
        match found {
            Some(place) => self.at = place,
            None => {
                self.at = self.at.min(ids.len().saturating_sub(1));
                if self.id.is_some() {
                    self.id = ids.get(self.at).cloned();
                }
            }
        }
    }

    /// Selects a row.
    pub(crate) fn go(&mut self, to: usize, ids: &[String]) {
        self.at = to.min(ids.len().saturating_sub(1));
        self.id = ids.get(self.at).cloned();
    }

    /// Moves the visible part to the selected row. Returns the first visible row.
    pub(crate) fn scroll(&mut self, height: usize, count: usize) -> usize {
        let last = self.offset + height.max(1) - 1;
        if self.at < self.offset {
            self.offset = self.at;
        } else if self.at > last {
            self.offset += self.at - last;
        }
        self.offset = self.offset.min(count.saturating_sub(height));
        self.offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(names: &str) -> Vec<String> {
        names.chars().map(String::from).collect()
    }

    #[test]
    fn a_selection_stays_with_its_row() {
        let mut cursor = Cursor::default();
        cursor.follow(&ids("abcd"));
        cursor.follow(&ids("xabcd"));
        assert_eq!(
            cursor.at(),
            0,
            "without a selection the first row is marked"
        );
        cursor.go(2, &ids("abcd"));
        cursor.follow(&ids("dcba"));
        assert_eq!(cursor.at(), 1);
        cursor.follow(&ids("xyzdc"));
        assert_eq!(cursor.at(), 4);
        cursor.follow(&ids("xy"));
        assert_eq!(cursor.at(), 1, "the row is gone");
        cursor.follow(&ids("yx"));
        assert_eq!(cursor.at(), 0, "the row in its place is selected");
        cursor.follow(&[]);
        assert_eq!(cursor.at(), 0);
    }

    #[test]
    fn the_selected_row_is_visible() {
        let mut cursor = Cursor::default();
        let all = ids("abcdefghij");
        assert_eq!(cursor.scroll(4, 10), 0);
        cursor.go(5, &all);
        assert_eq!(cursor.scroll(4, 10), 2);
        cursor.go(3, &all);
        assert_eq!(cursor.scroll(4, 10), 2);
        cursor.go(1, &all);
        assert_eq!(cursor.scroll(4, 10), 1);
        cursor.go(99, &all);
        assert_eq!((cursor.at(), cursor.scroll(4, 10)), (9, 6));
        assert_eq!(cursor.scroll(20, 10), 0, "a larger screen shows all");
        assert_eq!(cursor.scroll(0, 10), 9);
    }

    #[test]
    fn tab_goes_around() {
        let mut view = View::Processes;
        for expected in View::ALL.into_iter().skip(1).chain([View::Processes]) {
            assert_eq!(view.beside(true).beside(false), view);
            view = view.beside(true);
            assert_eq!(view, expected);
        }
        assert_eq!(View::One.beside(true), View::Processes);
    }
}
