//! The settings of a soak in the environment.

use std::env;

/// For how many seconds to go on.
pub(crate) const SECONDS: &str = "GANGER_SOAK_SECONDS";

/// The seed to start with.
pub(crate) const SEED: &str = "GANGER_STRESS_SEED";

/// Returns the number of an environment variable, if it is set.
pub(crate) fn number(name: &str) -> Option<u64> {
    parse(name, &env::var_os(name)?.to_string_lossy())
}

fn parse(name: &str, text: &str) -> Option<u64> {
    match text.parse() {
        Ok(number) => Some(number),
        Err(error) => panic!("{name} has to be a whole number, and is {text:?}: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_set_is_none() {
        assert_eq!(number("GANGER_WHICH_NOBODY_SETS"), None);
    }

    #[test]
    fn numbers_are_read() {
        assert_eq!(parse(SEED, "18446744073709551615"), Some(u64::MAX));
    }

    #[test]
    #[should_panic(expected = "GANGER_SOAK_SECONDS has to be a whole number, and is \"1.5\"")]
    fn anything_else_is_an_error() {
        parse(SECONDS, "1.5");
    }
}
