//! The written form of a list, a line or two for a mutant: `xtask/mutants/README.md` says how.

use super::list::{Change, Edit, Expected, Mutant};
use super::place::Place;
use crate::Failure;
use crate::rust::tokens;
use std::collections::BTreeSet;

/// The signs between the tokens of a place and the new text.
const REPLACE: &str = "~>";
const BEFORE: &str = "<+";
const AFTER: &str = "+>";

/// Stands before a reason that follows its mutant in the same line.
const WHY: &str = " -- ";

const EQUIVALENT: &str = "(equivalent)";
const UNSHOWN: &str = "(unshown)";

/// A mutant whose lines are being read.
#[derive(Debug, Default)]
struct Entry {
    line: usize,
    name: String,
    /// What stands above it: a killer, or that none is expected.
    head: String,
    /// Each edit as it is written: its place, its sign, its new text.
    edits: Vec<String>,
    why: String,
    /// Why it survives.
    reason: String,
}

/// The mutants of a list.
pub(crate) fn parse(text: &str) -> Result<Vec<Mutant>, Failure> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut head = String::new();
    for (number, line) in (1..).zip(text.lines()) {
        let rest = line.trim();
        if rest.is_empty() || line.starts_with('#') {
            continue;
        }
        match (line.len() - line.trim_start().len(), entries.last_mut()) {
            (0, _) => rest.clone_into(&mut head),
            (2, _) if !head.is_empty() => entries.push(Entry::of(rest, &head, number)),
            (6, Some(entry)) => entry.add(rest),
            _ => return Err(format!("line {number} belongs to no killer and no mutant").into()),
        }
    }
    let mut names = BTreeSet::new();
    let mut mutants = Vec::new();
    for entry in entries {
        let (line, name) = (entry.line, entry.name.clone());
        let wrong = |what: &str| format!("line {line}, {name}: {what}");
        if !names.insert(name.clone()) {
            return Err(wrong("there are two of this name").into());
        }
        mutants.push(entry.mutant().map_err(wrong)?);
    }
    if mutants.is_empty() {
        return Err("there are no mutants in it".into());
    }
    Ok(mutants)
}

impl Entry {
    /// The first line of a mutant.
    fn of(line: &str, head: &str, number: usize) -> Self {
        let (line, why) = line.rsplit_once(WHY).unwrap_or((line, ""));
        let (name, edit) = line.split_once(' ').unwrap_or((line, ""));
        Self {
            line: number,
            name: name.to_owned(),
            head: head.to_owned(),
            edits: vec![edit.to_owned()],
            why: why.to_owned(),
            reason: String::new(),
        }
    }

    /// A further line of it.
    fn add(&mut self, line: &str) {
        let (sign, rest) = line.split_once(' ').unwrap_or((line, ""));
        let text = match (sign, self.edits.last_mut()) {
            ("&", _) => return self.edits.push(rest.to_owned()),
            ("|", Some(edit)) => edit,
            ("=", _) => &mut self.reason,
            _ => return append(&mut self.why, line),
        };
        append(text, rest);
    }

    fn mutant(self) -> Result<Mutant, &'static str> {
        let mut edits: Vec<Edit> = Vec::new();
        for text in &self.edits {
            let edit = edit(text, edits.first().map(|first| &first.place))?;
            edits.push(edit);
        }
        let (killer, expected) = match &*self.head {
            EQUIVALENT => (None, Expected::Equivalent(self.reason.clone())),
            UNSHOWN => (None, Expected::Unshown(self.reason.clone())),
            _ => (Some(self.head), Expected::Killed),
        };
        if (expected == Expected::Killed) != self.reason.is_empty() {
            return Err("a reason, behind `=`, is for those that survive, and for each of them");
        }
        Ok(Mutant {
            name: self.name,
            why: self.why,
            edits,
            killer,
            expected,
        })
    }
}

fn append(text: &mut String, rest: &str) {
    if !text.is_empty() {
        text.push(' ');
    }
    text.push_str(rest);
}

/// Reads `@ place: find ~> new`; without `@` and its place, the edit is where the first is.
fn edit(text: &str, first: Option<&Place>) -> Result<Edit, &'static str> {
    let sign = [REPLACE, BEFORE, AFTER]
        .into_iter()
        .filter_map(|sign| Some((text.split_whitespace().position(|word| word == sign)?, sign)))
        .min()
        .map(|(_, sign)| sign)
        .ok_or("it needs one of `~>`, `<+` and `+>`")?;
    // The sign is a word: at the end of the text, or with a blank on both sides.
    let (left, new) = match text.split_once(&format!(" {sign} ")) {
        Some(sides) => sides,
        None => (text.trim_end_matches(sign), ""),
    };
    let (place, find) = match (left.trim().strip_prefix("@ "), first) {
        (Some(left), _) => {
            let (at, find) = left.split_once(": ").unwrap_or((left, ""));
            (place(at), find)
        }
        (None, Some(first)) => (first.clone(), left.trim()),
        (None, None) => return Err("it needs `@` and the item that it changes"),
    };
    let (find, nth) = match find.rsplit_once(" #") {
        Some((find, nth)) if nth.parse::<usize>().is_ok() => (find, nth.parse().ok()),
        _ => (find, None),
    };
    let find = (!find.is_empty()).then(|| find.to_owned());
    let new = new.to_owned();
    let change = match sign {
        REPLACE => Change::Replace(new),
        BEFORE => Change::Before(new),
        _ => Change::After(new),
    };
    let is_same = match (&change, &find) {
        (Change::Replace(text), Some(find)) => texts(text) == texts(find),
        (Change::Replace(_), None) => false,
        (Change::Before(text) | Change::After(text), _) => texts(text).is_empty(),
    };
    if is_same {
        return Err("it changes nothing");
    }
    Ok(Edit {
        place: Place { find, nth, ..place },
        change,
    })
}

/// Reads `crate/item in file`.
fn place(text: &str) -> Place {
    let (text, file) = match text.rsplit_once(" in ") {
        Some((text, file)) => (text, Some(file.to_owned())),
        None => (text, None),
    };
    let (in_crate, at) = match text.split_once('/') {
        Some((name, at)) => (Some(name.to_owned()), at),
        None => (None, text),
    };
    Place {
        at: at.trim().to_owned(),
        in_crate,
        file,
        ..Place::default()
    }
}

fn texts(text: &str) -> Vec<&str> {
    tokens(text).into_iter().map(|token| token.text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: &str = "\
## A part

loom_a::test
  one @ A::old: x #2 ~>
      breaks
      this
  two @ B::f: old ~> new -- breaks that
      & f() +> .g(),
      | h
      & @ sync/C in c.rs <+ struct D;
(unshown)
  three @ impl Drop for E: a: u8 ~> b
      breaks more
      = no test
      = looks
";

    fn place_of(at: &str, find: &str) -> Place {
        Place {
            at: at.to_owned(),
            find: (!find.is_empty()).then(|| find.to_owned()),
            ..Place::default()
        }
    }

    #[test]
    fn a_killer_stands_above_its_mutants() {
        let [one, two, three] = <[Mutant; 3]>::try_from(parse(FULL).unwrap()).unwrap();
        let edit = Edit {
            place: Place {
                nth: Some(2),
                ..place_of("A::old", "x")
            },
            change: Change::Replace(String::new()),
        };
        assert_eq!(one.edits, [edit]);
        let [first, second, third] = <[Edit; 3]>::try_from(two.edits).unwrap();
        assert_eq!(first.place, place_of("B::f", "old"));
        assert_eq!(second.place, place_of("B::f", "f()"));
        assert_eq!(second.change, Change::After(".g(), h".to_owned()));
        let elsewhere = Place {
            in_crate: Some("sync".to_owned()),
            file: Some("c.rs".to_owned()),
            ..place_of("C", "")
        };
        let new = Change::Before("struct D;".to_owned());
        assert_eq!((third.place, third.change), (elsewhere, new));
        assert_eq!((&*one.name, &*one.why), ("one", "breaks this"));
        assert_eq!((&*two.name, &*two.why), ("two", "breaks that"));
        assert_eq!(one.killer.as_deref(), Some("loom_a::test"));
        assert_eq!((two.killer, two.expected), (one.killer, Expected::Killed));
        let unshown = Expected::Unshown("no test looks".to_owned());
        assert_eq!((three.killer, three.expected), (None, unshown));
        assert_eq!(three.edits[0].place, place_of("impl Drop for E", "a: u8"));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (rest, what) in [
            ("k\n  m f: a ~> b", "line 2, m: it needs `@`"),
            ("k\n  m @ f: a", "line 2, m: it needs one of"),
            ("k\n  m @ f: a .b ~> a.b // c", "m: it changes nothing"),
            ("k\n  m @ f: a +>", "m: it changes nothing"),
            ("k\n  m @ f: a ~> b\n      = c", "m: a reason"),
            ("(equivalent)\n  m @ f: a ~> b", "m: a reason"),
            (
                "k\n  m @ f: a ~> b\n  m @ g: a ~> b",
                "line 3, m: there are two",
            ),
            ("  m @ f: a ~> b", "line 1 belongs to no killer"),
            ("k\n    m @ f: a ~> b", "line 2 belongs to no killer"),
            ("k\n      why", "line 2 belongs to no killer"),
            ("# only a comment", "there are no mutants"),
        ] {
            let error = parse(rest).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        }
    }
}
