//! Made-up results for tests: of every workload and peer, with every field that a result can have.

use super::calm::Calm;
use super::lines::{Absence, Figure, Machine, Point, Reason, Results};
use super::plan::Curve;
use crate::stats::{Summary, ratio};
use crate::whole::catalog::{Id, Peer};
use ganger_bench_options::mode::Mode;

const WORKERS: usize = 2;

/// A figure of queues that peers have, too, and that does not count.
pub(crate) const OTHER: (&str, &str) = ("owner, depth 8, 1 thief stealing: wall ns", "ns");

/// The same in every call.
pub(crate) fn results() -> Results {
    let mut figures = Vec::new();
    let base = Point {
        workers: WORKERS,
        processes: None,
        producers: None,
        mode: Mode::AsIs,
    };
    let loops = Point {
        mode: Mode::Loops,
        ..base
    };
    for &id in Id::ALL {
        figures.extend(contest(id, base));
        if !id.is_queue() {
            figures.extend(contest(id, loops));
        }
    }
    for curve in Curve::ALL {
        for &id in curve.workloads() {
            for count in [1, 4, 8] {
                let point = match curve {
                    Curve::Workers => Point {
                        workers: usize::try_from(count).unwrap(),
                        ..base
                    },
                    Curve::Processes => Point {
                        processes: Some(1_000 * count),
                        ..base
                    },
                    Curve::Producers => Point {
                        producers: Some(count),
                        ..base
                    },
                };
                figures.extend(contest(id, point));
            }
        }
    }
    Results {
        machine: machine(),
        figures,
        absences: absences(),
    }
}

fn machine() -> Machine {
    let text = str::to_owned;
    Machine {
        cpu: text("A <fast> processor & more"),
        cores: 2,
        kernel: text("Linux 6.18"),
        governor: text("performance"),
        rustc: text("rustc 1.95.0"),
        versions: vec![
            (text("ganger"), text("0.1.0")),
            (text("tokio"), text("1.54.1")),
        ],
        allocator: text("the system's"),
        commit: text("0123456789ab+"),
        date: text("2026-11-20 12:34"),
        command: text("cargo xtask bench"),
        quick: false,
        interrupted: true,
        calm: Some(Calm {
            runs: 120,
            busy: 3,
            load: 1.5,
        }),
    }
}

fn absences() -> Vec<Absence> {
    let reasons = [
        (
            Id::W1,
            Peer::Go,
            Reason::NotInstalled,
            "`go` is not on the PATH",
        ),
        (
            Id::W12,
            Peer::Erlang,
            Reason::Missing,
            "its \"steps\" are preempted",
        ),
        (Id::W8, Peer::Ractor, Reason::Memory, "78 GB & more"),
        (
            Id::W2,
            Peer::Kameo,
            Reason::Crashed,
            "signal: 11: <it said nothing>",
        ),
        (
            Id::W6,
            Peer::Erlang,
            Reason::Timeout,
            "it had not ended after 180 s",
        ),
    ];
    let absence = |(workload, peer, reason, why): (_, _, _, &str)| Absence {
        workload,
        peer,
        workers: WORKERS,
        processes: (workload == Id::W8).then_some(10_000_000),
        producers: None,
        mode: Mode::AsIs,
        reason,
        why: why.to_owned(),
    };
    let mut absences: Vec<_> = reasons.map(absence).into();
    absences.push(Absence {
        mode: Mode::Loops,
        ..absences[0].clone()
    });
    absences
}

/// Returns the figures of all peers that take part.
fn contest(id: Id, point: Point) -> Vec<Figure> {
    let spec = id.spec();
    let mut metrics: Vec<_> = spec.metrics.iter().map(|m| (m.variant, m.unit)).collect();
    if id == Id::Deque {
        metrics.push(OTHER);
    }
    let mut figures = Vec::new();
    for (nth, &(variant, unit)) in metrics.iter().enumerate() {
        let mut ours = Vec::new();
        for (rank, &peer) in spec.peers.iter().enumerate() {
            let is_own = id.is_queue() && (variant.contains('(') || variant.contains("groups"));
            if peer == Peer::Go || is_own && peer != Peer::Ganger {
                continue;
            }
            let values = values(id, nth, rank, point);
            let ratio = (peer != Peer::Ganger)
                .then(|| ratio(&values, &ours))
                .flatten();
            if peer == Peer::Ganger {
                ours.clone_from(&values);
            }
            figures.push(figure(id, peer, (variant, unit), point, values, ratio));
        }
    }
    figures
}

/// Ganger leads in most; the second peer leads in some.
fn values(id: Id, metric: usize, rank: usize, point: Point) -> Vec<Option<f64>> {
    let seed = (id as usize * 7 + metric * 3) % 11;
    let lead = if rank == 1 && seed < 3 {
        0.6
    } else {
        1.0 + 0.5 * rank as f64
    };
    let lead = match point.mode {
        Mode::AsIs => lead,
        // With loops, leads are smaller.
        Mode::Loops => lead.sqrt(),
    };
    let scale = 10.0 * (1.0 + seed as f64) * lead;
    let more = point.producers.unwrap_or(1) as f64 / (1.0 + point.workers as f64);
    let least = scale * (1.0 + more);
    let last = (rank != 2).then_some(least * 1.4);
    vec![Some(least * 1.1), Some(least), last]
}

fn figure(
    workload: Id,
    peer: Peer,
    (variant, unit): (&str, &str),
    point: Point,
    values: Vec<Option<f64>>,
    ratio_to_ganger: Option<f64>,
) -> Figure {
    let summary = Summary::of(&values).unwrap();
    let has_latencies = matches!(workload, Id::W10 | Id::W12 | Id::W12cpu)
        && matches!(
            (workload, variant),
            (Id::W10, "p50") | (Id::W12 | Id::W12cpu, "p99")
        );
    let middle = summary.median;
    let bucket = |nth: u64| (1_000 * (nth + 1) * (nth + 1), 1 + (20 - nth) * (nth % 7));
    Figure {
        workload,
        peer,
        variant: variant.to_owned(),
        unit: unit.to_owned(),
        n: point.processes.unwrap_or(workload.spec().full),
        workers: point.workers,
        processes: point.processes,
        producers: point.producers,
        mode: point.mode,
        min: summary.min,
        median: middle,
        max: summary.max,
        p50: has_latencies.then_some(middle),
        p99: has_latencies.then_some(3.0 * middle),
        worst: has_latencies.then_some(9.0 * middle),
        ratio_to_ganger,
        reps: summary.count,
        values,
        histogram: if has_latencies {
            (0..20).map(bucket).collect()
        } else {
            Vec::new()
        },
    }
}
