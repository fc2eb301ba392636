//! The processes of a simulation, as texts.

use crate::runtime::shared::Shared;
use ganger_proc_api::{CommandId, Pid, Symbol, Tag};
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

thread_local! {
    static SEEN: RefCell<Seen> = RefCell::default();
}

#[derive(Default)]
struct Seen {
    /// In the order of their starts. Their PIDs differ: see [`begin_ids_at`](super::begin_ids_at).
    schedulers: Vec<Arc<Shared>>,
    /// The method and the type of each process.
    what: HashMap<Pid, (Symbol, &'static str)>,
    /// The tags of each process above the small numbers, in the order in which they were seen.
    tags: HashMap<Pid, Vec<Tag>>,
}

/// Tags below are shown as they are.
const SMALL: Tag = 1 << 16;

/// The description of a process besides its PID. The text, by `Display`, is its method, its type,
/// and its names.
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
            write!(f, ", {}", plain(self.type_name))?;
        }
        self.names
            .iter()
            .try_for_each(|name| write!(f, ", {name:?}"))
    }
}

/// Makes texts about processes of this scheduler from now on.
pub(super) fn begin(shared: &Arc<Shared>) {
    SEEN.with_borrow_mut(|seen| seen.schedulers.push(Arc::clone(shared)));
}

/// Notes the method and the type of the process.
pub(super) fn see(pid: Pid, method: Symbol, type_name: &'static str) -> Who {
    SEEN.with_borrow_mut(|seen| {
        seen.what.insert(pid, (method, type_name));
        seen.who(pid, (method, type_name))
    })
}

/// Describes the process: its PID; its method and its type, once it has stepped; and its names,
/// while it has some.
#[must_use]
pub fn describe(pid: Pid) -> String {
    SEEN.with_borrow(|seen| match seen.what.get(&pid) {
        Some(&what) => format!("{pid} ({})", seen.who(pid, what)),
        None => pid.to_string(),
    })
}

/// Describes a process as [`describe`] does, submitted with this method, which may not have
/// stepped.
pub(super) fn describe_ended(pid: Pid, method: Symbol) -> String {
    SEEN.with_borrow(|seen| {
        let what = seen.what.get(&pid).copied().unwrap_or((method, ""));
        format!("{pid} ({})", seen.who(pid, what))
    })
}

impl Seen {
    fn who(&self, pid: Pid, (method, type_name): (Symbol, &'static str)) -> Who {
        let names = self.schedulers.iter().map(|it| it.names.of(pid));
        Who {
            method,
            type_name,
            names: names.flatten().collect(),
        }
    }
}

/// Returns a tag of the process as a small number. A task makes large tags, without meaning to a
/// reader: they are numbered in the order in which they are seen.
#[must_use]
pub fn tag(pid: Pid, tag: Tag) -> Tag {
    if tag < SMALL {
        return tag;
    }
    SEEN.with_borrow_mut(|seen| {
        let tags = seen.tags.entry(pid).or_default();
        let nth = tags.iter().position(|&it| it == tag).unwrap_or_else(|| {
            tags.push(tag);
            tags.len() - 1
        });
        nth as Tag + 1
    })
}

/// Returns the registered name of a command.
pub(super) fn command(id: CommandId) -> Option<Symbol> {
    SEEN.with_borrow(|seen| (seen.schedulers.iter()).find_map(|it| it.commands.name(id)))
}

pub(super) fn forget() {
    SEEN.take();
}

/// Shortens the name of a type: the modules of its parts go. A closure has the name of its
/// function.
#[must_use]
pub fn short(type_name: &str) -> String {
    let type_name = type_name.replace("::{{closure}}", "");
    let is_of_path = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | ':');
    let parts = type_name.split_inclusive(|letter| !is_of_path(letter));
    let last = |part: &str| {
        // A method of a type with parameters: the type is in the parts before.
        let own = if part.starts_with("::") { "::" } else { "" };
        own.to_owned() + part.rsplit("::").next().unwrap_or_default()
    };
    parts.map(last).collect()
}

/// Shortens as [`short`] does, and leaves parameters out: the type run by a process.
fn plain(type_name: &str) -> String {
    let (mut depth, mut name) = (0_usize, String::new());
    for letter in short(type_name).replace("->", "").chars() {
        depth -= usize::from(letter == '>' && depth > 0);
        if depth == 0 && letter != '>' && letter != '<' {
            name.push(letter);
        }
        depth += usize::from(letter == '<');
    }
    // A method of a trait begins with the type.
    name.trim_start_matches("::").to_owned()
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::{plain, short};

    #[test]
    fn a_type_is_shown_without_its_modules() {
        for (name, expected) in [
            ("u64", "u64"),
            ("shop::till::Pay", "Pay"),
            ("alloc::vec::Vec<(shop::Id, &str)>", "Vec<(Id, &str)>"),
            ("shop::tests::case::{{closure}}", "case"),
            (
                "shop::Shop<shop::Id>::serve::{{closure}}::{{closure}}",
                "Shop<Id>::serve",
            ),
        ] {
            assert_eq!(short(name), expected);
        }
    }

    #[test]
    fn what_a_process_runs_is_shown_without_parameters() {
        for (name, expected) in [
            ("shop::serve", "serve"),
            ("shop::Till<alloc::vec::Vec<u8>>", "Till"),
            ("shop::Shop<shop::Id>::serve::{{closure}}", "Shop::serve"),
            (
                "<shop::Shop as shop::Serve>::serve<u8>::{{closure}}",
                "serve",
            ),
            ("shop::Calls<fn(u8) -> u8>", "Calls"),
        ] {
            assert_eq!(plain(name), expected);
        }
    }
}
