//! Commands on hashes.

use super::super::protocol::Answer;
use super::{Answered, Refused, Store, Value, integer, owned};
use bytes::Bytes;
use std::collections::HashMap;

pub(crate) fn hset(store: &mut Store, args: &[Bytes]) -> Answered {
    if args.len().is_multiple_of(2) {
        return Err(Refused::Arguments);
    }
    let Value::Hash(hash) = store.value_or(&args[0], || Value::Hash(HashMap::new())) else {
        return Err(Refused::WrongType);
    };
    let before = hash.len();
    for pair in args[1..].chunks_exact(2) {
        match hash.get_mut(&pair[0]) {
            Some(value) => *value = owned(&pair[1]),
            None => drop(hash.insert(owned(&pair[0]), owned(&pair[1]))),
        }
    }
    Ok(Answer::count(hash.len() - before))
}

pub(crate) fn hget(store: &mut Store, args: &[Bytes]) -> Answered {
    let hash = store.hash(&args[0])?;
    Ok(Answer::optional(
        hash.and_then(|it| it.get(&args[1]).cloned()),
    ))
}

pub(crate) fn hmget(store: &mut Store, args: &[Bytes]) -> Answered {
    let hash = store.hash(&args[0])?;
    let values = args[1..]
        .iter()
        .map(|field| hash.as_ref().and_then(|it| it.get(field).cloned()));
    Ok(Answer::List(values.map(Answer::optional).collect()))
}

pub(crate) fn hdel(store: &mut Store, args: &[Bytes]) -> Answered {
    let Some(hash) = store.hash(&args[0])? else {
        return Ok(Answer::Number(0));
    };
    let removed = args[1..]
        .iter()
        .filter(|field| hash.remove(*field).is_some());
    let removed = removed.count();
    if hash.is_empty() {
        store.remove(&args[0]);
    }
    Ok(Answer::count(removed))
}

pub(crate) fn hexists(store: &mut Store, args: &[Bytes]) -> Answered {
    let hash = store.hash(&args[0])?;
    Ok(Answer::Number(
        hash.is_some_and(|it| it.contains_key(&args[1])).into(),
    ))
}

pub(crate) fn hlen(store: &mut Store, args: &[Bytes]) -> Answered {
    Ok(Answer::count(
        store.hash(&args[0])?.map_or(0, |it| it.len()),
    ))
}

fn pairs(
    store: &mut Store,
    args: &[Bytes],
    of: fn((&Bytes, &Bytes)) -> [Option<Bytes>; 2],
) -> Answered {
    let hash = store.hash(&args[0])?;
    let texts = hash.iter().flat_map(|it| it.iter()).flat_map(of).flatten();
    Ok(Answer::List(texts.map(Answer::Text).collect()))
}

pub(crate) fn hgetall(store: &mut Store, args: &[Bytes]) -> Answered {
    let pairs = pairs(store, args, |(field, value)| {
        [Some(field.clone()), Some(value.clone())]
    });
    pairs.map(Answer::into_map)
}

pub(crate) fn hkeys(store: &mut Store, args: &[Bytes]) -> Answered {
    pairs(store, args, |(field, _)| [Some(field.clone()), None])
}

pub(crate) fn hvals(store: &mut Store, args: &[Bytes]) -> Answered {
    pairs(store, args, |(_, value)| [Some(value.clone()), None])
}

pub(crate) fn hincrby(store: &mut Store, args: &[Bytes]) -> Answered {
    let by = integer(&args[2])?;
    let hash = store.hash(&args[0])?;
    let before = hash
        .and_then(|it| it.get(&args[1]))
        .map_or(Ok(0), |it| integer(it))?;
    let sum = before.checked_add(by).ok_or(Refused::Overflow)?;
    let written = Bytes::from(sum.to_string());
    hset(store, &[args[0].clone(), args[1].clone(), written])?;
    Ok(Answer::Number(sum))
}
