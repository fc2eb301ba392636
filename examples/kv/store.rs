//! The data of a shard, and the commands on them. The store knows no clock and no process: a
//! command is a function of the stored data, and of the moment at which it is carried out.

pub(crate) mod hashes;
pub(crate) mod whole;

use super::protocol::{Answer, number};
use bytes::{Bytes, BytesMut};
use ganger::time::Instant;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::mem;
use std::ops::Range;
use std::time::Duration;

/// The longest text that commands may make of several texts.
const LONGEST: usize = 8 * 1024 * 1024;

/// The answer of a command: an error is a mistake of the client.
pub(crate) type Answered = Result<Answer, Refused>;

/// A command on a key, its first argument.
pub(crate) type Operation = fn(&mut Store, &[Bytes]) -> Answered;

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("WRONGTYPE Operation against a key holding the wrong kind of value")]
    WrongType,
    #[error("ERR value is not an integer or out of range")]
    NoNumber,
    #[error("ERR increment or decrement would overflow")]
    Overflow,
    #[error("ERR string exceeds maximum allowed size")]
    TooLong,
    #[error("ERR syntax error")]
    Syntax,
    #[error("ERR wrong number of arguments")]
    Arguments,
    #[error("ERR invalid expire time")]
    ExpireTime,
}

#[derive(Debug)]
enum Value {
    Text(Bytes),
    List(VecDeque<Bytes>),
    Hash(HashMap<Bytes, Bytes>),
}

impl Value {
    fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "string",
            Self::List(_) => "list",
            Self::Hash(_) => "hash",
        }
    }
}

#[derive(Debug)]
struct Entry {
    value: Value,
    /// The end of the key.
    until: Option<Instant>,
    /// The key's number since it was put here: later keys have higher numbers.
    number: u64,
    /// The version of the last command that may have changed the value.
    version: u64,
}

/// Keys with their values.
#[derive(Debug)]
pub(crate) struct Store {
    entries: HashMap<Bytes, Entry>,
    /// The keys by their numbers, for `SCAN`.
    numbered: BTreeMap<u64, Bytes>,
    /// The last number, and the last version.
    last: u64,
    now: Instant,
    /// Keys whose end has changed, for the timers.
    changed: Vec<Bytes>,
}

impl Store {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            entries: HashMap::new(),
            numbered: BTreeMap::new(),
            last: 0,
            now,
            changed: Vec::new(),
        }
    }

    /// Sets the moment of the commands from now on, unless an earlier call has set a later moment.
    pub(crate) fn at(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }

    /// Returns whether the ends of keys have changed since the last call of
    /// [`changes`](Self::changes).
    pub(crate) fn has_changes(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Takes the keys whose ends have changed since the last call, each with the time until its
    /// end, if the key ends.
    pub(crate) fn changes(&mut self) -> Vec<(Bytes, Option<Duration>)> {
        let changed = mem::take(&mut self.changed).into_iter();
        let changes = changed.map(|key| {
            let until = self.entries.get(&key).and_then(|it| it.until);
            let lasts = until.map(|it| it.since(self.now));
            (key, lasts)
        });
        changes.collect()
    }

    /// Returns the numbers of all keys, and of keys with an end.
    pub(crate) fn counts(&self) -> [usize; 2] {
        let ends = self.entries.values().filter(|it| it.until.is_some());
        [self.entries.len(), ends.count()]
    }

    /// Removes the key if its time is over.
    pub(crate) fn expire(&mut self, key: &Bytes) {
        let until = self.entries.get(key).and_then(|it| it.until);
        if until.is_some_and(|it| it <= self.now) {
            let _expired = self.take(key);
        }
    }

    fn take(&mut self, key: &Bytes) -> Option<(Bytes, Entry)> {
        let taken = self.entries.remove_entry(key)?;
        self.numbered.remove(&taken.1.number);
        Some(taken)
    }

    fn next_number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Notes that a command may have changed the value of the key.
    pub(crate) fn touch(&mut self, key: &Bytes) {
        let version = self.next_number();
        if let Some(entry) = self.entries.get_mut(key) {
            entry.version = version;
        }
    }

    /// Returns the version of the value of the key; 0 without a value.
    pub(crate) fn version(&mut self, key: &Bytes) -> u64 {
        self.expire(key);
        self.entries.get(key).map_or(0, |it| it.version)
    }

    fn value(&mut self, key: &Bytes) -> Option<&mut Value> {
        self.expire(key);
        self.entries.get_mut(key).map(|it| &mut it.value)
    }

    /// Stores a value, and replaces the end of the key.
    fn put(&mut self, key: &Bytes, value: Value, until: Option<Instant>) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.value = value;
            if mem::replace(&mut entry.until, until) != until {
                self.changed.push(owned(key));
            }
            return;
        }
        let key = owned(key);
        if until.is_some() {
            self.changed.push(key.clone());
        }
        let number = self.next_number();
        self.numbered.insert(number, key.clone());
        let entry = Entry {
            value,
            until,
            number,
            version: number,
        };
        self.entries.insert(key, entry);
    }

    fn remove(&mut self, key: &Bytes) -> bool {
        self.expire(key);
        let Some((key, entry)) = self.take(key) else {
            return false;
        };
        if entry.until.is_some() {
            self.changed.push(key);
        }
        true
    }

    fn text(&mut self, key: &Bytes) -> Result<Option<&mut Bytes>, Refused> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(_) => Err(Refused::WrongType),
        }
    }

    fn list(&mut self, key: &Bytes) -> Result<Option<&mut VecDeque<Bytes>>, Refused> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::List(list)) => Ok(Some(list)),
            Some(_) => Err(Refused::WrongType),
        }
    }

    fn hash(&mut self, key: &Bytes) -> Result<Option<&mut HashMap<Bytes, Bytes>>, Refused> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::Hash(hash)) => Ok(Some(hash)),
            Some(_) => Err(Refused::WrongType),
        }
    }

    /// Gives the value of the key, and makes a value if the key has none.
    fn value_or(&mut self, key: &Bytes, make: fn() -> Value) -> &mut Value {
        self.expire(key);
        if !self.entries.contains_key(key) {
            self.put(key, make(), None);
        }
        let entry = self.entries.get_mut(key);
        &mut entry
            .expect("it is there, or has just been put there")
            .value
    }
}

/// Copies the bytes: a stored text must not keep the whole input in memory.
fn owned(bytes: &Bytes) -> Bytes {
    Bytes::copy_from_slice(bytes)
}

fn integer(text: &[u8]) -> Result<i64, Refused> {
    number(text).ok_or(Refused::NoNumber)
}

// The commands follow. Each is called with at least as many arguments as it needs.

pub(crate) fn get(store: &mut Store, args: &[Bytes]) -> Answered {
    Ok(Answer::optional(store.text(&args[0])?.cloned()))
}

/// Carries out `MGET` for a key as `GET` does, but a value of another kind counts as none.
pub(crate) fn mget(store: &mut Store, args: &[Bytes]) -> Answered {
    Ok(store
        .text(&args[0])
        .map_or(Answer::Nothing, |it| Answer::optional(it.cloned())))
}

pub(crate) fn getdel(store: &mut Store, args: &[Bytes]) -> Answered {
    let text = store.text(&args[0])?.cloned();
    store.remove(&args[0]);
    Ok(Answer::optional(text))
}

/// Carries out `SET key value [NX | XX] [GET] [EX seconds | PX milliseconds | KEEPTTL]`.
pub(crate) fn set(store: &mut Store, args: &[Bytes]) -> Answered {
    let (key, value) = (&args[0], &args[1]);
    let (mut wants, mut until, mut keeps, mut answers_old) = (None, None, false, false);
    let mut options = args[2..].iter();
    while let Some(option) = options.next() {
        match option.to_ascii_uppercase().as_slice() {
            b"NX" if wants.is_none() => wants = Some(false),
            b"XX" if wants.is_none() => wants = Some(true),
            b"GET" => answers_old = true,
            b"KEEPTTL" if until.is_none() => keeps = true,
            unit @ (b"EX" | b"PX") if until.is_none() && !keeps => {
                let time = integer(options.next().ok_or(Refused::Syntax)?)?;
                let time = lasts(time, if unit == b"EX" { 1_000 } else { 1 })?;
                until = Some(store.now.after(time.ok_or(Refused::ExpireTime)?));
            }
            _ => return Err(Refused::Syntax),
        }
    }
    let old = if answers_old {
        store.text(key)?.cloned()
    } else {
        None
    };
    store.expire(key);
    let is_there = store.entries.contains_key(key);
    if wants.is_some_and(|wanted| wanted != is_there) {
        return Ok(Answer::optional(old));
    }
    if keeps {
        until = store.entries.get(key).and_then(|it| it.until);
    }
    store.put(key, Value::Text(owned(value)), until);
    Ok(if answers_old {
        Answer::optional(old)
    } else {
        Answer::OK
    })
}

pub(crate) fn setnx(store: &mut Store, args: &[Bytes]) -> Answered {
    store.expire(&args[0]);
    if store.entries.contains_key(&args[0]) {
        return Ok(Answer::Number(0));
    }
    store.put(&args[0], Value::Text(owned(&args[1])), None);
    Ok(Answer::Number(1))
}

pub(crate) fn setex(store: &mut Store, args: &[Bytes]) -> Answered {
    let time = lasts(integer(&args[1])?, 1_000)?.ok_or(Refused::ExpireTime)?;
    let until = Some(store.now.after(time));
    store.put(&args[0], Value::Text(owned(&args[2])), until);
    Ok(Answer::OK)
}

pub(crate) fn append(store: &mut Store, args: &[Bytes]) -> Answered {
    let more = &args[1];
    let Some(text) = store.text(&args[0])? else {
        store.put(&args[0], Value::Text(owned(more)), None);
        return Ok(Answer::count(more.len()));
    };
    if text.len() + more.len() > LONGEST {
        return Err(Refused::TooLong);
    }
    // Copies nothing but `more`, if no answer under way shares the text.
    let mut longer = BytesMut::from(mem::take(text));
    longer.extend_from_slice(more);
    *text = longer.freeze();
    Ok(Answer::count(text.len()))
}

pub(crate) fn strlen(store: &mut Store, args: &[Bytes]) -> Answered {
    Ok(Answer::count(
        store.text(&args[0])?.map_or(0, |it| it.len()),
    ))
}

fn add(store: &mut Store, key: &Bytes, by: i64) -> Answered {
    let text = store.text(key)?;
    let before = text.as_ref().map_or(Ok(0), |it| integer(it))?;
    let sum = before.checked_add(by).ok_or(Refused::Overflow)?;
    let written = Bytes::from(sum.to_string());
    match text {
        Some(text) => *text = written,
        None => store.put(key, Value::Text(written), None),
    }
    Ok(Answer::Number(sum))
}

pub(crate) fn incr(store: &mut Store, args: &[Bytes]) -> Answered {
    add(store, &args[0], 1)
}

pub(crate) fn decr(store: &mut Store, args: &[Bytes]) -> Answered {
    add(store, &args[0], -1)
}

pub(crate) fn incrby(store: &mut Store, args: &[Bytes]) -> Answered {
    add(store, &args[0], integer(&args[1])?)
}

pub(crate) fn decrby(store: &mut Store, args: &[Bytes]) -> Answered {
    let by = integer(&args[1])?.checked_neg().ok_or(Refused::Overflow)?;
    add(store, &args[0], by)
}

pub(crate) fn del(store: &mut Store, args: &[Bytes]) -> Answered {
    Ok(Answer::Number(store.remove(&args[0]).into()))
}

pub(crate) fn exists(store: &mut Store, args: &[Bytes]) -> Answered {
    Ok(Answer::Number(store.value(&args[0]).is_some().into()))
}

pub(crate) fn kind(store: &mut Store, args: &[Bytes]) -> Answered {
    Ok(Answer::Status(
        store.value(&args[0]).map_or("none", |it| it.kind()),
    ))
}

/// Returns the length of a time; `None` for a time that is over already.
fn lasts(time: i64, millis: u64) -> Result<Option<Duration>, Refused> {
    let Ok(time) = u64::try_from(time) else {
        return Ok(None);
    };
    let time = time.checked_mul(millis).ok_or(Refused::ExpireTime)?;
    // The time stays far from the end of all time, also after an addition to a moment.
    if time > u64::MAX / 4_000_000 {
        return Err(Refused::ExpireTime);
    }
    Ok((time > 0).then(|| Duration::from_millis(time)))
}

fn expire_in(store: &mut Store, args: &[Bytes], millis: u64) -> Answered {
    let time = lasts(integer(&args[1])?, millis)?;
    store.expire(&args[0]);
    let Some(time) = time else {
        return Ok(Answer::Number(store.remove(&args[0]).into()));
    };
    let until = store.now.after(time);
    let Some(entry) = store.entries.get_mut(&args[0]) else {
        return Ok(Answer::Number(0));
    };
    entry.until = Some(until);
    store.changed.push(owned(&args[0]));
    Ok(Answer::Number(1))
}

pub(crate) fn expire(store: &mut Store, args: &[Bytes]) -> Answered {
    expire_in(store, args, 1_000)
}

pub(crate) fn pexpire(store: &mut Store, args: &[Bytes]) -> Answered {
    expire_in(store, args, 1)
}

pub(crate) fn persist(store: &mut Store, args: &[Bytes]) -> Answered {
    store.expire(&args[0]);
    let entry = store.entries.get_mut(&args[0]);
    let had = entry.and_then(|it| it.until.take()).is_some();
    if had {
        store.changed.push(owned(&args[0]));
    }
    Ok(Answer::Number(had.into()))
}

fn left(store: &mut Store, key: &Bytes) -> Result<Duration, i64> {
    store.expire(key);
    let entry = store.entries.get(key).ok_or(-2)?;
    let until = entry.until.ok_or(-1)?;
    Ok(until.since(store.now))
}

pub(crate) fn ttl(store: &mut Store, args: &[Bytes]) -> Answered {
    let left = left(store, &args[0]).map(|it| (it.as_millis() + 500) / 1_000);
    Ok(left.map_or_else(Answer::Number, |it| Answer::count(it as usize)))
}

pub(crate) fn pttl(store: &mut Store, args: &[Bytes]) -> Answered {
    let left = left(store, &args[0]).map(|it| it.as_millis());
    Ok(left.map_or_else(Answer::Number, |it| Answer::count(it as usize)))
}

fn push(store: &mut Store, args: &[Bytes], push: fn(&mut VecDeque<Bytes>, Bytes)) -> Answered {
    let Value::List(list) = store.value_or(&args[0], || Value::List(VecDeque::new())) else {
        return Err(Refused::WrongType);
    };
    args[1..].iter().for_each(|it| push(list, owned(it)));
    Ok(Answer::count(list.len()))
}

pub(crate) fn lpush(store: &mut Store, args: &[Bytes]) -> Answered {
    push(store, args, VecDeque::push_front)
}

pub(crate) fn rpush(store: &mut Store, args: &[Bytes]) -> Answered {
    push(store, args, VecDeque::push_back)
}

fn pop(
    store: &mut Store,
    args: &[Bytes],
    pop: fn(&mut VecDeque<Bytes>) -> Option<Bytes>,
) -> Answered {
    let many = match args.get(1) {
        Some(count) => {
            Some(usize::try_from(integer(count)?).map_err(|_negative| Refused::NoNumber)?)
        }
        None => None,
    };
    let Some(list) = store.list(&args[0])? else {
        return Ok(Answer::Nothing);
    };
    let taken = match many {
        None => Answer::optional(pop(list)),
        Some(count) => {
            let count = count.min(list.len());
            let taken = (0..count).filter_map(|_| pop(list));
            Answer::List(taken.map(Answer::Text).collect())
        }
    };
    if list.is_empty() {
        store.remove(&args[0]);
    }
    Ok(taken)
}

pub(crate) fn lpop(store: &mut Store, args: &[Bytes]) -> Answered {
    pop(store, args, VecDeque::pop_front)
}

pub(crate) fn rpop(store: &mut Store, args: &[Bytes]) -> Answered {
    pop(store, args, VecDeque::pop_back)
}

pub(crate) fn llen(store: &mut Store, args: &[Bytes]) -> Answered {
    Ok(Answer::count(
        store.list(&args[0])?.map_or(0, |it| it.len()),
    ))
}

/// Returns the places from `first` to `last`, both within; below zero they count from the end.
fn range(first: i64, last: i64, length: usize) -> Range<usize> {
    let place = |it: i64| match usize::try_from(it) {
        Ok(place) => Some(place),
        Err(_) => length.checked_sub(usize::try_from(it.unsigned_abs()).unwrap_or(usize::MAX)),
    };
    let first = place(first).unwrap_or(0).min(length);
    let end = place(last).map_or(0, |it| it.saturating_add(1).min(length));
    first..end.max(first)
}

pub(crate) fn lrange(store: &mut Store, args: &[Bytes]) -> Answered {
    let (first, last) = (integer(&args[1])?, integer(&args[2])?);
    let Some(list) = store.list(&args[0])? else {
        return Ok(Answer::List(Vec::new()));
    };
    let places = list.range(range(first, last, list.len()));
    Ok(Answer::List(places.cloned().map(Answer::Text).collect()))
}

pub(crate) fn lindex(store: &mut Store, args: &[Bytes]) -> Answered {
    let place = integer(&args[1])?;
    let Some(list) = store.list(&args[0])? else {
        return Ok(Answer::Nothing);
    };
    let is_there = place >= -(list.len() as i64);
    let mut places = list.range(range(place, place, list.len()));
    Ok(Answer::optional(
        places.next().filter(|_| is_there).cloned(),
    ))
}
