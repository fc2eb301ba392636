//! The costs of a round.

use super::callgrind::Callgrind;
use super::listing::{Executed, Listing};
use super::profile::Profile;
use crate::Failure;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The kinds of cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    /// Of all code.
    Instructions,
    /// Instructions of the program itself.
    Own,
    /// Read-modify-writes of the program itself.
    Rmws,
    /// Full fences of the program itself.
    Fences,
    /// Fences that are free where the system has `membarrier`.
    LightFences,
    /// Read-modify-writes and fences of libraries: the allocator's.
    LibraryRmws,
    Allocations,
    Frees,
}

impl Kind {
    pub(super) const ALL: [Self; 8] = [
        Self::Instructions,
        Self::Own,
        Self::Rmws,
        Self::Fences,
        Self::LightFences,
        Self::LibraryRmws,
        Self::Allocations,
        Self::Frees,
    ];

    /// Returns the name for columns and complaints.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Instructions => "instructions",
            Self::Own => "own",
            Self::Rmws => "RMWs",
            Self::Fences => "fences",
            Self::LightFences => "light",
            Self::LibraryRmws => "libc's",
            Self::Allocations => "allocs",
            Self::Frees => "frees",
        }
    }

    /// Returns the precision of a count, as the number of parts of a unit.
    fn parts(self) -> f64 {
        match self {
            Self::Instructions | Self::Own => 10.0,
            _ => 100.0,
        }
    }

    pub(super) fn round(self, count: f64) -> f64 {
        let rounded = (count * self.parts()).round() / self.parts();
        // Not -0.
        rounded + 0.0
    }

    pub(super) fn show(self, count: f64) -> String {
        match self {
            Self::Instructions | Self::Own => format!("{count:.1}"),
            _ => format!("{count:.2}"),
        }
    }
}

/// The count of each counted kind.
pub(super) type Cost = BTreeMap<Kind, f64>;

const ALLOCATIONS: [&str; 5] = [
    "malloc",
    "calloc",
    "realloc",
    "posix_memalign",
    "aligned_alloc",
];
const FREES: [&str; 2] = ["free", "realloc"];

/// An act that the program repeats, with few rounds and with many.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Act {
    pub(super) name: String,
    rounds: [u64; 2],
    pub(super) what: String,
}

impl Act {
    /// Reads a line of `ganger-count --list`.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let mut fields = line.splitn(4, '\t');
        let mut next = || fields.next();
        let (name, few, many, what) = (next()?, next()?, next()?, next()?);
        Some(Self {
            name: name.to_owned(),
            rounds: [few.parse().ok()?, many.parse().ok()?],
            what: what.to_owned(),
        })
    }

    /// Runs it with few rounds and with many.
    pub(super) fn profiles(
        &self,
        callgrind: &Callgrind,
        program: &Path,
    ) -> Result<[Profile; 2], Failure> {
        let profile = |rounds: u64| callgrind.profile(program, &[&self.name, &rounds.to_string()]);
        Ok([profile(self.rounds[0])?, profile(self.rounds[1])?])
    }

    /// Returns the counts of a round: atomic instructions only if a listing of them is given.
    pub(super) fn count(
        &self,
        [few, many]: [Profile; 2],
        program: &Path,
        listing: Option<&mut Listing>,
    ) -> Result<Cost, Failure> {
        let listing = match listing {
            None => None,
            Some(listing) => {
                listing.add(&many)?;
                Some(&*listing)
            }
        };
        let program = program.to_string_lossy();
        if many.instructions_of(&program) == 0 {
            return Err(format!("callgrind knows nothing of {program}").into());
        }
        Ok(self.difference(&program, [&few, &many], listing))
    }

    fn difference(
        &self,
        program: &str,
        profiles: [&Profile; 2],
        listing: Option<&Listing>,
    ) -> Cost {
        let [fewer, more] = profiles.map(|profile| {
            let mut counts = vec![
                (Kind::Instructions, profile.instructions),
                (Kind::Own, profile.instructions_of(program)),
                (Kind::Allocations, profile.calls(&ALLOCATIONS)),
                (Kind::Frees, profile.calls(&FREES)),
            ];
            if let Some(listing) = listing {
                let Executed {
                    rmws,
                    fences,
                    light_fences,
                    foreign,
                } = listing.executed(profile);
                counts.extend([
                    (Kind::Rmws, rmws),
                    (Kind::Fences, fences),
                    (Kind::LightFences, light_fences),
                    (Kind::LibraryRmws, foreign),
                ]);
            }
            counts
        });
        let rounds = (self.rounds[1] - self.rounds[0]) as f64;
        let both = fewer.into_iter().zip(more);
        both.map(|((kind, fewer), (_, more))| {
            let count = more.saturating_sub(fewer) as f64 / rounds;
            (kind, kind.round(count))
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acts_are_read_from_lines() {
        let act = Act::parse("step\t2\t12\ta step: one").unwrap();
        let expected = Act {
            name: "step".to_owned(),
            rounds: [2, 12],
            what: "a step: one".to_owned(),
        };
        assert_eq!(act, expected);
        assert_eq!(Act::parse("step\t2\tmany\ta step"), None);
        assert_eq!(Act::parse("step\t2\t12"), None);
    }

    #[test]
    fn a_round_costs_what_more_rounds_cost_more() {
        let profile = |instructions: u64, calls: u64, own: u64| {
            let text = format!(
                "summary: {instructions}\nob=/a\n0 0 {own}\ncfn=(1) malloc\ncalls={calls} 0\n\
                 0 0 9\ncfn=(2) free\ncalls=7 0\n0 0 9\nob=/b\n0 0 70\n"
            );
            Profile::parse(&text).unwrap()
        };
        let act = Act::parse("step\t2\t12\ta step").unwrap();
        let [few, many] = [profile(1_000, 3, 30), profile(5_154, 18, 90)];
        let cost = act.difference("/a", [&few, &many], None);
        let expected = [
            (Kind::Instructions, 415.4),
            (Kind::Own, 6.0),
            (Kind::Allocations, 1.5),
            (Kind::Frees, 0.0),
        ];
        assert_eq!(cost, Cost::from(expected));
    }
}
