//! Supervisors and pools, as their users see them.

mod in_place;
mod pools;
mod support;
mod trees;
