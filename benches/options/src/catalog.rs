//! All workloads and peers, by name.

use crate::size::Size;
pub use crate::specs::Id;
use crate::specs::SPECS;
use serde::{Deserialize, Serialize};

/// A workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// The workload.
    pub id: Id,
    /// A name for people.
    pub name: &'static str,
    /// Its description, in a sentence.
    pub what: &'static str,
    /// The name of its elements.
    pub of: &'static str,
    /// The number of elements.
    pub full: u64,
    /// The number of elements in a quick run, too few to say how fast.
    pub quick: u64,
    /// The peers with this workload; Ganger is the first.
    pub peers: &'static [Peer],
    /// The figures that count. A run of queues measures further figures.
    pub metrics: &'static [Metric],
}

/// A figure of a workload. Less is better.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metric {
    /// Its name.
    pub variant: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// The target: Ganger's figure is at most each of these.
    pub goals: &'static [Goal],
}

/// An upper bound for a figure of Ganger's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// This multiple of the best peer's figure.
    Best(f64),
    /// This multiple of a peer's figure.
    Of(Peer, f64),
    /// This multiple of the best peer's figure of a variant, even if Ganger does it in another way.
    BestIn(&'static str, f64),
    /// This multiple of Ganger's own figure of a variant.
    OursIn(&'static str, f64),
    /// This figure.
    Just(f64),
}

/// The language of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Built with the benchmarks.
    Rust,
    /// Runs where `go` is installed.
    Go,
    /// Runs where `erl` is installed.
    Erlang,
    /// In Rust, with many crates, in a workspace of its own, which is built only for its
    /// measurement.
    Apart,
}

/// An enum of names: the enum, all of them, their text, and both directions.
macro_rules! names {
    ($(#[$doc:meta])* $type:ident, $kind:literal:
        $($(#[$item:meta])* $variant:ident = $name:literal,)+) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $type {
            $($(#[$item])* #[serde(rename = $name)] $variant,)+
        }

        impl $type {
            /// All, in the order of the tables.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// Returns the name on the command line and in JSON.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }

        impl std::str::FromStr for $type {
            type Err = String;

            fn from_str(name: &str) -> Result<Self, Self::Err> {
                let found = Self::ALL.iter().find(|it| it.name().eq_ignore_ascii_case(name));
                found.copied().ok_or_else(|| {
                    let known = [$($name,)+].join(", ");
                    format!("there is no {} `{name}`; there are {known}", $kind)
                })
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

pub(super) use names;

names! {
    /// A scheduler or queue that runs workloads.
    #[allow(missing_docs, reason = "the names are those of packages")]
    Peer, "peer":
    Ganger = "ganger",
    Tokio = "tokio",
    Ractor = "ractor",
    Kameo = "kameo",
    Xtra = "xtra",
    Actix = "actix",
    Rayon = "rayon",
    Go = "go",
    Erlang = "erlang",
    CrossbeamDeque = "crossbeam-deque",
    St3 = "st3",
    Std = "std",
    CrossbeamChannel = "crossbeam-channel",
    Flume = "flume",
    Kanal = "kanal",
    AsyncChannel = "async-channel",
    ConcurrentQueue = "concurrent-queue",
    CrossbeamQueue = "crossbeam-queue",
    Tcp = "tcp",
    KameoRemote = "kameo-remote",
    RactorCluster = "ractor-cluster",
}

impl Id {
    /// Returns its entry in the catalogue.
    pub fn spec(self) -> &'static Spec {
        &SPECS[self as usize]
    }

    /// Returns whether the workload is about queues alone: a single process runs it for all of its
    /// peers, in turns.
    pub fn is_queue(self) -> bool {
        matches!(self, Self::Deque | Self::Mailbox)
    }

    /// Returns whether two programs run the workload, as nodes.
    pub fn is_of_cluster(self) -> bool {
        (Self::X1..=Self::X16).contains(&self)
    }

    /// Returns whether the workload needs timers. Other workloads run without them: idle threads
    /// would look at them.
    pub fn needs_timers(self) -> bool {
        let supervised = [Self::S3, Self::S3in, Self::S5, Self::S5us];
        let is_async = matches!(self, Self::A10 | Self::A10step | Self::A11);
        (Self::W14..=Self::W17).contains(&self) || is_async || supervised.contains(&self)
    }

    /// Returns whether Ganger's processes are async functions in the workload.
    pub fn is_async(self) -> bool {
        (Self::A1..=Self::A11).contains(&self)
    }
}

impl Peer {
    /// Returns whether the peer is the lower bound of a cost, without processes: no rival.
    pub fn is_floor(self) -> bool {
        self == Self::Tcp
    }

    /// Returns the language of the peer.
    pub fn kind(self) -> Kind {
        match self {
            Self::Go => Kind::Go,
            Self::Erlang => Kind::Erlang,
            Self::KameoRemote | Self::RactorCluster => Kind::Apart,
            _ => Kind::Rust,
        }
    }
}

impl Spec {
    /// Returns the number of elements of a run of this size.
    pub fn elements(&self, size: Size) -> u64 {
        match size {
            Size::Full => self.full,
            Size::Quick => self.quick,
        }
    }

    /// Returns the metric of a variant.
    pub fn metric(&self, variant: &str) -> Option<&'static Metric> {
        self.metrics.iter().find(|metric| metric.variant == variant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_workload_is_one_of_ganger_and_has_sizes_figures_and_goals_of_what_there_is() {
        let mut names = HashSet::new();
        for spec in SPECS {
            assert_eq!(spec.id.name().to_uppercase().parse(), Ok(spec.id));
            assert_eq!(spec.peers.first(), Some(&Peer::Ganger), "{}", spec.id);
            assert!(0 < spec.quick && spec.quick <= spec.full, "{}", spec.id);
            assert!(names.insert(spec.name), "{}", spec.name);
            let variants: HashSet<_> = spec.metrics.iter().map(|m| m.variant).collect();
            assert_eq!(variants.len(), spec.metrics.len(), "{}", spec.id);
            let goals = spec.metrics.iter().flat_map(|metric| metric.goals);
            for goal in goals {
                let is_known = match goal {
                    Goal::Of(peer, _) => spec.peers.contains(peer),
                    Goal::BestIn(variant, _) | Goal::OursIn(variant, _) => {
                        spec.metric(variant).is_some()
                    }
                    Goal::Best(_) | Goal::Just(_) => true,
                };
                assert!(is_known, "{}: {goal:?}", spec.id);
            }
        }
        let error = "W99".parse::<Id>().unwrap_err();
        assert!(error.starts_with("there is no workload `W99`; there are W1, W2, W3a, "));
    }
}
