//! Supervisors and pools, as their users see them.

mod support;
mod trees;
