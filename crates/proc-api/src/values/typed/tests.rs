//! A value is taken by its type, or comes back with both names.

use super::*;
use proptest::prelude::*;

#[test]
fn scalars_and_texts_are_taken_by_the_types_that_they_fit() {
    assert_eq!(Payload::from(7_u8).take::<u64>().unwrap(), 7);
    assert_eq!(Payload::from(7_u64).take::<i32>().unwrap(), 7);
    assert_eq!(Payload::from(-7_i64).take::<i64>().unwrap(), -7);
    assert_eq!(Payload::from(7_usize).take::<usize>().unwrap(), 7);
    assert_eq!(Payload::from(1.5).take::<f64>().unwrap(), 1.5);
    assert!(Payload::from(true).take::<bool>().unwrap());
    Payload::UNIT.take::<()>().unwrap();
    Payloads::new().take::<()>().unwrap();
    let pid: Pid = "{main|7}".parse().unwrap();
    assert_eq!(Payload::from(pid).take::<Pid>().unwrap(), pid);
    let too_large = Payload::from(u64::MAX).take::<i64>().unwrap_err();
    assert_eq!((too_large.expected, too_large.got), ("i64", "u64"));
}

proptest! {
    #[test]
    fn texts_and_byte_strings_are_taken_apart(text in ".{0,40}") {
        prop_assert_eq!(Payload::from(text.as_str()).take::<String>().unwrap(), text.clone());
        let bytes = || Payload::from(text.as_bytes());
        prop_assert_eq!(bytes().take::<Bytes>().unwrap(), text.as_bytes());
        let error = bytes().take::<String>().unwrap_err();
        prop_assert_eq!(error.got, "bytes::bytes::Bytes");
        prop_assert_eq!(error.payloads.take::<Bytes>().unwrap(), text.as_bytes());
        let error = Payload::from(text.as_str()).take::<Bytes>().unwrap_err();
        prop_assert_eq!(error.got, "alloc::string::String");
        prop_assert_eq!(error.payloads.take::<String>().unwrap(), text);
    }
}

fn given_back<T: Any + Send + Clone + PartialEq + std::fmt::Debug>(value: T) -> Payload {
    assert_eq!(Payload::of(value.clone()).take::<T>().unwrap(), value);
    Payload::of(value)
}

// pins: P12
#[test]
fn a_value_of_any_type_is_given_back_and_a_plain_one_stays_plain() {
    #[derive(Clone, Debug, PartialEq)]
    struct Own(String, [u64; 40]);

    given_back(Own("own".into(), [7; 40]));
    given_back(Some(7_u64));
    given_back(vec![Own("one".into(), [1; 40])]);
    given_back(());
    assert_eq!(given_back(true).as_bool(), Some(true));
    assert_eq!(given_back(-7_i8).as_i64(), Some(-7));
    assert_eq!(given_back(-7_i16).as_i64(), Some(-7));
    assert_eq!(given_back(-7_i32).as_i64(), Some(-7));
    assert_eq!(given_back(-7_i64).as_i64(), Some(-7));
    assert_eq!(given_back(7_u8).as_u64(), Some(7));
    assert_eq!(given_back(7_u16).as_u64(), Some(7));
    assert_eq!(given_back(7_u32).as_u64(), Some(7));
    assert_eq!(given_back(u64::MAX).as_u64(), Some(u64::MAX));
    assert_eq!(given_back(7_usize).as_u64(), Some(7));
    assert_eq!(given_back(0.1_f32).as_f64(), Some(f64::from(0.1_f32)));
    assert_eq!(given_back(0.1_f64).as_f64(), Some(0.1));
    let pid: Pid = "{main|7}".parse().unwrap();
    assert_eq!(given_back(pid).as_pid(), Some(pid));
    assert_eq!(given_back("text".to_owned()).as_str(), Some("text"));
    assert_eq!(Payload::of("text").take::<String>().unwrap(), "text");
    let long = vec![7_u8; 40];
    assert_eq!(given_back(long.clone()).as_bytes(), Some(&*long));
    assert_eq!(
        given_back(Bytes::from(long.clone())).as_bytes(),
        Some(&*long)
    );
    assert_eq!(Payload::of(Payload::from(7)).as_i64(), Some(7));
}

// pins: A10
#[test]
fn a_message_is_any_message_and_is_taken_as_it_is() {
    let make = || Message::new("topic", [Payload::from(1), Payload::from(2)]);
    let same = Message::of(make()).take::<Message>().unwrap();
    assert_eq!((same.topic.as_str(), same.payloads.len()), ("topic", 2));
    assert_eq!(make().look::<Message>().unwrap().payloads.len(), 2);
    assert!(make().look::<u64>().is_none());
    assert_eq!(Message::of(7_u32).look(), Some(&7_u32));
    assert!(Message::kind_of::<Message>().is_none());
    assert!(Message::kind_of::<u64>().is_some_and(Kind::is::<u64>));
}

#[test]
fn a_list_of_several_values_is_no_value() {
    let list = || Payloads::from([Payload::from(1), Payload::from(2)]);
    let error = list().take::<u64>().unwrap_err();
    assert_eq!(
        (error.got, error.payloads.len()),
        ("a list of several values", 2)
    );
    assert!(!list().fits(Kind::of::<u64>()));
}

/// Checks that `fits` and `take` agree.
#[test]
fn what_fits_is_what_is_taken() {
    fn agrees<T: Any>(make: fn() -> Payloads) -> bool {
        let fits = make().fits(Kind::of::<T>());
        assert_eq!(fits, make().take::<T>().is_ok(), "{}", type_name::<T>());
        fits
    }
    type Make = fn() -> Payloads;
    let values: [(Make, usize); 12] = [
        (Payloads::new, 1),
        (|| ().into(), 1),
        (|| true.into(), 1),
        (|| (-7_i64).into(), 4),
        (|| 7_i64.into(), 9),
        (|| 7_u64.into(), 9),
        (|| u64::MAX.into(), 2),
        (|| 1.5.into(), 2),
        (|| 0.1.into(), 1),
        (|| "text".into(), 1),
        (|| Bytes::from_static(b"bytes").into(), 2),
        (|| Payload::any(7_u64).into(), 1),
    ];
    for (value, expected) in values {
        let fitting = [
            agrees::<()>(value),
            agrees::<bool>(value),
            agrees::<i8>(value),
            agrees::<i16>(value),
            agrees::<u8>(value),
            agrees::<u16>(value),
            agrees::<f32>(value),
            agrees::<i32>(value),
            agrees::<u32>(value),
            agrees::<i64>(value),
            agrees::<u64>(value),
            agrees::<usize>(value),
            agrees::<f64>(value),
            agrees::<Pid>(value),
            agrees::<String>(value),
            agrees::<Bytes>(value),
            agrees::<Vec<u8>>(value),
        ];
        let count = fitting.into_iter().filter(|it| *it).count();
        assert_eq!(count, expected, "{:?}", value());
    }
}

#[test]
fn each_value_has_a_name() {
    let names = [
        Payload::UNIT,
        Payload::from(true),
        Payload::from(-7),
        Payload::from(7_u64),
        Payload::from(1.5),
        Payload::any(vec![7]),
    ]
    .map(|it| it.type_name());
    assert_eq!(
        names,
        ["()", "bool", "i64", "u64", "f64", "alloc::vec::Vec<i32>"]
    );
    assert_eq!(Payloads::new().type_name(), "()");
}

#[test]
fn a_value_is_looked_at_as_its_own_type_alone() {
    let (word, block) = (Payload::any(7_u8), Payload::any([7_u64; 20]));
    assert_eq!(word.downcast_ref(), Some(&7_u8));
    assert_eq!(block.downcast_ref(), Some(&[7_u64; 20]));
    assert_eq!(
        (word.downcast_ref::<i8>(), block.downcast_ref::<u8>()),
        (None, None)
    );
    assert_eq!(Payload::from(7_u64).downcast_ref::<u64>(), None);
}
