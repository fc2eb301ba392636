//! Rust text as tokens and items, for the rules of tidy and for the places of mutants.

mod items;
mod tokens;

pub(crate) use items::{Item, items, module};
pub(crate) use tokens::{Token, is_word, pieces, texts, tokens};
