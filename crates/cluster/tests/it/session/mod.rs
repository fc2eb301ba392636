//! Two sides, and what becomes of a session in each case.

mod bounds;
mod ends;
mod lanes;
mod names;
