//! Two sides, and the fate of a session in each case.

mod bounds;
mod ends;
mod lanes;
mod late;
mod names;
