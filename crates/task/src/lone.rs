//! The word of a task's lone wait for an answer.
//!
//! **Problem.** Most tasks wait for a single answer at a time: for a command, a question or a
//! sleep. A place in the table of waits costs an allocation, and two moves of the answer.
//!
//! **Rejected.** The first place of the table in the task: each task would have its 64 bytes.
//!
//! **Protocol**
//! 1. A wait for an answer, polled by the task itself, becomes the *lone* wait if the task has no
//!    lone wait ([`Lone::open`]). Its tag has the bit [`LONE`].
//! 2. A step whose only event is the answer to the lone wait leaves the answer among the events
//!    ([`Lone::arrives`]). The wait takes it from there.
//! 3. In any other case the lone wait moves to the table of waits under its tag: other events came
//!    with the answer, or the step ends before the wait takes it, or the wait is polled with
//!    another waker.

use ganger_proc_api::Tag;

/// The bit of the tags of lone waits. Tags of places in the table lack it.
pub(crate) const LONE: Tag = 1 << 63;

/// The tag of the last lone wait, with the state in the two lowest bits.
#[derive(Debug)]
pub(crate) struct Lone(Tag);

/// No lone wait.
const OVER: u64 = 0;
/// The wait has no answer.
const OPEN: u64 = 1;
/// The answer is the only event of the step.
const HERE: u64 = 2;
/// The table of waits has the wait.
const IN_TABLE: u64 = 3;

/// The bits of the state.
const STATE: u64 = 3;

impl Default for Lone {
    fn default() -> Self {
        Self(LONE | OVER)
    }
}

impl Lone {
    #[inline]
    fn state(&self) -> u64 {
        self.0 & STATE
    }

    #[inline]
    fn set(&mut self, state: u64) {
        self.0 = self.tag() | state;
    }

    /// Opens a lone wait, unless the task has a lone wait. Returns its tag. No two waits have the
    /// same tag.
    #[inline]
    pub(crate) fn open(&mut self) -> Option<Tag> {
        if self.state() != OVER {
            return None;
        }
        let tag = LONE | self.0.wrapping_add(STATE + 1);
        self.0 = tag | OPEN;
        Some(tag)
    }

    /// Returns the tag of the last lone wait.
    #[inline]
    pub(crate) fn tag(&self) -> Tag {
        self.0 & !STATE
    }

    /// Returns whether the lone wait has no answer.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.state() == OPEN
    }

    /// Returns whether the lone wait has no answer, and has this tag.
    #[inline]
    pub(crate) fn is_open_as(&self, tag: Tag) -> bool {
        self.0 == tag | OPEN
    }

    /// Notes that the answer with this tag is the only event of the step. Returns `false`, and does
    /// nothing, if the answer is not for the lone wait.
    #[inline]
    pub(crate) fn arrives(&mut self, tag: Tag) -> bool {
        let is_its = self.is_open_as(tag);
        if is_its {
            self.0 = tag | HERE;
        }
        is_its
    }

    /// Returns whether the only event of the step is the answer to the lone wait.
    #[inline]
    pub(crate) fn is_here(&self) -> bool {
        self.state() == HERE
    }

    /// Returns whether the only event of the step is the answer with this tag.
    #[inline]
    pub(crate) fn is_here_as(&self, tag: Tag) -> bool {
        self.0 == tag | HERE
    }

    /// Notes that the table has the wait from now on.
    pub(crate) fn moves(&mut self) {
        self.set(IN_TABLE);
    }

    /// Notes that the wait with this tag is over.
    #[inline]
    pub(crate) fn end(&mut self, tag: Tag) {
        if self.tag() == tag {
            self.set(OVER);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wait_is_the_lone_one_until_it_is_over() {
        let mut lone = Lone::default();
        let first = lone.open().unwrap();
        assert!(lone.open().is_none() && lone.is_open_as(first));
        assert!(!lone.arrives(first + 4) && lone.arrives(first) && !lone.arrives(first));
        assert!(lone.is_here_as(first) && lone.open().is_none());
        lone.moves();
        assert!(!lone.is_here() && !lone.is_open() && lone.open().is_none());
        lone.end(first + 4);
        assert!(lone.open().is_none());
        lone.end(first);
        let second = lone.open().unwrap();
        assert!(first != second && [first, second].iter().all(|it| it & LONE != 0));
        // An earlier wait ends once.
        lone.end(first);
        assert!(lone.is_open_as(second));
    }
}
