//! The state of the screen, and its changes by keys and answers. This folder neither draws nor
//! asks.

mod act;
mod acting;
mod edit;
mod folds;
mod keys;
mod state;
mod view;

pub(crate) use act::{Wanted, sentence};
pub(crate) use folds::Branch;
pub(crate) use keys::{Deed, HELP};
pub(crate) use state::{App, Link, SORTS};
pub(crate) use view::View;
