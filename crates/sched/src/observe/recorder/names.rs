//! The texts of events, by numbers.
//!
//! An event has four bytes for its type, its topic, its mark. Numbers are never given back. From
//! the [`MOST`]th text on, each new text has the number of [`OTHERS`].

use ganger_proc_api::CommandId;
use ganger_sync::sync::{Mutex, lock};
use std::collections::HashMap;
use std::sync::Arc;

/// The most texts with a number of their own.
const MOST: usize = 4_096;

/// The text for all further texts.
const OTHERS: &str = "other names";

/// How many bytes of a text are kept.
const LENGTH: usize = 200;

/// The number of a command is its id and this, so a worker looks nothing up.
const COMMANDS: u32 = 1 << 31;

/// Returns the number of a command.
pub(super) fn of_command(command: CommandId) -> u32 {
    COMMANDS | u32::from(command.get())
}

/// Returns the command with this number, if the number belongs to a command.
pub(super) fn command(number: u32) -> Option<CommandId> {
    let id = u16::try_from(number ^ COMMANDS).ok()?;
    Some(CommandId::new(id))
}

#[derive(Default)]
pub(super) struct Names(Mutex<Known>);

#[derive(Default)]
struct Known {
    numbers: HashMap<Arc<str>, u32>,
    /// The text of number `n` is at `n - 1`.
    texts: Vec<Arc<str>>,
}

impl Names {
    /// Returns the number of a text; 0 for an empty text. O(length), under a lock.
    pub(super) fn of(&self, text: &str) -> u32 {
        if text.is_empty() {
            return 0;
        }
        let text = &text[..text.floor_char_boundary(LENGTH)];
        let mut known = lock(&self.0);
        let text = match known.texts.len() {
            MOST.. if !known.numbers.contains_key(text) => OTHERS,
            _ => text,
        };
        if let Some(number) = known.numbers.get(text) {
            return *number;
        }
        let text: Arc<str> = text.into();
        known.texts.push(Arc::clone(&text));
        let number = u32::try_from(known.texts.len()).unwrap_or_default();
        known.numbers.insert(text, number);
        number
    }

    /// Returns all texts: text number `n` is at `n - 1`.
    pub(super) fn all(&self) -> Vec<Arc<str>> {
        lock(&self.0).texts.clone()
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;

    // pins: V15
    #[test]
    fn a_text_has_one_number_and_too_many_share_one() {
        let names = Names::default();
        assert_eq!((names.of(""), names.of("a"), names.of("a")), (0, 1, 1));
        let long = "ü".repeat(LENGTH);
        assert_eq!(names.of(&long), 2);
        assert_eq!(&*names.all()[1], &long[..LENGTH]);
        for number in 0..2 * MOST {
            names.of(&number.to_string());
        }
        let late = names.of("late");
        assert_eq!(late as usize, MOST + 1);
        assert_eq!((names.of("later"), names.of("a")), (late, 1));
        let all = names.all();
        assert_eq!((all.len(), &*all[MOST]), (MOST + 1, OTHERS));
    }

    #[test]
    fn numbers_of_commands_are_no_numbers_of_texts() {
        for id in [0, 256, u16::MAX].map(CommandId::new) {
            assert_eq!(command(of_command(id)), Some(id));
        }
        for number in [0, 1, COMMANDS - 1, COMMANDS | 1 << 16] {
            assert_eq!(command(number), None);
        }
    }
}
