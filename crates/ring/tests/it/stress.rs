//! A writer at full speed while readers copy, with an account of every record.

use ganger_ring::ring;
use std::sync::Barrier;
use std::thread;

/// Returns the factor of the test's length, by the environment.
fn times() -> u64 {
    let times = std::env::var("GANGER_STRESS").ok();
    times.map_or(1, |times| times.parse().expect("a number"))
}

fn record(number: u64) -> [u64; 4] {
    [number, !number, number << 7, number ^ 0x5555]
}

#[test]
fn readers_beside_a_writer_account_for_every_record() {
    let records = 200_000 * times();
    for bytes in [64, 1 << 10, 1 << 16] {
        let (writer, reader) = ring::<4>(bytes);
        let begin = Barrier::new(3);
        let read = || {
            begin.wait();
            let mut seen = 0;
            while seen < records {
                let snapshot = reader.snapshot();
                let end = snapshot.lost + snapshot.records.len() as u64;
                assert!(end >= seen, "the end went back from {seen} to {end}");
                seen = end;
                for (number, found) in (snapshot.lost..).zip(snapshot.records) {
                    assert_eq!(found, record(number));
                }
            }
            seen
        };
        thread::scope(|scope| {
            let readers = [scope.spawn(read), scope.spawn(read)];
            begin.wait();
            for number in 0..records {
                writer.push(record(number));
            }
            for reader in readers {
                assert_eq!(reader.join().unwrap(), records);
            }
        });
    }
}
