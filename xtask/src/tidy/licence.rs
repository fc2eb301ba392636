//! Expressions of licences, as packages name them: `(MIT OR Apache-2.0) AND Unicode-3.0`.
//!
//! `AND` binds closer than `OR`; a licence with an exception, `A WITH B`, is a licence of its own;
//! `/` is an `OR` of old.

/// Whether the allowed licences are enough.
pub(super) fn holds(expression: &str, is_allowed: impl Fn(&str) -> bool) -> Result<bool, String> {
    let mut spaced = expression.replace('/', " OR ");
    for mark in ['(', ')'] {
        spaced = spaced.replace(mark, &format!(" {mark} "));
    }
    let mut words = Words {
        rest: spaced.split_whitespace().collect(),
        is_allowed,
    };
    words.rest.reverse();
    let holds = words.either()?;
    match words.rest.last() {
        Some(word) => Err(format!("`{word}` is one too many")),
        None => Ok(holds),
    }
}

struct Words<'a, F> {
    /// The words left, the next word last.
    rest: Vec<&'a str>,
    is_allowed: F,
}

impl<F: Fn(&str) -> bool> Words<'_, F> {
    fn either(&mut self) -> Result<bool, String> {
        let mut holds = self.both()?;
        while self.is_next("OR") {
            holds |= self.both()?;
        }
        Ok(holds)
    }

    fn both(&mut self) -> Result<bool, String> {
        let mut holds = self.one()?;
        while self.is_next("AND") {
            holds &= self.one()?;
        }
        Ok(holds)
    }

    fn one(&mut self) -> Result<bool, String> {
        if self.is_next("(") {
            let holds = self.either()?;
            let is_closed = self.is_next(")");
            return is_closed.then_some(holds).ok_or("no `)`".to_owned());
        }
        let licence = self.licence()?;
        if self.is_next("WITH") {
            let exception = self.licence()?;
            return Ok((self.is_allowed)(&format!("{licence} WITH {exception}")));
        }
        Ok((self.is_allowed)(&licence))
    }

    fn licence(&mut self) -> Result<String, String> {
        match self.rest.pop() {
            Some("AND" | "OR" | "WITH" | ")") | None => Err("a licence is missing".to_owned()),
            Some(licence) => Ok(licence.to_owned()),
        }
    }

    /// Takes the word if it is the next.
    fn is_next(&mut self, word: &str) -> bool {
        self.rest.pop_if(|next| *next == word).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_several_is_enough_and_all_of_several_are_needed() {
        let allowed = ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"];
        for (expression, expected) in [
            ("MIT", true),
            ("MPL-2.0", false),
            ("Unlicense OR MIT", true),
            ("Unlicense/MIT", true),
            ("MIT AND BSD-3-Clause", false),
            ("MIT AND Apache-2.0", true),
            ("MPL-2.0 AND MIT OR Apache-2.0", true),
            ("MPL-2.0 AND (MIT OR Apache-2.0)", false),
            ("(MIT OR MPL-2.0) AND Apache-2.0", true),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("MIT WITH LLVM-exception", false),
        ] {
            let holds = holds(expression, |licence| allowed.contains(&licence));
            assert_eq!(holds, Ok(expected), "{expression}");
        }
    }

    #[test]
    fn a_broken_expression_is_no_licence() {
        for expression in [
            "", "MIT OR", "AND MIT", "(MIT", "MIT)", "MIT MIT", "MIT WITH",
        ] {
            assert!(holds(expression, |_| true).is_err(), "{expression}");
        }
    }
}
