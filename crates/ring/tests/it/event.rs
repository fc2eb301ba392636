//! Events as records, and back.

use ganger_ring::event::{After, Cause, End, Event, KEY_MASK, Pick, Record, Unknown};
use proptest::prelude::*;
use proptest::sample::select;

/// Generates any event whose parts fit a record.
fn event() -> impl Strategy<Value = Event> {
    let parts = (any::<u64>(), any::<u64>(), any::<u32>(), 0..=KEY_MASK);
    parts.prop_flat_map(|(process, other, name, key)| {
        let plain = select(vec![
            Event::Sent {
                to: process,
                from: other,
                message: name,
                key,
            },
            Event::Taken {
                process,
                message: name,
                key,
            },
            Event::Yielded {
                process,
                command: name,
                tag: other,
                token: key,
            },
            Event::Completed {
                process,
                command: name,
                token: key,
            },
            Event::TimerFired {
                process,
                late: other,
            },
            Event::Parked,
            Event::Unparked,
            Event::Stole {
                victim: key,
                count: other,
            },
            Event::Spare { worker: key },
            Event::Spawned {
                process,
                parent: other,
                name,
            },
            Event::Alarm {
                process,
                name,
                value: other,
            },
            Event::Mark {
                process,
                name,
                value: other,
            },
            Event::Queue {
                name,
                length: other,
            },
        ]);
        let of = move |codes: usize| select((0..codes).collect::<Vec<_>>());
        prop_oneof![
            13 => plain,
            1 => of(Pick::ALL.len()).prop_map(move |code| Event::TurnBegins {
                process,
                name,
                pick: Pick::ALL[code],
            }),
            1 => of(After::ALL.len()).prop_map(move |code| Event::TurnEnds {
                process,
                after: After::ALL[code],
                steps: other,
            }),
            1 => of(Cause::ALL.len()).prop_map(move |code| Event::Woken {
                process,
                by: other,
                cause: Cause::ALL[code],
            }),
            1 => of(End::ALL.len()).prop_map(move |code| Event::Ended {
                process,
                end: End::ALL[code],
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_event_comes_back(at in any::<u64>(), event in event()) {
        prop_assert_eq!(Event::read(event.record(at)), Ok((at, event)));
    }

    /// Reads any record without a panic: a known event survives a write and a read.
    #[test]
    fn any_words_are_an_event_or_unknown(
        at in any::<u64>(),
        kind in 0..20_u64,
        word in any::<u64>(),
        process in any::<u64>(),
        argument in any::<u64>(),
    ) {
        let record = [at, word << 8 | kind, process, argument];
        if let Ok((at, event)) = Event::read(record) {
            prop_assert_eq!(Event::read(event.record(at)), Ok((at, event)));
        }
    }
}

/// Checks the numbers of kinds and codes, which are in files, and so never change.
#[test]
fn the_layout_is_that_of_version_1() {
    let begins = Event::TurnBegins {
        process: 0x11,
        name: 0x2233,
        pick: Pick::Stolen,
    };
    assert_eq!(begins.record(9), [9, 0x2233_0000_0401, 0x11, 0]);
    let kind = |event: Event| event.record(0)[1] & 0xFF;
    let (process, name, other) = (1, 2, 3);
    let kinds = [
        kind(begins),
        kind(Event::TurnEnds {
            process,
            after: After::Waits,
            steps: 1,
        }),
        kind(Event::Woken {
            process,
            by: other,
            cause: Cause::Message,
        }),
        kind(Event::Sent {
            to: process,
            from: other,
            message: name,
            key: 0,
        }),
        kind(Event::Taken {
            process,
            message: name,
            key: 0,
        }),
        kind(Event::Yielded {
            process,
            command: name,
            tag: other,
            token: 0,
        }),
        kind(Event::Completed {
            process,
            command: name,
            token: 0,
        }),
        kind(Event::TimerFired {
            process,
            late: other,
        }),
        kind(Event::Parked),
        kind(Event::Unparked),
        kind(Event::Stole {
            victim: 1,
            count: other,
        }),
        kind(Event::Spare { worker: 1 }),
        kind(Event::Spawned {
            process,
            parent: other,
            name,
        }),
        kind(Event::Ended {
            process,
            end: End::Done,
        }),
        kind(Event::Alarm {
            process,
            name,
            value: other,
        }),
        kind(Event::Mark {
            process,
            name,
            value: other,
        }),
        kind(Event::Queue {
            name,
            length: other,
        }),
    ];
    assert!(kinds.into_iter().eq(1..=17), "{kinds:?}");
    assert!(Pick::ALL.iter().map(|it| *it as u8).eq(0..6));
    assert!(After::ALL.iter().map(|it| *it as u8).eq(0..3));
    assert!(Cause::ALL.iter().map(|it| *it as u8).eq(0..6));
    assert!(End::ALL.iter().map(|it| *it as u8).eq(0..7));
}

#[test]
fn a_long_key_loses_its_high_bits_alone() {
    let taken = |key| Event::Taken {
        process: 5,
        message: 6,
        key,
    };
    let (_, read) = Event::read(taken(u32::MAX).record(0)).unwrap();
    assert_eq!(read, taken(KEY_MASK));
}

#[test]
fn unknown_kinds_and_codes_are_said() {
    let unknown = |record: Record| Event::read(record).unwrap_err();
    assert_eq!(unknown([1, 0, 0, 0]), Unknown { kind: 0, detail: 0 });
    assert_eq!(
        unknown([1, 18, 0, 0]),
        Unknown {
            kind: 18,
            detail: 0
        }
    );
    let code = unknown([1, 9 << 8 | 1, 0, 0]);
    assert_eq!(
        code.to_string(),
        "a record of kind 1 with detail 9 is unknown to version 1"
    );
}
