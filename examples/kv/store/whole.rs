//! Commands for all keys of a shard.

use super::super::protocol::{Answer, number};
use super::{Answered, Refused, Store, integer};
use bytes::Bytes;
use std::mem;
use std::ops::Bound;

pub(crate) fn dbsize(store: &mut Store, _: &[Bytes]) -> Answered {
    Ok(Answer::count(store.entries.len()))
}

pub(crate) fn flush(store: &mut Store, _: &[Bytes]) -> Answered {
    store.numbered.clear();
    let entries = mem::take(&mut store.entries).into_iter();
    let ended = entries.filter(|it| it.1.until.is_some());
    store.changed.extend(ended.map(|it| it.0));
    Ok(Answer::OK)
}

/// A pattern of `KEYS` has no more bytes: each byte of a key may be compared with each of them.
const LONGEST_PATTERN: usize = 256;

/// Carries out `KEYS pattern`: `*` stands for any bytes, and `?` for a single byte.
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

/// Answers the version of the value of a key, for `WATCH`.
pub(crate) fn version(store: &mut Store, args: &[Bytes]) -> Answered {
    let version = store.version(&args[0]);
    Ok(Answer::Number(i64::try_from(version).unwrap_or(0)))
}

/// The most keys that a `SCAN` looks at.
const MOST_SCANNED: usize = 1_000;

/// Carries out `SCAN number [MATCH pattern] [COUNT count] [TYPE kind]`, for a single shard: finds
/// the keys with the next higher numbers. Answers the number to go on from, or 0 at the end, and
/// the keys. A key that exists all the while is found once.
pub(crate) fn scan(store: &mut Store, args: &[Bytes]) -> Answered {
    let after = number(&args[0]).and_then(|it| u64::try_from(it).ok());
    let after = after.ok_or(Refused::NoNumber)?;
    let (mut pattern, mut count, mut wanted) = (None, 10, None);
    for option in args[1..].chunks(2) {
        let [name, value] = option else {
            return Err(Refused::Syntax);
        };
        match name.to_ascii_uppercase().as_slice() {
            b"MATCH" if value.len() > LONGEST_PATTERN => return Err(Refused::TooLong),
            b"MATCH" => pattern = Some(value),
            b"TYPE" => wanted = Some(value.to_ascii_lowercase()),
            b"COUNT" => {
                let asked = usize::try_from(integer(value)?).map_err(|_| Refused::Syntax)?;
                count = asked.clamp(1, MOST_SCANNED);
            }
            _ => return Err(Refused::Syntax),
        }
    }
    let mut left = store
        .numbered
        .range((Bound::Excluded(after), Bound::Unbounded));
    let (mut last, mut found) = (0, Vec::new());
    for (number, key) in left.by_ref().take(count) {
        last = *number;
        let Some(entry) = store.entries.get(key) else {
            continue;
        };
        let is_wanted = entry.until.is_none_or(|it| it > store.now)
            && pattern.is_none_or(|it| matches(it, key))
            && wanted
                .as_ref()
                .is_none_or(|it| entry.value.kind() == str::from_utf8(it).unwrap_or(""));
        if is_wanted {
            found.push(Answer::Text(key.clone()));
        }
    }
    let next = left.next().map_or(0, |_| last);
    let next = Answer::Number(i64::try_from(next).unwrap_or(0));
    Ok(Answer::List(vec![next, Answer::List(found)]))
}

/// Answers the numbers for `INFO`.
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
