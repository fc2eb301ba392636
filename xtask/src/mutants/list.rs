//! A list of mutants; `xtask/mutants/README.md` describes its form.

use super::place::Place;
use crate::rust::texts;
use std::collections::BTreeSet;

/// The signs between the tokens of a place and the new text.
const REPLACE: &str = "~>";
pub(crate) const BEFORE: &str = "<+";
pub(crate) const AFTER: &str = "+>";

/// A mutation.
#[derive(Debug, Default)]
pub(crate) struct Mutant {
    pub(crate) name: String,
    /// The effect of the mutation, where its name does not say it.
    pub(crate) why: String,
    /// The line above it: a test, a file of tests, `(equivalent)` or `(unshown)`.
    head: String,
    /// The edits as they are written, the first with its place.
    edits: Vec<String>,
    /// Why it survives.
    pub(crate) reason: String,
}

/// A place, and the Rust text for it, or for just before or after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) place: Place,
    pub(crate) sign: &'static str,
    pub(crate) new: String,
}

/// Returns the mutants of a list.
pub(crate) fn parse(text: &str) -> Result<Vec<Mutant>, String> {
    let mut mutants: Vec<Mutant> = Vec::new();
    let mut head = "";
    for (number, line) in (1..).zip(text.lines()) {
        let rest = line.trim();
        if rest.is_empty() || line.starts_with('#') {
            continue;
        }
        let (rest, why) = rest.rsplit_once(" -- ").unwrap_or((rest, ""));
        match (line.len() - line.trim_start().len(), mutants.last_mut()) {
            (0, _) => head = rest,
            (2, _) if !head.is_empty() => {
                let (name, edit) = rest.split_once(' ').unwrap_or((rest, ""));
                let mut mutant = Mutant::default();
                (mutant.name, mutant.head) = (name.to_owned(), head.to_owned());
                (mutant.why, mutant.edits) = (why.to_owned(), vec![edit.to_owned()]);
                mutants.push(mutant);
            }
            (6, Some(mutant)) => {
                mutant.add(rest);
                mutant.add(why);
            }
            _ => return Err(format!("line {number} belongs to no killer and no mutant")),
        }
    }
    let mut names = BTreeSet::new();
    match mutants.iter().find(|mutant| !names.insert(&mutant.name)) {
        Some(Mutant { name, .. }) => Err(format!("there are two mutants {name}")),
        None if mutants.is_empty() => Err("there are no mutants".to_owned()),
        None => Ok(mutants),
    }
}

impl Mutant {
    /// Returns the first test to try, unless the mutant survives.
    pub(crate) fn killer(&self) -> Option<&str> {
        Some(&*self.head).filter(|head| !["(equivalent)", "(unshown)"].contains(head))
    }

    /// Adds a further line.
    fn add(&mut self, line: &str) {
        let (sign, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (text, rest) = match (sign, self.edits.last_mut()) {
            ("&", _) => return self.edits.push(rest.to_owned()),
            ("|", Some(edit)) => (edit, rest),
            ("=", _) => (&mut self.reason, rest),
            _ => (&mut self.why, line),
        };
        *text = format!("{text} {rest}").trim().to_owned();
    }

    /// Returns its edits, or the fault of its lines.
    pub(crate) fn edits(&self) -> Result<Vec<Edit>, &'static str> {
        if self.killer().is_some() != self.reason.is_empty() {
            return Err("a reason, behind `=`, is for those that survive, and for each of them");
        }
        let mut edits: Vec<Edit> = Vec::new();
        for text in &self.edits {
            edits.push(edit(text, edits.first().map(|first| &first.place))?);
        }
        Ok(edits)
    }
}

/// Reads `@ place: find ~> new`; without `@` and its place, the edit is where the first is.
fn edit(text: &str, first: Option<&Place>) -> Result<Edit, &'static str> {
    let word = |sign: &str| text.split_whitespace().position(|word| word == sign);
    let signs = [REPLACE, BEFORE, AFTER].into_iter();
    let sign = signs.filter_map(|sign| Some((word(sign)?, sign))).min();
    let (_, sign) = sign.ok_or("it needs one of `~>`, `<+` and `+>`")?;
    // The sign is a word: at the end of the text, or with a blank on both sides.
    let sides = text.split_once(&format!(" {sign} "));
    let (left, new) = sides.unwrap_or((text.trim_end_matches(sign), ""));
    let (mut place, find) = match (left.trim().strip_prefix("@ "), first) {
        (Some(left), _) => {
            let (at, find) = left.split_once(": ").unwrap_or((left, ""));
            (place(at), find)
        }
        (None, Some(first)) => (first.clone(), left.trim()),
        (None, None) => return Err("it needs `@` and the item that it changes"),
    };
    let parts = find.rsplit_once(" #");
    let numbered = parts.and_then(|(find, nth)| Some((find, nth.parse().ok()?)));
    let (find, nth) = numbered.map_or((find, None), |(find, nth)| (find, Some(nth)));
    let is_same = match sign {
        REPLACE => !find.is_empty() && texts(new) == texts(find),
        _ => texts(new).is_empty(),
    };
    if is_same {
        return Err("it changes nothing");
    }
    (place.find, place.nth) = (find.to_owned(), nth);
    let new = new.to_owned();
    Ok(Edit { place, sign, new })
}

/// Reads `crate/item in file`.
fn place(text: &str) -> Place {
    let (text, file) = text.rsplit_once(" in ").unwrap_or((text, ""));
    let (in_crate, at) = text.split_once('/').unwrap_or(("", text));
    let [in_crate, at, file] = [in_crate, at, file].map(|part| part.trim().to_owned());
    let mut place = Place::default();
    (place.in_crate, place.at, place.file) = (in_crate, at, file);
    place
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
  two @ B::f: old ~> new -- breaks
      & f() +> .g(),
      | h -- that
      & @ sync/C in c.rs <+ struct D;
(unshown)
  three @ impl Drop for E: a: u8 ~> b
      = no test
      = looks
";

    #[test]
    fn a_killer_stands_above_its_mutants() {
        let mutants = parse(FULL).unwrap();
        let edits = mutants.iter().flat_map(|mutant| mutant.edits().unwrap());
        let shown = edits.map(|Edit { place, sign, new }| {
            let number = place.nth.map_or(String::new(), |nth| nth.to_string());
            let (sign, around) = (sign.to_owned(), place.in_crate + &place.file);
            [place.at, around, place.find, number, sign, new].join("|")
        });
        let expected = "A::old||x|2|~>|; B::f||old||~>|new; B::f||f()||+>|.g(), h; \
                        C|syncc.rs|||<+|struct D;; impl Drop for E||a: u8||~>|b";
        assert_eq!(shown.collect::<Vec<_>>().join("; "), expected);
        let [one, two, three] = &*mutants else {
            panic!("{mutants:?}")
        };
        let words = [&*one.name, &one.why, &two.why];
        assert_eq!(words, ["one", "breaks this", "breaks that"]);
        assert_eq!([two.killer(), three.killer()], [Some("loom_a::test"), None]);
        assert_eq!(three.reason, "no test looks");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (rest, what) in [
            ("k\n  m f: a ~> b", "it needs `@`"),
            ("k\n  m @ f: a", "it needs one of"),
            ("k\n  m @ f: a .b ~> a.b // c", "it changes nothing"),
            ("k\n  m @ f: a ~> b\n      = c", "a reason"),
            ("(equivalent)\n  m @ f: a ~> b", "a reason"),
            ("k\n  m @ f: a ~> b\n  m @ g: a ~> b", "there are two"),
            ("  m @ f: a ~> b", "line 1 belongs to no killer"),
        ] {
            let edits = |mutants: Vec<Mutant>| mutants[0].edits().map_err(str::to_owned);
            let error = parse(rest).and_then(edits).unwrap_err();
            assert!(error.contains(what), "{error}");
        }
    }
}
