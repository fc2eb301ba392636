//! The runs named in the environment.

use crate::failure::DECISIONS;
use std::env;

/// Returns the decisions in the environment, if it has any.
pub(crate) fn given() -> Option<Vec<u32>> {
    let decisions = variable(DECISIONS)?;
    let numbers = decisions.split(',');
    Some(numbers.map(|number| parse(DECISIONS, number)).collect())
}

pub(crate) fn variable(name: &str) -> Option<String> {
    let value = env::var_os(name).filter(|value| !value.is_empty())?;
    let text = value.into_string();
    Some(text.unwrap_or_else(|value| panic!("invalid {name}: {} is not a number", value.display())))
}

pub(crate) fn parse<N: std::str::FromStr>(name: &str, number: &str) -> N {
    let parsed = number.trim().parse();
    parsed.unwrap_or_else(|_| panic!("invalid {name}: {number:?} is not a number, or too large"))
}
