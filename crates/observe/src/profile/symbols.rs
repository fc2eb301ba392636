//! From addresses to functions.

use super::{Sample, Who};
use ganger_sched::{Function, Functions, StepLooks};
use std::cmp::Reverse;
use std::collections::HashMap;

/// The function of a sample in the scheduler's own code: the worker carries out commands of the
/// step, or takes its events out of the mailbox.
const OWN: &str = "(scheduler)";

/// A frame of a stack: an address, and the functions there, the innermost first.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    pub(super) address: u64,
    pub(super) functions: Vec<Function>,
}

/// Looks up the functions of all stacks, and leaves out the frames outside of the steps. The
/// samples come back by their number, the most first.
pub(super) fn resolve(
    stacks: HashMap<(Who, Box<[u64]>), u64>,
    looks: &StepLooks<'_>,
) -> (Vec<Sample>, Vec<Frame>) {
    let mut known = Known {
        functions: |address| looks.functions(address),
        places: HashMap::new(),
        frames: Vec::new(),
    };
    let mut counts = HashMap::<(Who, Vec<u32>), u64>::new();
    for ((who, addresses), count) in stacks {
        let frames = known.inside(&addresses);
        *counts.entry((who, frames)).or_default() += count;
    }
    let sample = |((who, frames), count)| Sample { who, frames, count };
    let mut samples: Vec<_> = counts.into_iter().map(sample).collect();
    samples.sort_by(|a, b| {
        let key = |it: &Sample| Reverse(it.count);
        (key(a), &a.who, &a.frames).cmp(&(key(b), &b.who, &b.frames))
    });
    (samples, known.frames)
}

struct Known<F> {
    functions: F,
    /// By their addresses.
    places: HashMap<u64, Place>,
    frames: Vec<Frame>,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    /// The place among the frames, if the frame shows a function.
    at: Option<u32>,
    /// The frames further out are the scheduler's.
    is_end: bool,
}

impl<F: FnMut(u64) -> Functions> Known<F> {
    /// Returns the frames of the step, by their places.
    fn inside(&mut self, addresses: &[u64]) -> Vec<u32> {
        let mut inside = Vec::new();
        for (depth, &address) in addresses.iter().enumerate() {
            let place = self.place(address);
            inside.extend(place.at);
            if place.is_end {
                if depth == 0 {
                    inside.extend(self.own().at);
                }
                break;
            }
        }
        inside
    }

    fn place(&mut self, address: u64) -> Place {
        if let Some(place) = self.places.get(&address) {
            return *place;
        }
        let Functions { inner, is_end } = (self.functions)(address);
        let at = (!inner.is_empty()).then(|| self.add(address, inner));
        let place = Place { at, is_end };
        self.places.insert(address, place);
        place
    }

    /// Returns the frame of the scheduler. No code is at address 0.
    fn own(&mut self) -> Place {
        if let Some(place) = self.places.get(&0) {
            return *place;
        }
        let own = Function {
            name: OWN.to_owned(),
            file: None,
            line: None,
        };
        let place = Place {
            at: Some(self.add(0, vec![own])),
            is_end: true,
        };
        self.places.insert(0, place);
        place
    }

    fn add(&mut self, address: u64, functions: Vec<Function>) -> u32 {
        let at = u32::try_from(self.frames.len()).unwrap_or(u32::MAX);
        self.frames.push(Frame { address, functions });
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn functions(names: &[&str], is_end: bool) -> Functions {
        let function = |name: &&str| Function {
            name: (*name).to_owned(),
            file: None,
            line: None,
        };
        let inner = names.iter().map(function).collect();
        Functions { inner, is_end }
    }

    // pins: V14
    #[test]
    fn a_step_ends_where_the_scheduler_calls_it() {
        let mut looked_up = Vec::new();
        let mut known = Known {
            functions: |address| {
                looked_up.push(address);
                match address {
                    1 => functions(&["inlined", "hot"], false),
                    2 => functions(&["own"], true),
                    3 => functions(&[], true),
                    _ => functions(&["main"], false),
                }
            },
            places: HashMap::new(),
            frames: Vec::new(),
        };
        assert_eq!(known.inside(&[1, 2, 4]), [0, 1]);
        assert_eq!(known.inside(&[1, 3, 4]), [0]);
        assert_eq!(known.inside(&[3, 4]), [2]);
        assert_eq!(known.inside(&[3, 1]), [2]);
        assert_eq!(known.inside(&[2, 4]), [1, 2]);
        assert_eq!(known.inside(&[]), [0; 0]);
        let names: Vec<_> = (known.frames.iter())
            .map(|it| (it.address, &*it.functions[0].name))
            .collect();
        assert_eq!(names, [(1, "inlined"), (2, "own"), (0, OWN)]);
        assert_eq!(looked_up, [1, 2, 3]);
    }
}
