//! Actions of a person on a process, where the program allows actions.
//!
//! **Problem.** A key that ends a process must not be pressed by mistake, and the selection may
//! move to another process while a person reads.
//!
//! **Protocol.**
//! 1. The key `x` takes the process selected at the moment, and asks for an action. The snapshots
//!    name the actions that the program allows; without one, a message says why.
//! 2. A second key chooses. An action that ends the process has a second question, which `y` alone
//!    answers.
//! 3. The screen asks the program on a thread of its own, and says what the program answers.

use super::act::{ACTIONS, Action, Asking, Wanted};
use super::state::App;
use super::view::View;
use crate::measure::{Key, Row};
use ratatui::crossterm::event::KeyCode;

impl App {
    /// Returns the actions both known here and allowed by the program.
    fn allowed(&self) -> impl Iterator<Item = &'static Action> {
        let allowed = self.actions();
        let is_allowed = |it: &&Action| allowed.iter().any(|name| name == it.name);
        ACTIONS.iter().filter(is_allowed)
    }

    /// Begins with the selected process.
    pub(super) fn ask_for_action(&mut self) {
        let process = match self.view {
            View::One => self.one.clone().filter(|_| !self.has_ended),
            _ => self.selected(),
        };
        if self.allowed().next().is_none() {
            self.say(
                "this endpoint only reads: the program allows actions by Serve::allow_actions",
            );
        } else if let Some(process) = process {
            self.asking = Some(Asking::Which(process));
        } else {
            self.say("no live process is selected: x acts on the selected process");
        }
    }

    /// Takes the answer of a person to the question.
    pub(super) fn action_key(&mut self, code: KeyCode) -> Option<Wanted> {
        let chosen = match self.asking.take()? {
            Asking::Which(process) => {
                let action = self.allowed().find(|it| code == KeyCode::Char(it.key));
                let action = action?;
                if action.ends {
                    self.asking = Some(Asking::Sure(process, action));
                    return None;
                }
                (process, action)
            }
            Asking::Sure(process, action) => match code {
                KeyCode::Char('y') => (process, action),
                _ => return None,
            },
        };
        let (process, Action { name: action, .. }) = chosen;
        self.say(format!("{action}: asks for it …"));
        Some(Wanted { action, process })
    }

    /// Returns the question, as text.
    pub(crate) fn question(&self) -> Option<String> {
        Some(match self.asking.as_ref()? {
            Asking::Which(process) => {
                let keys = self.allowed().map(|it| format!("{} {}", it.key, it.name));
                let keys: Vec<_> = keys.collect();
                // A narrow screen has room for all keys beside a name or a PID.
                let name = self.name_of(process).unwrap_or(&process.1);
                format!("{name}: {}  Esc leave it", keys.join("  "))
            }
            Asking::Sure(process, action) => {
                let title = self.title_of(process);
                format!("{} {title}?  y yes  any other key no", action.name)
            }
        })
    }

    /// Returns the name and the PID of a process.
    fn title_of(&self, process: &Key) -> String {
        let (name, pid) = (self.name_of(process), &process.1);
        name.map_or_else(|| pid.clone(), |name| format!("{name} {pid}"))
    }

    /// Returns the first name of a process, where the process is listed and has one.
    fn name_of(&self, process: &Key) -> Option<&str> {
        let mut rows = self.rows.all().iter().chain(&self.single);
        let row = rows.find(|it: &&Row| it.key() == *process)?;
        row.process.names.first().map(String::as_str)
    }
}
