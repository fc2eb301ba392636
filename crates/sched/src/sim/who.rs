//! The processes of a simulation, as texts.

use crate::core::shared::Shared;
use ganger_proc_api::{CommandId, Pid, Symbol};
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

thread_local! {
    static SEEN: RefCell<Seen> = RefCell::default();
}

#[derive(Default)]
struct Seen {
    scheduler: Option<Arc<Shared>>,
    /// What each process is: its method, and its type.
    what: HashMap<Pid, (Symbol, &'static str)>,
}

/// What is known of a process beside its PID. The text, by `Display`, is its method, its type, and
/// its names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Who {
    method: Symbol,
    type_name: &'static str,
    names: Vec<Box<str>>,
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.method)?;
        if !self.type_name.is_empty() {
            write!(f, ", {}", short(self.type_name))?;
        }
        self.names
            .iter()
            .try_for_each(|name| write!(f, ", {name:?}"))
    }
}

/// Texts are about processes of that scheduler from now on.
pub(super) fn begin(shared: &Arc<Shared>) {
    SEEN.with_borrow_mut(|seen| seen.scheduler = Some(Arc::clone(shared)));
}

/// Notes what the process is.
pub(super) fn see(pid: Pid, method: Symbol, type_name: &'static str) -> Who {
    SEEN.with_borrow_mut(|seen| {
        seen.what.insert(pid, (method, type_name));
        seen.who(pid, (method, type_name))
    })
}

/// The process, as text: its PID; its method and its type, once it has stepped; and its names,
/// while it has some.
#[must_use]
pub fn describe(pid: Pid) -> String {
    SEEN.with_borrow(|seen| match seen.what.get(&pid) {
        Some(&what) => format!("{pid} ({})", seen.who(pid, what)),
        None => pid.to_string(),
    })
}

/// As [`describe`], for a process that was submitted with that method, and may not have stepped.
pub(super) fn describe_ended(pid: Pid, method: Symbol) -> String {
    SEEN.with_borrow(|seen| {
        let what = seen.what.get(&pid).copied().unwrap_or((method, ""));
        format!("{pid} ({})", seen.who(pid, what))
    })
}

impl Seen {
    fn who(&self, pid: Pid, (method, type_name): (Symbol, &'static str)) -> Who {
        let scheduler = self.scheduler.as_ref();
        Who {
            method,
            type_name,
            names: scheduler.map_or(Vec::new(), |it| it.names.of(pid)),
        }
    }
}

/// The name under which a command is registered.
pub(super) fn command(id: CommandId) -> Option<Symbol> {
    SEEN.with_borrow(|seen| seen.scheduler.as_ref()?.commands.name(id))
}

pub(super) fn forget() {
    SEEN.take();
}

/// The name of a type without the modules that its parts are in.
#[must_use]
pub fn short(type_name: &str) -> String {
    // A closure has no name but that of its function.
    let (path, rest) = match type_name.strip_suffix("::{{closure}}") {
        Some(path) => (path, "::{{closure}}"),
        None => (type_name, ""),
    };
    let is_of_path = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | ':');
    let parts = path.split_inclusive(|letter| !is_of_path(letter));
    let last = |part: &'_ str| part.rsplit("::").next().unwrap_or_default().to_owned();
    parts.map(last).collect::<String>() + rest
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::short;

    #[test]
    fn a_type_is_shown_without_its_modules() {
        for (name, expected) in [
            ("u64", "u64"),
            ("shop::till::Pay", "Pay"),
            ("alloc::vec::Vec<(shop::Id, &str)>", "Vec<(Id, &str)>"),
            ("shop::tests::case::{{closure}}", "case::{{closure}}"),
        ] {
            assert_eq!(short(name), expected);
        }
    }
}
