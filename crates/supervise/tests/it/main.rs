//! Supervisors and pools, as their users see them.

mod in_place;
mod support;
mod trees;
