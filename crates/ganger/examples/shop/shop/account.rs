//! The events of a run, in numbers.

use std::fmt;

/// The account of a run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Account {
    /// Questions of customers.
    pub(crate) asked: u64,
    /// Questions with an answer.
    pub(crate) answered: u64,
    /// Attempts beyond the first of a question.
    pub(crate) retried: u64,
    /// Questions given up: their customers were told.
    pub(crate) lost: u64,
    /// Lines in the ledger.
    pub(crate) done: u64,
    /// Of these, lines of a question done before.
    pub(crate) twice: u64,
    /// Owners of carts, in turn.
    pub(crate) owners: u64,
    /// Writes of replaced owners, refused.
    pub(crate) fenced: u64,
    /// Of these, writes by an owner that has seen itself as the owner at a time when another was.
    pub(crate) two_owners: u64,
}

impl Account {
    /// Returns whether nothing was done twice, no cart had two owners at once, and each question
    /// has ended.
    pub(crate) fn is_right(&self) -> bool {
        let has_all = self.asked == self.answered + self.lost;
        // A question without an answer may be done.
        let is_between = (self.answered..=self.asked).contains(&self.done);
        has_all && is_between && self.twice == 0 && self.two_owners == 0
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "asked               {:>8}", self.asked)?;
        writeln!(f, "answered            {:>8}", self.answered)?;
        writeln!(f, "retried             {:>8}", self.retried)?;
        writeln!(f, "lost, with notice   {:>8}", self.lost)?;
        writeln!(f, "done                {:>8}", self.done)?;
        writeln!(f, "done twice          {:>8}", self.twice)?;
        writeln!(f, "owners of carts     {:>8}", self.owners)?;
        writeln!(f, "late writes refused {:>8}", self.fenced)?;
        write!(f, "two owners at once  {:>8}", self.two_owners)
    }
}
