//! The message of a thread's panic.

use std::any::Any;

/// Returns the text of a panic from `join` or `catch_unwind`.
#[must_use]
pub fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied())
        .unwrap_or("of another type")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::panic_any;
    use std::thread;

    #[test]
    fn texts_of_both_kinds_are_found() {
        let said = |body: fn()| message(&*thread::spawn(body).join().unwrap_err()).to_owned();
        assert_eq!(said(|| panic!("as it is")), "as it is");
        assert_eq!(said(|| panic!("made {}", 1)), "made 1");
        assert_eq!(said(|| panic_any(1)), "of another type");
    }
}
