//! Commands for all keys of a shard.

use super::super::protocol::Answer;
use super::{Answered, Refused, Store};
use bytes::Bytes;
use std::mem;

pub(crate) fn dbsize(store: &mut Store, _: &[Bytes]) -> Answered {
    Ok(Answer::count(store.entries.len()))
}

pub(crate) fn flush(store: &mut Store, _: &[Bytes]) -> Answered {
    let entries = mem::take(&mut store.entries).into_iter();
    let ended = entries.filter(|it| it.1.until.is_some());
    store.changed.extend(ended.map(|it| it.0));
    Ok(Answer::OK)
}

/// A pattern of `KEYS` has no more bytes: each byte of a key may be compared with each of them.
const LONGEST_PATTERN: usize = 256;

/// `KEYS pattern`, where `*` stands for any bytes, and `?` for one.
pub(crate) fn keys(store: &mut Store, args: &[Bytes]) -> Answered {
    if args[0].len() > LONGEST_PATTERN {
        return Err(Refused::TooLong);
    }
    let now = store.now;
    let keys = store
        .entries
        .iter()
        .filter(|(key, entry)| entry.until.is_none_or(|it| it > now) && matches(&args[0], key));
    Ok(Answer::List(
        keys.map(|it| Answer::Text(it.0.clone())).collect(),
    ))
}

/// Numbers for `INFO`.
pub(crate) fn counts(store: &mut Store, _: &[Bytes]) -> Answered {
    Ok(Answer::List(store.counts().map(Answer::count).into()))
}

fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut place) = (0, 0);
    // Where the last `*` is, and how much it stands for.
    let mut star = None;
    while place < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, place));
                at += 1;
            }
            Some(it) if *it == b'?' || *it == text[place] => {
                at += 1;
                place += 1;
            }
            _ => {
                let Some((before, taken)) = star else {
                    return false;
                };
                star = Some((before, taken + 1));
                (at, place) = (before + 1, taken + 1);
            }
        }
    }
    pattern[at..].iter().all(|it| *it == b'*')
}
