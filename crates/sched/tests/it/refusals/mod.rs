//! Refused calls and settings, and the texts of the errors.

mod error_texts;
mod limits_and_settings;
mod not_started;
