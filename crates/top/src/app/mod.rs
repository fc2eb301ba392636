//! The state of the screen: what it shows, and what keys and answers change. It neither draws nor
//! asks.

mod edit;
mod folds;
mod keys;
mod state;
mod view;

pub(crate) use folds::Branch;
pub(crate) use keys::{Deed, HELP};
pub(crate) use state::{App, Link, SORTS};
pub(crate) use view::View;
