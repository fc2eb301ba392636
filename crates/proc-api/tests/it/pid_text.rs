//! The text form of PIDs.

use ganger_proc_api::{HostName, NameError, NameProblem, NodeName, ParsePidError, Pid, PidProblem};
use proptest::prelude::*;

fn problem(text: &str) -> (usize, PidProblem) {
    let error = text.parse::<Pid>().expect_err(text);
    (error.at, error.problem)
}

fn unexpected(expected: &'static str, found: Option<char>) -> PidProblem {
    PidProblem::Unexpected { expected, found }
}

// pins: R1
#[test]
fn errors_say_what_and_where() {
    assert_eq!(problem(""), (0, unexpected("'{'", None)));
    assert_eq!(problem("main|1}"), (0, unexpected("'{'", Some('m'))));
    assert_eq!(problem(" {main|1}"), (0, unexpected("'{'", Some(' '))));
    assert_eq!(problem("{main}"), (6, unexpected("'|' and an id", None)));
    assert_eq!(
        problem("{main|}"),
        (6, unexpected("a digit of the id", Some('}')))
    );
    assert_eq!(
        problem("{main|+1}"),
        (6, unexpected("a digit of the id", Some('+')))
    );
    assert_eq!(
        problem("{main|-1}"),
        (6, unexpected("a digit of the id", Some('-')))
    );
    assert_eq!(
        problem("{main|1x}"),
        (7, unexpected("a digit of the id or '}'", Some('x')))
    );
    assert_eq!(
        problem("{main|1"),
        (7, unexpected("a digit of the id or '}'", None))
    );
    assert_eq!(
        problem("{main|1} "),
        (8, unexpected("the end of the text", Some(' ')))
    );
    assert_eq!(
        problem("{main|1}}"),
        (8, unexpected("the end of the text", Some('}')))
    );
    assert_eq!(problem("{main|01}"), (6, PidProblem::LeadingZero));
    assert_eq!(
        problem("{main|18446744073709551616}"),
        (6, PidProblem::IdTooLarge)
    );
    assert_eq!(
        problem("{main|99999999999999999999999999}"),
        (6, PidProblem::IdTooLarge)
    );

    for (text, at) in [
        ("{|1}", 1),
        ("{a b|1}", 2),
        ("{n@|1}", 3),
        ("{n@a@b|1}", 4),
        ("{{a|1}", 1),
    ] {
        let (found, problem) = problem(text);
        assert!(
            matches!(problem, PidProblem::Host(_)),
            "{text}: {problem:?}"
        );
        assert_eq!(found, at, "{text}");
    }
    for (text, at) in [("{@a|1}", 1), ("{n\u{a0}@a|1}", 2), ("{n\n@a|1}", 2)] {
        let (found, problem) = problem(text);
        assert!(
            matches!(problem, PidProblem::Node(_)),
            "{text}: {problem:?}"
        );
        assert_eq!(found, at, "{text}");
    }
}

// pins: R1
#[test]
fn a_name_that_is_too_long_is_wrong_where_a_character_begins() {
    for (last, at) in [("x", 256), ("日", 255), ("ü", 255)] {
        let text = format!("{{{}{last}x|1}}", "x".repeat(254));
        let error = text.parse::<Pid>().unwrap_err();
        assert_eq!(error.at, at, "{text}");
        assert!(text.is_char_boundary(error.at));
    }
}

// pins: R1
#[test]
fn extremes_parse() {
    for text in ["{a|0}", "{a|18446744073709551615}", "{ü@日本|7}", "{n@h|1}"] {
        assert_eq!(text.parse::<Pid>().unwrap().to_string(), text);
    }
}

// pins: R1
#[test]
fn a_parse_of_known_names_adds_none() {
    let text = "{unheard-of@unseen|7}";
    let unknown = |at, problem: fn(NameError) -> PidProblem| ParsePidError {
        at,
        problem: problem(NameError {
            problem: NameProblem::Unknown,
            at: 0,
        }),
    };
    for _ in 0..2 {
        assert_eq!(Pid::parse_known(text), Err(unknown(1, PidProblem::Node)));
    }
    let node = NodeName::new("unheard-of").unwrap();
    let error = Pid::parse_known(text).unwrap_err();
    assert_eq!(error, unknown(12, PidProblem::Host));
    assert!(
        error.to_string().contains("create it with `new`"),
        "{error}"
    );
    assert_eq!(HostName::known("unseen"), None);
    let host = HostName::new("unseen").unwrap();
    assert_eq!(Pid::parse_known(text), Ok(Pid::on_node(node, host, 7)));
    assert_eq!(
        Pid::parse_known("{main|1"),
        Err("{main|1".parse::<Pid>().unwrap_err())
    );
}

// pins: R1
#[test]
fn a_pid_is_sixteen_bytes_and_copy() {
    fn is_copy<T: Copy + Send + Sync>() {}
    is_copy::<Pid>();
    assert_eq!(size_of::<Pid>(), 16);
    assert_eq!(size_of::<Option<Pid>>(), 16);
}

/// Returns whether the text is a PID's, by a second statement of the grammar: the parser must
/// accept exactly these texts.
fn is_pid_text(text: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty()
            && name.len() <= 255
            && !name.contains(|c: char| c.is_whitespace() || c.is_control() || "{}|@".contains(c))
    };
    let Some(inner) = text
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
    else {
        return false;
    };
    let Some((place, id)) = inner.split_once('|') else {
        return false;
    };
    let names_are_good = match place.split_once('@') {
        Some((node, host)) => is_name(node) && is_name(host),
        None => is_name(place),
    };
    names_are_good
        && id.bytes().all(|b| b.is_ascii_digit())
        && id
            .parse::<u64>()
            .is_ok_and(|number| number.to_string() == id)
}

// A small set of names, because interned names are never freed.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-c]{1,2}",
        Just("日".to_owned()),
        Just("x".repeat(255)),
        "[-._+:/]"
    ]
}

proptest! {
    // pins: R1
    #[test]
    fn text_round_trips(node in proptest::option::of(name()), host in name(), id: u64) {
        let host_name = HostName::new(&host).unwrap();
        let node_name = node.as_deref().map(|node| NodeName::new(node).unwrap());
        let pid = Pid::new(host_name, id).with_node(node_name);
        let text = pid.to_string();
        prop_assert_eq!(text.parse::<Pid>().unwrap(), pid);
        prop_assert!(is_pid_text(&text));
    }

    // pins: R1
    #[test]
    fn exactly_the_grammar_is_accepted(text in "[{ ]?[a-b@]{0,3}[|@]?[0-9a]{0,3}[}|]{0,2}") {
        prop_assert_eq!(text.parse::<Pid>().is_ok(), is_pid_text(&text), "{}", text);
    }

    // pins: R1
    #[test]
    fn garbage_is_rejected_at_a_place_inside_the_text(text in any::<String>()) {
        match text.parse::<Pid>() {
            Ok(pid) => prop_assert_eq!(pid.to_string(), text),
            Err(error) => {
                prop_assert!(error.at <= text.len());
                prop_assert!(text.is_char_boundary(error.at));
                let place = format!("at byte {}", error.at);
                prop_assert!(error.to_string().contains(&place));
            }
        }
    }
}
