//! The number of tests, read from the test harness's output.

use crate::Failure;
use serde::Serialize;
use std::fmt;
use std::ops::AddAssign;

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Totals {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
}

impl Totals {
    /// Returns the count of a line of a test binary's output: nothing unless the line is the
    /// binary's last.
    ///
    /// `test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; …`
    pub(crate) fn of_line(line: &str) -> Self {
        let mut totals = Self::default();
        let result = line.trim_start().strip_prefix("test result: ");
        let parts = result.unwrap_or_default().split(['.', ';']);
        for (count, what) in parts.filter_map(|part| part.trim().split_once(' ')) {
            match what {
                "passed" => totals.passed = count.parse().unwrap_or(0),
                "failed" => totals.failed = count.parse().unwrap_or(0),
                _ => {}
            }
        }
        totals
    }

    /// Returns an error if a test has failed, or none has passed.
    pub(crate) fn result(self) -> Result<(), Failure> {
        match self.failed {
            0 if self.passed > 0 => Ok(()),
            0 => Err("there was no test to run".into()),
            _ => Err(format!("{} failed", self.failed).into()),
        }
    }

    /// Counts one test.
    pub(crate) fn count(&mut self, passed: bool) {
        match passed {
            true => self.passed += 1,
            false => self.failed += 1,
        }
    }
}

impl AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_lines_are_counted_and_others_are_not() {
        let mut totals = Totals::default();
        for line in [
            "test result: ok. 5 passed; 0 failed; 2 ignored; 0 measured; finished in 0.01s",
            "test tests::result ... ok",
            "test result: FAILED. 12 passed; 3 failed; 0 ignored; 0 filtered out",
            "5 passed; 5 failed",
        ] {
            totals += Totals::of_line(line);
        }
        assert_eq!(totals.to_string(), "17 passed, 3 failed");
    }
}
