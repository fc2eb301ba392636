//! The results of two answers: rates, histories, warnings.

mod pulse;
mod rows;
mod warning;

pub(crate) use pulse::{Pulse, Quantiles, Rates};
pub(crate) use rows::{Key, Row, Rows, SPARKS, Sort};
