//! The commands, the numbers of their arguments, and the places where they are carried out.

use super::protocol::Answer;
use super::store::{self, Operation, hashes, whole};

/// Where a command is carried out.
#[derive(Clone, Copy)]
pub(crate) enum Route {
    /// By the connection.
    Here(Own),
    /// By the shard of the first argument.
    Key(Operation),
    /// As `Key`, but a short request may have a long answer, or make a long text.
    Long(Operation),
    /// By the shards of all keys: every `usize`-th argument is a key.
    Keys(usize, Operation, Merge),
    /// By all shards.
    All(Operation, Merge),
}

/// Commands of the connection.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Own {
    Client,
    Command,
    Config,
    Discard,
    Echo,
    Exec,
    Hello,
    Info,
    Multi,
    Ping,
    Publish,
    Quit,
    Scan,
    Select,
    Subscribe,
    Unsubscribe,
    Unwatch,
    Watch,
}

/// The commands on keys that change nothing.
const READS: &[&str] = &[
    "DBSIZE", "EXISTS", "GET", "HEXISTS", "HGET", "HGETALL", "HKEYS", "HLEN", "HMGET", "HVALS",
    "KEYS", "LINDEX", "LLEN", "LRANGE", "MGET", "PTTL", "STRLEN", "TTL", "TYPE",
];

/// Returns whether the command may change the values of its keys.
pub(crate) fn writes(name: &[u8]) -> bool {
    !READS
        .iter()
        .any(|it| name.eq_ignore_ascii_case(it.as_bytes()))
}

/// The merge of the answers to the parts of a command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Merge {
    Add,
    Append,
    Each,
    Ok,
}

impl Merge {
    /// Merges several answers: the first error, if any is an error.
    pub(crate) fn merge(self, answers: Vec<Answer>) -> Answer {
        if let Some(error) = answers.iter().find(|it| matches!(it, Answer::Error(_))) {
            return error.clone();
        }
        match self {
            Self::Each => Answer::List(answers),
            Self::Ok => Answer::OK,
            Self::Add => Answer::Number(answers.iter().map(count).sum()),
            Self::Append => Answer::List(answers.into_iter().flat_map(list).collect()),
        }
    }
}

fn count(answer: &Answer) -> i64 {
    match answer {
        Answer::Number(number) => *number,
        _ => 0,
    }
}

fn list(answer: Answer) -> Vec<Answer> {
    match answer {
        Answer::List(list) => list,
        other => vec![other],
    }
}

/// A command: its name, the fewest and the most arguments, and where it is carried out.
type Row = (&'static str, usize, usize, Route);

const ANY: usize = usize::MAX;

/// In the order of their names.
const COMMANDS: &[Row] = &[
    ("APPEND", 2, 2, Route::Long(store::append)),
    ("CLIENT", 1, ANY, Route::Here(Own::Client)),
    ("COMMAND", 0, ANY, Route::Here(Own::Command)),
    ("CONFIG", 2, ANY, Route::Here(Own::Config)),
    ("DBSIZE", 0, 0, Route::All(whole::dbsize, Merge::Add)),
    ("DECR", 1, 1, Route::Key(store::decr)),
    ("DECRBY", 2, 2, Route::Key(store::decrby)),
    ("DEL", 1, ANY, Route::Keys(1, store::del, Merge::Add)),
    ("DISCARD", 0, 0, Route::Here(Own::Discard)),
    ("ECHO", 1, 1, Route::Here(Own::Echo)),
    ("EXEC", 0, 0, Route::Here(Own::Exec)),
    ("EXISTS", 1, ANY, Route::Keys(1, store::exists, Merge::Add)),
    ("EXPIRE", 2, 2, Route::Key(store::expire)),
    ("FLUSHALL", 0, 1, Route::All(whole::flush, Merge::Ok)),
    ("FLUSHDB", 0, 1, Route::All(whole::flush, Merge::Ok)),
    ("GET", 1, 1, Route::Key(store::get)),
    ("GETDEL", 1, 1, Route::Key(store::getdel)),
    ("HDEL", 2, ANY, Route::Key(hashes::hdel)),
    ("HELLO", 0, ANY, Route::Here(Own::Hello)),
    ("HEXISTS", 2, 2, Route::Key(hashes::hexists)),
    ("HGET", 2, 2, Route::Key(hashes::hget)),
    ("HGETALL", 1, 1, Route::Long(hashes::hgetall)),
    ("HINCRBY", 3, 3, Route::Key(hashes::hincrby)),
    ("HKEYS", 1, 1, Route::Long(hashes::hkeys)),
    ("HLEN", 1, 1, Route::Key(hashes::hlen)),
    ("HMGET", 2, ANY, Route::Key(hashes::hmget)),
    ("HSET", 3, ANY, Route::Key(hashes::hset)),
    ("HVALS", 1, 1, Route::Long(hashes::hvals)),
    ("INCR", 1, 1, Route::Key(store::incr)),
    ("INCRBY", 2, 2, Route::Key(store::incrby)),
    ("INFO", 0, ANY, Route::Here(Own::Info)),
    ("KEYS", 1, 1, Route::All(whole::keys, Merge::Append)),
    ("LINDEX", 2, 2, Route::Key(store::lindex)),
    ("LLEN", 1, 1, Route::Key(store::llen)),
    ("LPOP", 1, 2, Route::Key(store::lpop)),
    ("LPUSH", 2, ANY, Route::Key(store::lpush)),
    ("LRANGE", 3, 3, Route::Long(store::lrange)),
    ("MGET", 1, ANY, Route::Keys(1, store::mget, Merge::Each)),
    ("MSET", 2, ANY, Route::Keys(2, store::set, Merge::Ok)),
    ("MULTI", 0, 0, Route::Here(Own::Multi)),
    ("PERSIST", 1, 1, Route::Key(store::persist)),
    ("PEXPIRE", 2, 2, Route::Key(store::pexpire)),
    ("PING", 0, 1, Route::Here(Own::Ping)),
    ("PTTL", 1, 1, Route::Key(store::pttl)),
    ("PUBLISH", 2, 2, Route::Here(Own::Publish)),
    ("QUIT", 0, ANY, Route::Here(Own::Quit)),
    ("RPOP", 1, 2, Route::Key(store::rpop)),
    ("RPUSH", 2, ANY, Route::Key(store::rpush)),
    ("SCAN", 1, 7, Route::Here(Own::Scan)),
    ("SELECT", 1, 1, Route::Here(Own::Select)),
    ("SET", 2, ANY, Route::Key(store::set)),
    ("SETEX", 3, 3, Route::Key(store::setex)),
    ("SETNX", 2, 2, Route::Key(store::setnx)),
    ("STRLEN", 1, 1, Route::Key(store::strlen)),
    ("SUBSCRIBE", 1, ANY, Route::Here(Own::Subscribe)),
    ("TTL", 1, 1, Route::Key(store::ttl)),
    ("TYPE", 1, 1, Route::Key(store::kind)),
    ("UNLINK", 1, ANY, Route::Keys(1, store::del, Merge::Add)),
    ("UNSUBSCRIBE", 0, ANY, Route::Here(Own::Unsubscribe)),
    ("UNWATCH", 0, 0, Route::Here(Own::Unwatch)),
    ("WATCH", 1, ANY, Route::Here(Own::Watch)),
];

/// Finds the command with this name, for this number of arguments.
///
/// # Errors
/// The text for the client.
pub(crate) fn find(name: &[u8], arguments: usize) -> Result<Route, String> {
    let shown = || name[..name.len().min(64)].escape_ascii().to_string();
    let mut upper = [0_u8; 16];
    let row = upper.get_mut(..name.len()).and_then(|upper| {
        upper.copy_from_slice(name);
        upper.make_ascii_uppercase();
        let place = COMMANDS.binary_search_by_key(&&*upper, |it| it.0.as_bytes());
        place.ok().map(|it| &COMMANDS[it])
    });
    let Some((_, fewest, most, route)) = row else {
        return Err(format!("ERR unknown command '{}'", shown()));
    };
    let is_even = match route {
        Route::Keys(width, ..) => arguments.is_multiple_of(*width),
        _ => true,
    };
    if !(*fewest..=*most).contains(&arguments) || !is_even {
        let shown = shown().to_ascii_lowercase();
        return Err(format!(
            "ERR wrong number of arguments for '{shown}' command"
        ));
    }
    Ok(*route)
}
