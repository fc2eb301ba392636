//! The text form of PIDs, from its grammar.

use ganger_proc_api::{NameProblem, ParsePidError, Pid, PidProblem};

/// The most bytes of a name.
const NAME: usize = 255;

/// Parses the bytes as a PID, and compares the result with the grammar, character by character.
///
/// Returns whether they are a PID. Names are never freed, so after very many PIDs there may be no
/// room for other names.
///
/// # Panics
/// If the parser accepts or rejects a text against the rules, or reports an error at a place
/// outside of the text, or if a PID's own text differs.
pub fn check_pid_text(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return false;
    };
    let is_pid = accepts(text);
    match text.parse::<Pid>() {
        Ok(pid) => {
            assert!(is_pid, "{text:?} is no PID, and is parsed as {pid}");
            assert_eq!(pid.to_string(), text, "the text form is another");
            assert_eq!(Pid::parse_known(text), Ok(pid), "its names are not known");
        }
        Err(error) if is_full(&error) => assert!(is_pid, "{text:?} is no PID; it is said: {error}"),
        Err(error) => {
            assert!(!is_pid, "{text:?} is a PID, and is rejected: {error}");
            let is_inside = error.at <= text.len() && text.is_char_boundary(error.at);
            assert!(
                is_inside,
                "{text:?} is wrong at a place that there is not: {error}"
            );
            assert!(error.to_string().contains(&format!("at byte {}", error.at)));
        }
    }
    is_pid
}

fn is_full(error: &ParsePidError) -> bool {
    let (PidProblem::Node(name) | PidProblem::Host(name)) = &error.problem else {
        return false;
    };
    name.problem == NameProblem::TooManyParsed
}

/// A part of the text.
enum Read {
    /// Bytes of the first name, or of the host's name behind the node's.
    Name { bytes: usize, is_host: bool },
    /// These digits.
    Id(Option<u64>),
    /// All.
    Closed,
}

fn accepts(text: &str) -> bool {
    let mut rest = text.chars();
    if rest.next() != Some('{') {
        return false;
    }
    let mut read = Read::Name {
        bytes: 0,
        is_host: false,
    };
    for c in rest {
        read = match (read, c) {
            (
                Read::Name {
                    bytes,
                    is_host: false,
                },
                '@',
            ) if bytes > 0 => Read::Name {
                bytes: 0,
                is_host: true,
            },
            (Read::Name { bytes, .. }, '|') if bytes > 0 => Read::Id(None),
            (Read::Name { bytes, is_host }, c) => {
                let stands_in_names =
                    !c.is_whitespace() && !c.is_control() && !matches!(c, '{' | '}' | '|' | '@');
                let bytes = bytes + c.len_utf8();
                if !stands_in_names || bytes > NAME {
                    return false;
                }
                Read::Name { bytes, is_host }
            }
            (Read::Id(Some(_)), '}') => Read::Closed,
            // A single zero is a number; no digit may follow it.
            (Read::Id(Some(0)), _) => return false,
            (Read::Id(so_far), digit @ '0'..='9') => {
                let digit = u64::from(digit) - u64::from('0');
                let number = so_far.unwrap_or(0).checked_mul(10);
                match number.and_then(|it| it.checked_add(digit)) {
                    Some(number) => Read::Id(Some(number)),
                    None => return false,
                }
            }
            (Read::Id(_) | Read::Closed, _) => return false,
        };
    }
    matches!(read, Read::Closed)
}

#[cfg(test)]
mod tests {
    use super::*;

    // pins: R1
    #[test]
    fn the_grammar_and_the_parser_agree() {
        for (text, is_pid) in [
            ("{a|0}", true),
            ("{n@a|18446744073709551615}", true),
            ("{a|18446744073709551616}", false),
            ("{a|00}", false),
            ("{a|}", false),
            ("{@a|1}", false),
            ("{n@|1}", false),
            ("{n@a@b|1}", false),
            ("{a|1}}", false),
            ("{a|1", false),
            ("", false),
        ] {
            assert_eq!(check_pid_text(text.as_bytes()), is_pid, "{text}");
        }
        let of = |bytes: usize| format!("{{{}|1}}", "x".repeat(bytes));
        assert!(check_pid_text(of(NAME).as_bytes()) && !check_pid_text(of(NAME + 1).as_bytes()));
        assert!(!check_pid_text(&[b'{', 0xff]));
    }
}
