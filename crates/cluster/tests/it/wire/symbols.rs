//! Symbols, sent once.

use crate::support::Pair;
use bytes::Bytes;
use ganger_cluster::{
    Event, Known, Lane, MAX_SYMBOLS, Message, ReadError, Reader, Settings, SymbolKind,
};

/// Sends texts, a message each, and returns the messages.
fn sent(kind: SymbolKind, texts: impl IntoIterator<Item = String>) -> Vec<Message> {
    let mut pair = Pair::up(&Settings::default());
    for text in texts {
        let now = pair.now();
        let sent = pair.a.send(Lane::Data, 1, now, |it| it.symbol(kind, &text));
        sent.unwrap();
    }
    pair.run(5);
    let messages = pair.at_b.into_iter().filter_map(|event| match event {
        Event::Received { messages, .. } => Some(messages),
        _ => None,
    });
    messages.flatten().collect()
}

// pins: B10
#[test]
fn a_text_is_sent_once_and_then_is_a_number() {
    let texts = ["news", "weather", "news", "weather", "news"].map(str::to_owned);
    let messages = sent(SymbolKind::Topic, texts.clone());
    let lengths = messages.iter().map(|it| it.body.len());
    assert!(lengths.eq([7, 10, 1, 1, 1]));
    let mut known = Known::default();
    let read = |it: &Message| {
        let text = Reader::new(it.body.clone()).symbol(&mut known, SymbolKind::Topic);
        text.unwrap().to_string()
    };
    assert!(messages.iter().map(read).eq(texts));
}

// pins: B10
#[test]
fn a_full_table_and_a_long_text_cost_no_memory() {
    let mut texts: Vec<_> = (0..MAX_SYMBOLS + 10).map(|it| it.to_string()).collect();
    texts.push("0".to_owned());
    texts.insert(0, "long".repeat(100));
    let messages = sent(SymbolKind::Type, texts.clone());
    let mut known = Known::default();
    let read = |it: &Message| {
        let text = Reader::new(it.body.clone()).symbol(&mut known, SymbolKind::Type);
        text.unwrap().to_string()
    };
    assert!(messages.iter().map(read).eq(texts));
    let last = messages.len() - 1;
    assert_eq!(messages[last].body.len(), 1, "the first has a number");
    assert_eq!(messages[last - 1].body[0], 0, "the last ones have none");
    assert_eq!(messages[0].body[0], 0, "a long text has none");
}

// pins: B10
// case: 35
#[test]
fn definitions_out_of_turn_and_unknown_numbers_are_refused() {
    let read = |known: &mut Known, bytes: &'static [u8]| {
        let mut reader = Reader::new(Bytes::from_static(bytes));
        reader
            .symbol(known, SymbolKind::Host)
            .map(|it| it.to_string())
    };
    let mut known = Known::default();
    assert_eq!(read(&mut known, &[2]), Err(ReadError::Symbol));
    assert_eq!(read(&mut known, &[1, 1, 1, b'a']), Err(ReadError::Symbol));
    assert_eq!(read(&mut known, &[1, 0, 1, b'a']), Ok("a".into()));
    assert_eq!(read(&mut known, &[1, 0, 1, b'b']), Err(ReadError::Symbol));
    assert_eq!(read(&mut known, &[2]), Ok("a".into()));
    assert_eq!(read(&mut known, &[3]), Err(ReadError::Symbol));
    assert_eq!(read(&mut known, &[0, 2, b'x']), Err(ReadError::Short));
    assert_eq!(read(&mut known, &[0, 1, 0xff]), Err(ReadError::Text));
    // Each kind has numbers of its own.
    let mut reader = Reader::new(Bytes::from_static(&[2]));
    let other = reader.symbol(&mut known, SymbolKind::Topic);
    assert_eq!(other, Err(ReadError::Symbol));
}
