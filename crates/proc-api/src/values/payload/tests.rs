//! A payload gives back the value from which it was made.

use super::*;

#[test]
fn integers_convert_when_they_fit() {
    assert_eq!(Payload::from(7_i32).as_u64(), Some(7));
    assert_eq!(Payload::from(-7_i32).as_u64(), None);
    assert_eq!(Payload::from(u64::MAX).as_i64(), None);
    assert_eq!(Payload::from(7_u8).as_bool(), None);
}

#[test]
fn strings_survive_at_every_length_around_the_inline_limit() {
    for length in 0..MAX_INLINE_BYTES + 3 {
        let text = "x".repeat(length);
        let payload = Payload::from(text.as_str());
        assert_eq!(payload.as_str(), Some(text.as_str()));
        assert_eq!(payload.try_clone().unwrap().into_string().unwrap(), text);
        assert_eq!(
            Payload::from(text.clone()).as_bytes(),
            Some(text.as_bytes())
        );
        let bytes = Payload::from(text.clone().into_bytes());
        assert_eq!(bytes.as_str(), None, "bytes are no text");
        assert_eq!(bytes.into_bytes().unwrap(), text.as_bytes());
        assert_eq!(payload.into_bytes().unwrap(), text.as_bytes());
    }
}

#[test]
fn of_many_destructors_that_panic_one_gets_out() {
    struct Bomb([u8; MAX_INLINE_BYTES + 1]);
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("on purpose");
        }
    }
    impl AsRef<[u8]> for Bomb {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    let bomb = || Bomb([7; MAX_INLINE_BYTES + 1]);
    let opaque = || Payload::any(bomb());
    let bytes = || Payload::from(Bytes::from_owner(bomb()));
    for list in [
        vec![opaque(), opaque(), opaque()],
        vec![bytes(), bytes(), opaque()],
    ] {
        let caught = catch_unwind(AssertUnwindSafe(|| drop(list))).unwrap_err();
        assert_eq!(caught.downcast_ref(), Some(&"on purpose"));
    }
}

#[test]
fn a_refused_conversion_gives_the_payload_back() {
    let payload = Payload::any(7_i32).downcast::<String>().unwrap_err();
    let mut payload = payload.into_bytes().unwrap_err().into_string().unwrap_err();
    assert!(payload.try_clone().is_none());
    assert_eq!(payload.downcast_mut::<i32>(), Some(&mut 7));
    assert_eq!(payload.downcast_mut::<u32>(), None);
    assert_eq!(payload.downcast::<i32>().unwrap(), 7);
}
