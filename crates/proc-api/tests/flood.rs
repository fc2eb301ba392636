//! Strangers send as many topics as they like. A program of its own, because the table is the
//! program's.

use ganger_proc_api::{InternError, MAX_INTERNED, MAX_PARSED, MAX_SYMBOL_BYTES, Symbol};

// pins: R1
#[test]
fn the_program_has_room_for_its_own_topics_beside_all_that_strangers_send() {
    let topic = |n: usize| format!("topic {n}");
    for n in 0..MAX_PARSED {
        topic(n).parse::<Symbol>().unwrap();
    }
    for n in MAX_PARSED..4 * MAX_PARSED {
        let text = topic(n);
        assert_eq!(Symbol::known(&text), None);
        let refused = text.parse::<Symbol>().unwrap_err();
        assert_eq!(refused, InternError::TooManyParsed(text));
    }
    let refused = topic(MAX_PARSED).parse::<Symbol>().unwrap_err().to_string();
    assert!(refused.contains("look others up with `known`"), "{refused}");
    assert_eq!(topic(0).parse::<Symbol>().unwrap(), "topic 0");

    let own = |n: usize| format!("own {n}");
    for n in 0..MAX_INTERNED - MAX_PARSED {
        Symbol::intern(&own(n)).unwrap();
    }
    let refused = Symbol::intern("one more").unwrap_err();
    assert_eq!(refused, InternError::TableFull("one more".to_owned()));
    assert_eq!(Symbol::intern("own 0").unwrap(), "own 0");

    let long = "x".repeat(MAX_SYMBOL_BYTES + 1);
    let refused = Symbol::intern(&long).unwrap_err();
    assert_eq!(refused, InternError::TooLong(long.len()));
    assert_eq!(long.parse::<Symbol>(), Err(refused));
}
