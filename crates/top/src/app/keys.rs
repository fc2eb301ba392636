//! The effect of each key.

use super::act::Wanted;
use super::edit::Edit;
use super::state::{App, SORTS};
use super::view::View;
use ganger_observe::api::Filter;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// The task of the screen after a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Deed {
    None,
    Quit,
    /// Saves a trace.
    Trace,
    /// Asks the program for an action.
    Act(Wanted),
}

/// The keys, for the help.
pub(crate) const HELP: [(&str, &str); 17] = [
    ("arrows PgUp PgDn Home End", "move, also j and k"),
    ("Enter", "show the process, or the processes of a group"),
    ("Esc", "back; in the processes, clear the filter"),
    (
        "p g e w o c a l, Tab",
        "processes groups tree waits sockets nodes alarms letters",
    ),
    ("< >, Left Right", "sort by another column; fold the tree"),
    ("r", "turn the order around"),
    ("/", "filter: text, field:text, -term; fields: state"),
    ("", "type method name pid parent label"),
    ("n", "window of busy, messages and growth"),
    ("s", "the next scheduler of the program"),
    ("Space", "pause, and go on"),
    ("t", "save the last 5 s as a trace, for Perfetto"),
    ("x", "suspend, restart, cancel … the process, where allowed"),
    ("? h, q Ctrl-C", "this help; quit"),
    ("", ""),
    ("Y never yields", "M mailbox grows"),
    ("S wakes itself", "W waits for long"),
];

impl App {
    pub(crate) fn key(&mut self, key: KeyEvent) -> Deed {
        if key.kind == KeyEventKind::Release {
            return Deed::None;
        }
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let deed = match key.code {
            KeyCode::Char('c') if is_control => Deed::Quit,
            _ if self.has_help => {
                self.has_help = false;
                match key.code {
                    KeyCode::Char('q') => Deed::Quit,
                    _ => Deed::None,
                }
            }
            _ if self.asking.is_some() => self.action_key(key.code).map_or(Deed::None, Deed::Act),
            _ if self.edit.is_some() => {
                self.edit_key(key);
                Deed::None
            }
            KeyCode::Char(_) if is_control => Deed::None,
            code => self.plain_key(code),
        };
        self.follow();
        deed
    }

    fn plain_key(&mut self, code: KeyCode) -> Deed {
        match code {
            KeyCode::Char('q') => return Deed::Quit,
            KeyCode::Char('t') => return Deed::Trace,
            KeyCode::Char('x') => self.ask_for_action(),
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => self.has_help = true,
            KeyCode::Char(' ') => self.is_paused = !self.is_paused,
            KeyCode::Char('/') => {
                self.view = View::Processes;
                self.edit = Some(Edit::new(&self.filter.to_string()));
            }
            KeyCode::Char('r') => self.is_descending = !self.is_descending,
            KeyCode::Char('n') => self.next_window(),
            KeyCode::Char('s') => self.next_scheduler(),
            KeyCode::Char('<' | ',') => self.sort_beside(false),
            KeyCode::Char('>' | '.') => self.sort_beside(true),
            KeyCode::Left => self.sideways(false),
            KeyCode::Right => self.sideways(true),
            KeyCode::Tab => self.view = self.view.beside(true),
            KeyCode::BackTab => self.view = self.view.beside(false),
            KeyCode::Enter => self.enter(),
            KeyCode::Esc => self.escape(),
            KeyCode::Up | KeyCode::Char('k') => self.move_by(-1),
            KeyCode::Down | KeyCode::Char('j') => self.move_by(1),
            KeyCode::PageUp => self.move_by(-self.page_step()),
            KeyCode::PageDown => self.move_by(self.page_step()),
            KeyCode::Home => self.move_by(isize::MIN / 2),
            KeyCode::End => self.move_by(isize::MAX / 2),
            KeyCode::Char(c) => {
                let view = View::ALL.into_iter().find(|it| it.key() == Some(c));
                self.view = view.unwrap_or(self.view);
            }
            _ => {}
        }
        Deed::None
    }

    /// Edits the text; each key changes the filter at once, if the text is a filter.
    fn edit_key(&mut self, key: KeyEvent) {
        let Some(edit) = &mut self.edit else { return };
        match key.code {
            KeyCode::Enter => match edit.text().parse::<Filter>() {
                Ok(_) => self.edit = None,
                Err(error) => self.say(error.to_string()),
            },
            KeyCode::Esc => {
                self.edit = None;
                self.filter = Filter::default();
            }
            _ => {
                edit.key(key);
                if let Ok(filter) = edit.text().parse() {
                    self.filter = filter;
                }
            }
        }
    }

    fn sideways(&mut self, is_right: bool) {
        if self.view != View::Tree {
            return self.sort_beside(is_right);
        }
        let at = self.at();
        let is_changed = self.tree.fold(at, !is_right);
        if !is_changed
            && !is_right
            && let Some(parent) = self.tree.parent(at)
        {
            self.go(parent);
        }
    }

    fn sort_beside(&mut self, is_right: bool) {
        if self.view != View::Processes {
            return;
        }
        let place = SORTS.iter().position(|it| *it == self.sort).unwrap_or(0);
        let next = if is_right {
            place + 1
        } else {
            place.wrapping_sub(1)
        };
        if let Some(sort) = SORTS.get(next) {
            self.sort = *sort;
            self.is_sorted = true;
            self.is_descending = !self.sort.is_text();
        }
    }

    fn enter(&mut self) {
        if self.view == View::Groups {
            let groups = self.groups();
            let Some(group) = groups.get(self.at()) else {
                return;
            };
            // A term ends at a space.
            let name = group.type_name.split(' ').next().unwrap_or_default();
            let text = format!("state:{} type:{name}", group.state.name());
            if let Ok(filter) = text.parse() {
                self.filter = filter;
                self.view = View::Processes;
            }
        } else if let Some(key) = self.selected() {
            self.open(key);
        }
    }

    fn escape(&mut self) {
        match self.view {
            View::One => self.view = self.back,
            View::Processes => self.filter = Filter::default(),
            _ => self.view = View::Processes,
        }
    }

    fn page_step(&self) -> isize {
        self.page.saturating_sub(1).max(1).cast_signed()
    }

    fn move_by(&mut self, step: isize) {
        self.go(self.at().saturating_add_signed(step));
    }

    fn go(&mut self, to: usize) {
        let ids = self.ids();
        self.cursor().go(to, &ids);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_has_the_key_of_each_view() {
        let keys = String::from_iter(View::ALL.iter().filter_map(|view| view.key()));
        let shown = HELP.map(|(keys, _)| keys.replace(' ', ""));
        assert!(shown.contains(&format!("{keys},Tab")), "{keys}: {shown:?}");
    }
}
