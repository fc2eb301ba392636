//! The moves of a run.

use ganger_proc_api::Pid;
use ganger_sched::internal::sim::{Actor, Did, Given, Move, Note, short};
use std::fmt;
use std::mem;

/// The moves of a run, in order, each with its notes: faults, the events of a step, the commands of
/// the step, the ends of processes, and the moves of other actors in the middle of it.
///
/// The same seed gives the same trace: as text, byte for byte.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace(Vec<Move>);

impl Trace {
    pub(crate) fn add(&mut self, at: &'static str, actor: Actor, did: Did, notes: Vec<Note>) {
        self.0.push(Move {
            at,
            actor,
            did,
            notes,
        });
    }

    /// Adds the notes between two moves.
    pub(crate) fn add_between(&mut self, notes: Vec<Note>) {
        for note in notes {
            match note {
                Note::Outside(did) => self.add("", Actor::Outside, did, Vec::new()),
                Note::Within(own) => self.0.push(own),
                note => self.add("", Actor::Outside, Did::Nothing, vec![note]),
            }
        }
    }

    /// Returns the number of entries: moves, and events between them.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether the trace is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the last `moves` entries as text. A worker that finds a process and runs it has a
    /// single line for both. Equal lines in a row become one line, and so do moves without work in
    /// a row, of workers and of the monitor.
    #[must_use]
    pub fn last(&self, moves: usize) -> String {
        folded(&self.0[self.len().saturating_sub(moves)..]).concat()
    }

    /// Returns the last `lines` lines, folded as in [`last`](Self::last).
    pub(crate) fn last_lines(&self, lines: usize) -> String {
        let folded = folded(&self.0);
        folded[folded.len().saturating_sub(lines)..].concat()
    }

    /// Returns the lines of all faults, and of all acts from outside.
    pub(crate) fn wrong(&self) -> Vec<String> {
        let text = self.to_string();
        let lines = text.lines().map(str::trim_start);
        let is_wrong = |line: &&str| line.starts_with("fault: ") || line.starts_with("outside: ");
        lines.filter(is_wrong).map(str::to_owned).collect()
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = Lines::default();
        lines.add(&self.0, 0);
        lines
            .end()
            .iter()
            .try_for_each(|line| writeln!(f, "{line}"))
    }
}

/// Folds the moves into lines. A row of moves without work is a single line, and so is a row of
/// equal lines.
fn folded(moves: &[Move]) -> Vec<String> {
    let mut lines = Lines {
        folds: true,
        ..Lines::default()
    };
    lines.add(moves, 0);
    let fold = |same: &[String]| match same.len() {
        1 => format!("{}\n", same[0]),
        times => format!("{} ({times} times)\n", same[0]),
    };
    lines.end().chunk_by(|a, b| a == b).map(fold).collect()
}

/// The machine of an actor, and the actor.
type Who = (&'static str, Actor);

/// Moves as text.
#[derive(Default)]
struct Lines {
    done: Vec<String>,
    folds: bool,
    /// The last moves in a row without work, a line each, and their actors.
    idle: Vec<String>,
    of: Vec<Who>,
    /// The worker and the process of the last line, if the line tells of a find.
    search: Option<(Who, Pid)>,
}

impl Lines {
    fn add<'a>(&mut self, moves: impl IntoIterator<Item = &'a Move>, depth: usize) {
        for it in moves {
            self.add_move(it, depth);
        }
    }

    fn add_move(&mut self, it: &Move, depth: usize) {
        let indent = "  ".repeat(depth);
        let mut notes = &it.notes[..];
        let mut line = match it.actor {
            Actor::Worker(_) | Actor::Monitor => {
                format!("{indent}{}: {}", name(it.at, it.actor), Text(it.did))
            }
            Actor::Outside if it.did != Did::Nothing => {
                format!("{indent}outside: {}", Text(it.did))
            }
            Actor::Outside => return self.add_notes(notes, depth),
            Actor::Timer => format!("{indent}{}", name(it.at, it.actor)),
        };
        if self.folds && is_idle(it) {
            self.idle.push(line);
            let who = (it.at, it.actor);
            if !self.of.contains(&who) {
                self.of.push(who);
            }
            return;
        }
        if let (Did::Ran(_), [Note::Steps(who, given), rest @ ..]) = (it.did, notes) {
            notes = rest;
            line += &format!(" ({who}){}", and(given));
        }
        let found = match it.did {
            Did::Found(pid) | Did::TookUp(pid) | Did::Ran(pid) => Some(((it.at, it.actor), pid)),
            _ => None,
        };
        let search = self.search.take().filter(|own| Some(*own) == found);
        if self.folds && search.is_some() {
            self.done.pop();
        }
        self.push(line);
        self.add_notes(notes, depth + 1);
        if notes.is_empty() && !matches!(it.did, Did::Ran(_)) {
            self.search = found;
        }
    }

    fn add_notes(&mut self, notes: &[Note], depth: usize) {
        let indent = "  ".repeat(depth);
        for note in notes {
            let text = match note {
                Note::Within(it) => {
                    self.add_move(it, depth);
                    continue;
                }
                Note::Outside(did) => format!("outside: {}", Text(*did)),
                Note::Steps(_, given) => format!("steps again{}", and(given)),
                Note::Yields(_, Some(name), tag) => {
                    format!("yields {} (tag {tag})", short(name.as_str()))
                }
                Note::Yields(command, None, tag) => format!("yields command {command} (tag {tag})"),
                Note::Told(text) => text.to_string(),
                other => format!("{other:?}"),
            };
            self.push(format!("{indent}{text}"));
        }
        if depth > 0 {
            self.end_idle();
        }
    }

    fn push(&mut self, line: String) {
        self.search = None;
        self.end_idle();
        self.done.push(line);
    }

    /// Ends a row of moves without work. A single move is shown as it is, several as one line.
    fn end_idle(&mut self) {
        let (mut idle, mut of) = (mem::take(&mut self.idle), mem::take(&mut self.of));
        if idle.len() > 1 {
            of.sort_by_key(|&(at, actor)| match actor {
                Actor::Worker(worker) => (at, worker),
                _ => (at, usize::MAX),
            });
            let indent: String = idle[0].chars().take_while(|it| *it == ' ').collect();
            let names: Vec<_> = of.into_iter().map(|(at, actor)| name(at, actor)).collect();
            let (names, moves) = (names.join(", "), idle.len());
            idle = vec![format!("{indent}{names}: no work ({moves} moves)")];
        }
        if !idle.is_empty() {
            self.search = None;
        }
        self.done.append(&mut idle);
    }

    fn end(mut self) -> Vec<String> {
        self.end_idle();
        self.done
    }
}

/// Returns whether nothing came of the move.
fn is_idle(it: &Move) -> bool {
    let is_idle = matches!(
        it.did,
        Did::Looked
            | Did::Announced
            | Did::Withdrew
            | Did::FellAsleep
            | Did::Woke
            | Did::Watched
            | Did::Dozed
            | Did::Roused
    );
    is_idle && it.notes.is_empty()
}

fn name(at: &str, actor: Actor) -> String {
    let at = of(at);
    match actor {
        Actor::Worker(worker) => format!("{at}worker {worker}"),
        Actor::Monitor => format!("{at}monitor"),
        Actor::Timer => format!("{at}timer"),
        Actor::Outside => format!("{at}outside"),
    }
}

/// Returns the name of a machine as a prefix of its actor's name; empty for a machine without a
/// name.
pub(crate) fn of(machine: &str) -> String {
    match machine {
        "" => String::new(),
        machine => format!("{machine} "),
    }
}

/// Returns the events given to a step, behind a comma, if the step gets any.
fn and(given: &Given) -> String {
    match given.to_string().as_str() {
        "" => String::new(),
        given => format!(", {given}"),
    }
}

/// A move, as text.
struct Text(Did);

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Did::Looked => f.write_str("looks, in vain"),
            Did::Found(pid) => write!(f, "finds {pid}"),
            Did::TookUp(pid) => write!(f, "takes {pid} up"),
            Did::Ran(pid) => write!(f, "runs {pid}"),
            Did::Announced => f.write_str("says that it sleeps"),
            Did::Withdrew => f.write_str("does not sleep after all"),
            Did::Blocked(pid) => write!(f, "blocks in a step of {pid}"),
            Did::StoodDown => f.write_str("stands down"),
            Did::CameBack => f.write_str("is on duty again"),
            Did::Retired => f.write_str("ends, since nobody has needed it"),
            Did::FellAsleep => f.write_str("sleeps"),
            Did::Woke => f.write_str("wakes"),
            Did::Left => f.write_str("leaves"),
            Did::Watched => f.write_str("looks"),
            Did::Dozed => f.write_str("sleeps"),
            Did::Roused => f.write_str("wakes"),
            Did::Terminated(pid) => write!(f, "terminates {pid}"),
            Did::Cancelled(pid) => write!(f, "cancels {pid}"),
            Did::Upgraded(pid) => write!(f, "asks for an upgrade of {pid}"),
            Did::Acted => f.write_str("acts"),
            Did::WokeInVain => f.write_str("wakes a worker in vain"),
            Did::Stopped => f.write_str("a shutdown begins"),
            Did::Forced => f.write_str("the deadline of the shutdown passes"),
            other => write!(f, "{other:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use ganger_proc_api::HostName;

    const WORK: Did = Did::Forced;

    fn trace(moves: &[(usize, Did)]) -> Trace {
        let mut trace = Trace::default();
        for &(worker, did) in moves {
            trace.add("", Actor::Worker(worker), did, Vec::new());
        }
        trace
    }

    #[test]
    fn moves_in_a_row_without_work_are_one_line() {
        let trace = trace(&[
            (1, Did::Woke),
            (1, Did::Looked),
            (0, WORK),
            (1, Did::Looked),
            (0, WORK),
            (0, WORK),
            (2, Did::Looked),
            (1, Did::Announced),
            (2, Did::Looked),
            (1, Did::FellAsleep),
        ]);
        let work = "worker 0: the deadline of the shutdown passes";
        let end = "worker 1, worker 2: no work (4 moves)\n";
        let last = format!("worker 1: looks, in vain\n{work} (2 times)\n{end}");
        assert_eq!(trace.last(7), last);
        assert_eq!(trace.last_lines(3), last);
        let all = format!("worker 1: no work (2 moves)\n{work}\n{last}");
        assert_eq!(trace.last(99), all);
        assert_eq!(trace.to_string().lines().count(), trace.len());
    }

    #[test]
    fn what_a_worker_finds_and_runs_is_one_line() {
        let pid = Pid::new(HostName::new("n").unwrap(), 5);
        let mut moves = vec![
            (0, Did::Found(pid)),
            (1, Did::Looked),
            (0, Did::TookUp(pid)),
        ];
        let runs = format!("worker 1: looks, in vain\nworker 0: runs {pid}\n");
        moves.push((0, Did::Ran(pid)));
        assert_eq!(trace(&moves).last(9), runs);
        assert_eq!(trace(&moves).to_string().lines().count(), 4);
        // Another runs it, or another thing is between.
        for (at, other, kept) in [(3, (1, Did::Ran(pid)), "takes"), (1, (1, WORK), "finds")] {
            let mut moves = moves.clone();
            moves[at] = other;
            assert!(trace(&moves).last(9).contains(kept), "{moves:?}");
        }
        moves.extend([(0, Did::Ran(pid)), (0, Did::Ran(pid))]);
        assert_eq!(
            trace(&moves).last(9),
            runs.replace("5}\n", "5} (3 times)\n")
        );
    }

    #[test]
    fn moves_within_a_move_are_under_it() {
        let idle = |did| {
            Note::Within(Move {
                at: "",
                actor: Actor::Worker(1),
                did,
                notes: Vec::new(),
            })
        };
        let mut trace = Trace::default();
        let within = vec![
            idle(Did::Looked),
            idle(Did::Looked),
            Note::Within(Move {
                at: "",
                actor: Actor::Timer,
                did: Did::Nothing,
                notes: vec![Note::Told("fault: deep".into())],
            }),
        ];
        trace.add("", Actor::Worker(0), WORK, within);
        trace.add("", Actor::Worker(0), Did::Looked, Vec::new());
        let expected = "worker 0: the deadline of the shutdown passes\n  \
                        worker 1: no work (2 moves)\n  timer\n    fault: deep\n\
                        worker 0: looks, in vain\n";
        assert_eq!(trace.last(2), expected);
        assert_eq!(trace.wrong(), ["fault: deep"]);
        assert_eq!(trace.to_string().lines().count(), 6);
    }
}
