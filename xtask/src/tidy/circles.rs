//! No files of a crate import each other in a circle, but for the arrows in a list, which may only
//! shrink.
//!
//! A file in a circle can't be read, tested or moved without all others of the circle. The list
//! names arrows, each with its reason, so that no circle is left without them. An arrow that closes
//! no circle any more has to leave the list.

use super::Finding;
use super::arrows::{Arrow, Crate};
use std::collections::VecDeque;

/// The arrows that may close circles: `crate: from -> to: reason`, a line each.
const LIST: &str = include_str!("circles.txt");
const PATH: &str = "xtask/src/tidy/circles.txt";

/// A line of the list.
struct Known<'a> {
    line: usize,
    name: &'a str,
    from: &'a str,
    to: &'a str,
}

/// Checks all crates against the list.
pub(super) fn check(crates: &[Crate<'_>], findings: &mut Vec<Finding>) {
    against(LIST, crates, findings);
}

fn against(list: &str, crates: &[Crate<'_>], findings: &mut Vec<Finding>) {
    let known = read(list, findings);
    for it in crates {
        let of_crate = |known: &&Known<'_>| known.name == it.name();
        check_crate(
            it,
            &known.iter().filter(of_crate).collect::<Vec<_>>(),
            findings,
        );
    }
    for known in known {
        if !crates.iter().any(|it| it.name() == known.name) {
            findings.push(at(known.line, format!("there is no crate {}", known.name)));
        }
    }
}

/// Returns the lines of the list.
fn read<'a>(list: &'a str, findings: &mut Vec<Finding>) -> Vec<Known<'a>> {
    let mut known = Vec::new();
    for (line, text) in (1..).zip(list.lines()) {
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let parts: Vec<_> = text.splitn(3, ": ").collect();
        let arrow = parts.get(1).and_then(|arrow| arrow.split_once(" -> "));
        match (arrow, parts.get(2)) {
            (Some((from, to)), Some(reason)) if !reason.trim().is_empty() => known.push(Known {
                line,
                name: parts[0],
                from,
                to,
            }),
            _ => findings.push(at(line, "expected `crate: from -> to: reason`".to_owned())),
        }
    }
    known
}

fn at(line: usize, what: String) -> Finding {
    Finding {
        path: PATH.to_owned(),
        line: Some(line),
        what,
    }
}

fn check_crate(it: &Crate<'_>, known: &[&Known<'_>], findings: &mut Vec<Finding>) {
    let is = |arrow: &Arrow, known: &Known<'_>| {
        it.files[arrow.from].name == known.from && it.files[arrow.to].name == known.to
    };
    let mut left: Vec<Arrow> = (it.arrows.iter().copied())
        .filter(|arrow| !known.iter().any(|known| is(arrow, known)))
        .collect();
    for known in known {
        let arrow = it.arrows.iter().find(|arrow| is(arrow, known));
        let closes = arrow.is_some_and(|arrow| way(&left, arrow.to, arrow.from).is_some());
        if !closes {
            let Known { from, to, line, .. } = known;
            let what = format!("{from} -> {to} closes no circle: take the line out of the list");
            findings.push(at(*line, what));
            left.extend(arrow);
        }
    }
    // A circle is told once, at the first of its arrows, and not once more for each arrow.
    while let Some((at, circle)) = first_circle(&left) {
        let arrow = left.remove(at);
        let names: Vec<_> = circle.iter().map(|&file| it.files[file].name).collect();
        let what = format!(
            "these files import each other in a circle: {} -> {}",
            names.join(" -> "),
            names[0]
        );
        findings.push(Finding::new(it.files[arrow.from].source, arrow.line, what));
    }
}

/// Returns the place of the first arrow that closes a circle, and a shortest circle of it.
fn first_circle(arrows: &[Arrow]) -> Option<(usize, Vec<usize>)> {
    let circles = arrows.iter().enumerate();
    circles.into_iter().find_map(|(at, arrow)| {
        let mut circle = way(arrows, arrow.to, arrow.from)?;
        circle.rotate_right(1);
        Some((at, circle))
    })
}

/// Returns the files on a shortest way from one file to another.
fn way(arrows: &[Arrow], from: usize, to: usize) -> Option<Vec<usize>> {
    let files = arrows.iter().flat_map(|arrow| [arrow.from, arrow.to]);
    let mut before = vec![None; files.max()?.max(from).max(to) + 1];
    let mut queue = VecDeque::from([from]);
    before[from] = Some(from);
    while let Some(file) = queue.pop_front() {
        if file == to {
            let mut way = vec![to];
            let mut file = to;
            while file != from {
                file = before[file]?;
                way.push(file);
            }
            way.reverse();
            return Some(way);
        }
        for arrow in arrows.iter().filter(|arrow| arrow.from == file) {
            if before[arrow.to].is_none() {
                before[arrow.to] = Some(file);
                queue.push_back(arrow.to);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::arrows::crates;
    use crate::tidy::arrows::tests::sources;

    /// A planted circle of three files, and a file beside it.
    const CIRCLE: [(&str, &str); 4] = [
        ("a.rs", "// first\nuse crate::b::B;\n"),
        ("b/mod.rs", "fn f() { super::c::C }\n"),
        ("c.rs", "use crate::{a::A, d::D};\n"),
        ("d.rs", ""),
    ];

    /// Returns the findings, as `path:line: what`.
    fn found(list: &str, files: &[(&str, &str)]) -> Vec<String> {
        let sources = sources(files);
        let mut findings = Vec::new();
        against(list, &crates(&sources), &mut findings);
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_circle_is_found_once() {
        let what = "these files import each other in a circle: a -> b -> c -> a";
        let expected = [format!("crates/x/src/a.rs:2: {what}")];
        assert_eq!(found("", &CIRCLE), expected);
        assert!(found("", &CIRCLE[1..]).is_empty());
    }

    #[test]
    fn each_circle_is_found() {
        let files = [
            ("a.rs", "use crate::b::B;\n"),
            ("b.rs", "use crate::a::A;\nuse crate::c::C;\n"),
            ("c.rs", "use crate::b::B;\n"),
        ];
        assert_eq!(found("", &files).len(), 2);
    }

    #[test]
    fn a_known_arrow_may_close_a_circle_while_it_does() {
        let list = "# reasons\nx: c -> a: because\n";
        assert!(found(list, &CIRCLE).is_empty());
        let gone = format!("{PATH}:2: c -> a closes no circle: take the line out of the list");
        assert_eq!(found(list, &CIRCLE[1..]), [&*gone]);
        let twice = "x: c -> a: because\nx: b -> c: because\n";
        assert_eq!(
            found(twice, &CIRCLE),
            [gone.replace(":2:", ":1:")],
            "one of the two is enough"
        );
        let unknown = format!("{PATH}:1: a -> d closes no circle: take the line out of the list");
        assert_eq!(found("x: a -> d: because\n", &CIRCLE)[0], unknown);
    }

    #[test]
    fn a_line_has_a_crate_an_arrow_and_a_reason() {
        for line in ["x: c -> a", "x: c -> a: ", "x: c: because", "x"] {
            let expected = format!("{PATH}:1: expected `crate: from -> to: reason`");
            assert_eq!(found(line, &CIRCLE[..1]), [expected]);
        }
        let unknown = format!("{PATH}:1: there is no crate y");
        assert_eq!(found("y: c -> a: because", &CIRCLE[..1]), [unknown]);
    }
}
