//! Supervisors, compared with a specification of theirs.

mod play;
mod spec;

pub use play::play_tree;
pub use spec::{ChildPlan, How, TreeAct, TreePlan};
