//! The bytes of frames and messages.

mod checker;
mod corpus;
mod frames;
mod symbols;
