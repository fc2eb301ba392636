//! The errors of the reader.

use super::schema::{self, TracePacket};
use super::shown::shown;
use super::{SQL, perfetto, thread, trace};
use ganger_observe::trace::{FORMAT, ReadTraceError, Trace};
use ganger_ring::event::{After, Cause, Event, Pick};
use prost::Message as _;
use std::io;

fn error(bytes: &[u8]) -> String {
    Trace::read(bytes).expect_err("it is damaged").to_string()
}

/// Returns a file with a slice, an arrow, a value and arguments of both kinds.
fn file() -> Vec<u8> {
    let woken = Event::Woken {
        process: 7,
        by: 0,
        cause: Cause::Message,
    };
    let begins = Event::TurnBegins {
        process: 7,
        name: SQL,
        pick: Pick::Local,
    };
    let ends = Event::TurnEnds {
        process: 7,
        after: After::Ready,
        steps: 1,
    };
    let queue = Event::Queue {
        name: SQL,
        length: 3,
    };
    let all = [(10, woken), (20, begins), (30, queue), (40, ends)];
    perfetto(&trace(50, [thread("worker 0", &all)]))
}

/// Returns the file with its packets changed.
fn changed(change: impl FnOnce(&mut Vec<TracePacket>)) -> Vec<u8> {
    let mut file = schema::Trace::decode(&file()[..]).unwrap();
    change(&mut file.packet);
    file.encode_to_vec()
}

fn event(packets: &mut [TracePacket], nth: usize) -> &mut schema::TrackEvent {
    let events = packets
        .iter_mut()
        .filter_map(|packet| packet.track_event.as_mut());
    events.into_iter().nth(nth).expect("an event")
}

fn last(packets: &mut [TracePacket]) -> &mut TracePacket {
    packets.last_mut().expect("a packet")
}

fn track(packets: &mut [TracePacket], nth: usize) -> &mut schema::TrackDescriptor {
    packets[nth].track_descriptor.as_mut().expect("a track")
}

/// Returns the texts of the first event with names.
fn data(packets: &mut [TracePacket]) -> &mut schema::InternedData {
    let data = packets
        .iter_mut()
        .filter_map(|packet| packet.interned_data.as_mut());
    let mut data = data.filter(|data| !data.event_names.is_empty());
    data.next().expect("a name")
}

/// A way to damage a file.
type Change = fn(&mut Vec<TracePacket>);

#[test]
fn other_files() {
    assert!(error(b"").starts_with("not a Perfetto trace: it begins with []"));
    assert!(
        error(b"{\"traceEvents\":[]}").starts_with("not a Perfetto trace: it begins with [123")
    );
    let foreign = changed(|packets| packets.retain(|packet| packet.track_event.is_none()));
    assert!(error(&foreign).contains("none of Ganger"));
    let headless = changed(|packets| {
        let head = packets
            .iter()
            .position(|packet| packet.track_event.is_some());
        packets.remove(head.unwrap());
    });
    assert!(error(&headless).contains("none of Ganger"));
}

#[test]
fn other_versions() {
    let of = |version| {
        changed(|packets| {
            event(packets, 0).debug_annotations[0].uint_value = Some(version);
        })
    };
    let newer = error(&of(FORMAT + 1));
    assert_eq!(
        newer,
        "the trace has format 2, and this program reads 1: use the version of the program that \
         recorded it, or a newer one"
    );
    let older = error(&of(0));
    assert!(older.ends_with("or record it again"), "{older}");
    assert!(matches!(
        Trace::read(&of(7)[..]),
        Err(ReadTraceError::Version { found: 7 })
    ));
}

#[test]
fn a_source_that_fails() {
    struct Broken;
    impl io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("no disk"))
        }
    }
    let error = Trace::read(Broken).unwrap_err();
    assert_eq!(error.to_string(), "can't read the trace: no disk");
}

/// Cuts the file off at each place, between packets too: the reader notices each cut.
#[test]
fn a_file_that_was_cut_off() {
    let file = file();
    shown(&file);
    for end in 0..file.len() {
        Trace::read(&file[..end]).expect_err("a part is no file");
    }
    assert!(Trace::read(&file[..]).is_ok());
    let error = error(&file[..file.len() - 1]);
    assert!(
        error.contains("the end: the file has been cut off"),
        "{error}"
    );
}

/// Damages files: each change breaks a rule, and the error names the rule.
#[test]
fn damaged_files() {
    let cases: &[(&str, Change)] = &[
        ("an event with a time", |packets| {
            last(packets).timestamp = None;
        }),
        ("a time in the order", |packets| {
            last(packets).timestamp = Some(1);
        }),
        ("a time in the order", |packets| {
            last(packets).timestamp = Some(51);
        }),
        ("an event on a track", |packets| {
            event(packets, 1).track_uuid = Some(99);
        }),
        ("a value on a queue's track", |packets| {
            event(packets, 1).r#type = Some(4);
        }),
        ("a kind of event", |packets| {
            event(packets, 1).r#type = Some(0);
        }),
        ("the end of a slice that has begun", |packets| {
            event(packets, 1).r#type = Some(2);
        }),
        ("the end of each slice and each flow", |packets| {
            packets.pop();
        }),
        ("every event of the file", |packets| {
            let is_value = |packet: &TracePacket| {
                packet
                    .track_event
                    .as_ref()
                    .is_some_and(|it| it.counter_value.is_some())
            };
            packets.retain(|packet| !is_value(packet));
        }),
        ("an event of a known category", |packets| {
            event(packets, 1).category_iids.clear();
        }),
        ("an event with a name", |packets| {
            event(packets, 1).name_iid = Some(99);
        }),
        ("the start of the next flow", |packets| {
            event(packets, 1).flow_ids = vec![5];
        }),
        ("a single end of a flow", |packets| {
            event(packets, 1).flow_ids = vec![1];
            event(packets, 1).terminating_flow_ids = vec![1];
        }),
        ("the end of a flow that has begun", |packets| {
            event(packets, 1).terminating_flow_ids = vec![1];
        }),
        ("an argument with a name", |packets| {
            event(packets, 1).debug_annotations[0].name_iid = None;
        }),
        ("an argument with a value", |packets| {
            event(packets, 1).debug_annotations[0].uint_value = None;
        }),
        ("a whole head", |packets| {
            event(packets, 0).debug_annotations.pop();
        }),
        ("a single head", |packets| {
            let head = packets.iter().find(|packet| packet.track_event.is_some());
            let mut head = head.expect("a head").clone();
            head.interned_data = None;
            packets.push(head);
        }),
        ("the next track", |packets| {
            track(packets, 3).uuid = Some(9);
        }),
        ("a track below another", |packets| {
            track(packets, 3).parent_uuid = Some(9);
        }),
        ("a text with the next id", |packets| {
            data(packets).event_names[0].iid = Some(9);
        }),
        ("a text with its id", |packets| {
            data(packets).event_names[0].name = None;
        }),
    ];
    for (expected, change) in cases {
        let error = error(&changed(*change));
        assert!(error.contains(expected), "{expected}: {error}");
        assert!(error.contains("the trace is damaged at byte"), "{error}");
    }
}

/// Reads files of later versions: the reader passes over unknown fields, packets and arguments.
#[test]
fn what_is_unknown_is_passed_over() {
    let mut file = changed(|packets| {
        packets.push(TracePacket::default());
        let data = packets
            .iter()
            .filter_map(|packet| packet.interned_data.as_ref());
        let keys: usize = data.map(|data| data.debug_annotation_names.len()).sum();
        let iid = Some(keys as u64 + 1);
        let mut events = packets
            .iter_mut()
            .filter(|packet| packet.track_event.is_some());
        let last = events.next_back().expect("an event");
        let name = Some("news".to_owned());
        let names = &mut last
            .interned_data
            .get_or_insert_default()
            .debug_annotation_names;
        names.push(schema::Interned { iid, name });
        let annotation = schema::DebugAnnotation {
            name_iid: iid,
            uint_value: Some(5),
            string_value_iid: None,
        };
        let event = last.track_event.as_mut().expect("an event");
        event.debug_annotations.push(annotation);
    });
    // An unknown field of each kind.
    file.extend([0x90, 0x01, 0x07]);
    file.extend([0x91, 0x01, 1, 2, 3, 4, 5, 6, 7, 8]);
    file.extend([0x92, 0x01, 0x02, 0xFF, 0xFF]);
    file.extend([0x95, 0x01, 1, 2, 3, 4]);
    let trace = Trace::read(&file[..]).unwrap();
    assert_eq!(perfetto(&trace), super::damage::file());
    // A group, long out of use.
    file.extend([0x93, 0x01]);
    assert!(error(&file).contains("a field's kind"));
}

/// Reads too long numbers: Protobuf's numbers have at most 64 bits in ten bytes, and no field has
/// the number 0.
#[test]
fn numbers_beyond_64_bits() {
    let with = |bytes: &[u8]| [&file()[..], bytes].concat();
    let most = [
        0x10, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01,
    ];
    assert!(Trace::read(&with(&most)[..]).is_ok());
    let mut more = most;
    more[10] = 2;
    assert!(error(&with(&more)).contains("where a number was expected"));
    more[10] = 0x81;
    assert!(error(&with(&[&more[..], &[0]].concat())).contains("where a number was expected"));
    assert!(error(&with(&most[..5])).contains("cut off"));
    assert!(error(&with(&[0x00, 0x01])).contains("a field's number"));
    let high = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01, 0x00];
    assert!(error(&with(&high)).contains("a field's number"));
}
