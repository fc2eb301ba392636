//! Reads pprof's files by the published schema, with another decoder, beside the folded stacks.

use super::{folded, schema};
use flate2::read::GzDecoder;
use ganger_observe::Profile;
use prost::Message as _;
use std::collections::BTreeMap;
use std::io::Read as _;

/// Checks whether all numbers of the file resolve, and whether its stacks equal the folded stacks.
#[track_caller]
pub(crate) fn check(profile: &Profile) {
    assert_eq!(stacks(&profile.pprof(), profile.hz()), folded(profile));
}

/// Reads a file. Returns its stacks as folded ones have them, with their numbers of samples.
#[track_caller]
pub(crate) fn stacks(file: &[u8], hz: u32) -> BTreeMap<String, u64> {
    let mut bytes = Vec::new();
    GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    let read = schema::Profile::decode(&*bytes).unwrap();
    let text = |number: i64| &*read.string_table[usize::try_from(number).unwrap()];
    let kind = |it: &schema::ValueType| (text(it.r#type).to_owned(), text(it.unit).to_owned());
    let wall = ("wall".to_owned(), "nanoseconds".to_owned());
    let count = ("samples".to_owned(), "count".to_owned());
    assert_eq!(text(0), "");
    let kinds: Vec<_> = read.sample_type.iter().map(kind).collect();
    assert_eq!(kinds, [count, wall.clone()]);
    assert_eq!(read.period_type.as_ref().map(kind), Some(wall));
    let period = 1_000_000_000 / i64::from(hz);
    assert_eq!(read.period, period);
    assert!(read.duration_nanos > 0);
    let [comment] = read.comment[..] else {
        panic!("one comment")
    };
    assert!(text(comment).starts_with("scheduler main: "));
    // Without it `pprof` would look for symbols in the file.
    let [mapping] = &read.mapping[..] else {
        panic!("one mapping")
    };
    assert!(mapping.id == 1 && mapping.has_functions && mapping.has_inline_frames);
    assert!(text(mapping.filename).contains("it-"));
    // Numbered from 1 up.
    for (id, function) in (1..).zip(&read.function) {
        assert_eq!((function.id, function.start_line), (id, 0));
        assert!(!text(function.name).is_empty());
        let _ = text(function.filename);
    }
    for (id, location) in (1..).zip(&read.location) {
        assert_eq!((location.id, location.mapping_id), (id, 1));
        assert!(!location.line.is_empty());
    }
    let mut stacks = BTreeMap::new();
    for sample in &read.sample {
        let [count, time] = sample.value[..] else {
            panic!("two values")
        };
        assert_eq!(time, count * period);
        let mut stack: Vec<_> = ["type", "method", "label"]
            .iter()
            .filter_map(|key| {
                let label = sample.label.iter().find(|it| text(it.key) == *key)?;
                Some(text(label.str).to_owned())
            })
            .collect();
        assert_eq!(stack.len(), sample.label.len());
        for &id in sample.location_id.iter().rev() {
            let location = &read.location[usize::try_from(id).unwrap() - 1];
            for line in location.line.iter().rev() {
                let function = &read.function[usize::try_from(line.function_id).unwrap() - 1];
                stack.push(text(function.name).to_owned());
            }
        }
        let stack = stack.join("\n").replace(';', ",").replace('\n', ";");
        *stacks.entry(stack).or_default() += u64::try_from(count).unwrap();
    }
    stacks
}
