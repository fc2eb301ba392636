//! The editor of a line.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// The most bytes, as in a filter of the API.
const MOST: usize = 256;

/// A line with a cursor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Edit {
    text: String,
    /// In bytes, at the begin of a character.
    at: usize,
}

impl Edit {
    pub(crate) fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            at: text.len(),
        }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the texts before and behind the cursor.
    pub(crate) fn parts(&self) -> (&str, &str) {
        self.text.split_at(self.at)
    }

    pub(crate) fn key(&mut self, key: KeyEvent) {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let before = self.text[..self.at].chars().next_back().map(char::len_utf8);
        let behind = self.text[self.at..].chars().next().map(char::len_utf8);
        match key.code {
            KeyCode::Char('u') if is_control => {
                self.text.drain(..self.at);
                self.at = 0;
            }
            KeyCode::Char('a') if is_control => self.at = 0,
            KeyCode::Char('e') if is_control => self.at = self.text.len(),
            KeyCode::Char(c) if !is_control && self.text.len() + c.len_utf8() <= MOST => {
                self.text.insert(self.at, c);
                self.at += c.len_utf8();
            }
            KeyCode::Backspace => {
                self.at -= before.unwrap_or(0);
                if before.is_some() {
                    self.text.remove(self.at);
                }
            }
            KeyCode::Delete if behind.is_some() => drop(self.text.remove(self.at)),
            KeyCode::Left => self.at -= before.unwrap_or(0),
            KeyCode::Right => self.at += behind.unwrap_or(0),
            KeyCode::Home => self.at = 0,
            KeyCode::End => self.at = self.text.len(),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(edit: &mut Edit, codes: &[KeyCode]) {
        for &code in codes {
            edit.key(code.into());
        }
    }

    #[test]
    fn a_line_is_edited_at_its_cursor() {
        let mut edit = Edit::new("größe");
        press(
            &mut edit,
            &[KeyCode::Left, KeyCode::Left, KeyCode::Backspace],
        );
        assert_eq!(edit.parts(), ("gr", "ße"));
        press(
            &mut edit,
            &[KeyCode::Char('ä'), KeyCode::Delete, KeyCode::End],
        );
        assert_eq!(edit.parts(), ("gräe", ""));
        press(&mut edit, &[KeyCode::Delete, KeyCode::Right, KeyCode::Home]);
        press(
            &mut edit,
            &[KeyCode::Backspace, KeyCode::Left, KeyCode::Char('x')],
        );
        assert_eq!(edit.parts(), ("x", "gräe"));
        let control = |c| KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL);
        edit.key(control('u'));
        edit.key(control('e'));
        edit.key(control('z'));
        assert_eq!(edit.parts(), ("gräe", ""));
        edit.key(control('a'));
        assert_eq!(edit.parts(), ("", "gräe"));
    }

    #[test]
    fn a_line_is_as_long_as_a_filter_may_be() {
        let mut edit = Edit::default();
        for _ in 0..300 {
            edit.key(KeyCode::Char('ä').into());
        }
        assert_eq!(edit.text().len(), MOST);
        edit.key(KeyCode::Char('a').into());
        assert_eq!(edit.text().len(), MOST);
    }
}
