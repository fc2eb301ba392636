//! Made-up results for tests: of every workload and peer, with every field that a result can have.

use super::calm::Calm;
use super::lines::{Absence, Figure, Machine, Point, Reason, Results};
use super::plan::Curve;
use crate::whole::catalog::{Id, Peer};
use ganger_bench_options::mode::Mode;

/// Returns the same results in every call: each peer takes half as long again as the peer before.
pub(crate) fn results() -> Results {
    let base = Point::of(2, Mode::AsIs);
    let mut figures = Vec::new();
    for &id in Id::ALL {
        figures.extend(contest(id, base));
        if !id.is_queue() {
            figures.extend(contest(id, Point::of(2, Mode::Loops)));
        }
    }
    for curve in Curve::ALL {
        for &id in curve.workloads() {
            for count in [1, 4, 8] {
                figures.extend(contest(id, curve.point(base, count)));
            }
        }
    }
    let absence = |workload, peer, reason, why: &str| Absence {
        workload,
        peer,
        point: Point {
            processes: (workload == Id::W8).then_some(10_000_000),
            ..base
        },
        reason,
        why: why.to_owned(),
    };
    let mut absences = vec![
        absence(
            Id::W1,
            Peer::Go,
            Reason::NotInstalled,
            "`go` is not on the PATH",
        ),
        absence(Id::W8, Peer::Ractor, Reason::Memory, "78 GB & more"),
        absence(Id::W2, Peer::Kameo, Reason::Crashed, "signal: 11"),
    ];
    absences.push(absences[0].clone());
    absences[3].point.mode = Mode::Loops;
    Results {
        machine: Machine {
            cpu: "A <fast> processor & more".to_owned(),
            cores: 2,
            versions: vec![("tokio".to_owned(), "1.54.1".to_owned())],
            interrupted: true,
            calm: Some(Calm {
                runs: 120,
                busy: 3,
                load: 1.5,
            }),
            ..Machine::default()
        },
        figures,
        absences,
    }
}

/// Returns the figures of all peers that take part; Go is not installed.
fn contest(workload: Id, point: Point) -> Vec<Figure> {
    let spec = workload.spec();
    let peers = spec.peers.iter().filter(|&&peer| peer != Peer::Go);
    let mut figures = Vec::new();
    for (nth, metric) in spec.metrics.iter().enumerate() {
        for (rank, &peer) in (0_u32..).zip(peers.clone()) {
            let min = (10 + nth) as f64 * 1.5_f64.powf(rank.into());
            figures.push(Figure {
                workload,
                peer,
                variant: metric.variant.to_owned(),
                unit: metric.unit.to_owned(),
                n: point.processes.unwrap_or(spec.full),
                point,
                min,
                median: 1.1 * min,
                max: 2.0 * min,
                p50: Some(min),
                p99: Some(min),
                worst: Some(min),
                ratio_to_ganger: (rank > 0).then(|| 1.5_f64.powf(rank.into())),
                reps: 2,
                values: vec![Some(2.0 * min), None, Some(min)],
                histogram: vec![(1_000, 1), (2_000, 7)],
            });
        }
    }
    figures
}
