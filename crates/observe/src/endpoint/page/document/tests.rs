//! The document is whole, asks the program alone, and knows the API.

use super::*;
use crate::api::{Acted, Groups, Letters, Nodes, Processes, Snapshot, Sockets, Tree, Waits};
use crate::endpoint::routes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Paths of optional parts: the page says so where an endpoint has none of them.
const LATER: [&str; 5] = [
    "/api/v1/groups",
    "/api/v1/tree",
    "/api/v1/waits",
    "/profile",
    "/trace",
];

/// The script without comments and strings, and its strings.
struct Parts {
    code: String,
    strings: Vec<String>,
}

/// Separates the code and the strings of a script. A template's text is a string, and its values
/// are code.
fn parts(script: &str) -> Parts {
    let mut parts = Parts {
        code: String::new(),
        strings: Vec::new(),
    };
    let mut rest = script;
    // The depth of braces at which each open template goes on.
    let mut templates = Vec::new();
    let mut depth = 0;
    while let Some(c) = rest.chars().next() {
        if rest.starts_with("//") {
            rest = rest.find('\n').map_or("", |at| &rest[at..]);
        } else if rest.starts_with("/*") {
            let end = rest.find("*/").expect("an open comment");
            rest = &rest[end + 2..];
        } else if c == '/' && is_regex(&parts.code) {
            let end = regex_end(rest);
            parts.code.push_str("regex");
            rest = &rest[end..];
        } else if c == '"' || c == '`' || (c == '}' && templates.last() == Some(&depth)) {
            if c == '}' {
                templates.pop();
            }
            let is_template = c != '"';
            let end = string_end(&rest[1..], is_template) + 1;
            parts.strings.push(rest[1..end].to_owned());
            parts.code.push_str(" 0 ");
            if is_template && rest[end..].starts_with("${") {
                templates.push(depth);
                parts.code.push('+');
                rest = &rest[end + 2..];
            } else {
                rest = &rest[end + 1..];
            }
        } else {
            depth += i32::from(c == '{') - i32::from(c == '}');
            parts.code.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    assert!(templates.is_empty(), "a template is open");
    parts
}

/// Returns whether a slash behind the code begins a regular expression.
fn is_regex(code: &str) -> bool {
    let before = code.trim_end().chars().next_back();
    before.is_some_and(|it| "(,=:[!&|?{};".contains(it))
}

fn regex_end(text: &str) -> usize {
    let (mut is_class, mut is_escaped) = (false, false);
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '[' => is_class = true,
            ']' => is_class = false,
            '/' if !is_class => return at + 1,
            '\n' => break,
            _ => {}
        }
    }
    panic!(
        "an open regular expression: {}",
        &text[..text.len().min(60)]
    );
}

/// Returns the place of the quote, or of `${`, at the end of a string.
fn string_end(text: &str, is_template: bool) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' if !is_template => return at,
            '\n' if !is_template => break,
            '`' if is_template => return at,
            '$' if is_template && text[at..].starts_with("${") => return at,
            _ => {}
        }
    }
    panic!("an open string: {}", &text[..text.len().min(60)]);
}

/// Returns the names behind a dot.
fn members(code: &str) -> BTreeSet<&str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let words: Vec<_> = code.split('.').collect();
    // Behind three dots is no member.
    let behind = words
        .windows(2)
        .filter(|it| !it[0].is_empty())
        .map(|it| it[1]);
    let names = behind.map(|it| &it[..it.find(|c| !is_part(c)).unwrap_or(it.len())]);
    let is_name = |it: &&str| it.starts_with(|c: char| c.is_ascii_alphabetic());
    names.filter(is_name).collect()
}

// pins: V2
#[test]
fn the_document_is_whole() {
    let text = &*DOCUMENT.text;
    assert!(text.starts_with("<!doctype html>"));
    assert!(!text.contains("{style}") && !text.contains("{script}"));
    let mut open = Vec::new();
    // Of the script and the style, the last `<` begins the end.
    let mut rest = FRAME;
    while let Some(at) = rest.find('<') {
        let tag = &rest[at + 1..];
        let end = tag.find('>').unwrap();
        let (tag, after) = (&tag[..end], &tag[end + 1..]);
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        let name = tag.split_whitespace().next().unwrap();
        match name.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name), "{tag}"),
            None if ["!doctype", "meta", "link"].contains(&name) => {}
            None => open.push(name),
        }
        rest = after;
    }
    assert!(open.is_empty(), "{open:?}");
    let mut braces = Vec::new();
    for c in parts(&script()).code.chars() {
        match c {
            '(' | '[' | '{' => braces.push(c),
            ')' => assert_eq!(braces.pop(), Some('(')),
            ']' => assert_eq!(braces.pop(), Some('[')),
            '}' => assert_eq!(braces.pop(), Some('{')),
            _ => {}
        }
    }
    assert!(braces.is_empty(), "{braces:?}");
}

// pins: V2
#[test]
fn the_script_is_no_part_of_the_frame_or_of_html() {
    let script = script();
    // An end of the element in a string would end the script.
    for part in [
        "</script",
        "<!--",
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
    ] {
        assert!(!script.contains(part), "{part}");
    }
    for part in [
        "document.write",
        "eval(",
        "new Function",
        "srcdoc",
        "DOMParser",
    ] {
        assert!(!script.contains(part), "{part}");
    }
    // As a browser does: the text between the tags, and its hash.
    let text = &*DOCUMENT.text;
    let (_, from) = text.split_once("<script>").unwrap();
    let (shown, _) = from.split_once("</script>").unwrap();
    let hash = base64(&Sha256::digest(shown));
    let policy = DOCUMENT.policy.to_str().unwrap();
    assert!(policy.contains(&format!("script-src 'sha256-{hash}';")));
    assert!(policy.starts_with("default-src 'none';"));
}

#[test]
fn digits_are_those_of_base64() {
    for (bytes, text) in [
        ("", ""),
        ("f", "Zg=="),
        ("fo", "Zm8="),
        ("foo", "Zm9v"),
        ("foob", "Zm9vYg=="),
    ] {
        assert_eq!(base64(bytes.as_bytes()), text);
    }
    assert_eq!(base64(&[0xfb, 0xff, 0xbf]), "+/+/");
}

// pins: V2
#[test]
fn the_document_names_no_other_host() {
    let text = &*DOCUMENT.text;
    let text = text.replace("http://www.w3.org/2000/svg", "");
    for part in ["http:", "https:", "url(", "@import", "src=", "\"//"] {
        assert!(!text.contains(part), "{part}");
    }
}

// pins: V2
#[test]
fn the_script_asks_for_paths_of_the_endpoint() {
    let parts = parts(&script());
    let paths = parts
        .strings
        .iter()
        .filter(|it| it.starts_with("/") && it.len() > 1);
    let paths: BTreeSet<_> = paths.map(|it| it.split('?').next().unwrap()).collect();
    assert!(paths.contains("/api/v1/snapshot"), "{paths:?}");
    for path in paths {
        assert!(routes::is_path(path) || LATER.contains(&path), "{path}");
    }
}

// pins: V2
#[test]
fn the_script_reads_fields_of_the_api() {
    let mut fields = BTreeSet::new();
    for value in answers() {
        add_names(&value, &mut fields);
    }
    let script = script();
    let code = parts(&script).code;
    let own: BTreeSet<_> = OWN.split_whitespace().collect();
    let unknown: Vec<_> = members(&code)
        .into_iter()
        .filter(|it| !fields.contains(*it) && !own.contains(it))
        .collect();
    assert!(
        unknown.is_empty(),
        "neither of the API nor of the browser: {unknown:?}"
    );
    let used = members(&code);
    let is_idle = |it: &&&str| fields.contains(**it) || !used.contains(**it);
    let idle: Vec<_> = own.iter().filter(is_idle).collect();
    assert!(idle.is_empty(), "of the API, or not used: {idle:?}");
}

fn add_names(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| {
            names.insert(name.clone());
            add_names(value, names);
        }),
        Value::Array(values) => values.iter().for_each(|it| add_names(it, names)),
        _ => {}
    }
}

/// Returns an answer of each kind, read and written again: so it has all fields of its type.
fn answers() -> Vec<Value> {
    vec![
        written::<Snapshot>(json!({"version": 1, "sequence": 1, "schedulers": [{
            "number": 1, "host": "", "node": null, "is_started": true, "is_stopping": false,
            "time_to_stop_ns": null, "uptime_ns": 1, "live": 1, "global_queue": 1,
            "ready": 1, "events": null,
            "threads": {
                "workers": 1, "spares": 1, "relieved": 1, "sleeping": 1, "searching": 1
            },
            "total": {}, "workers": [{}],
            "timers": {"pending": 1, "armed": 1, "fired": 1, "cancelled": 1, "refused": 1},
            "longest_step_ns": 1,
            "long_steps": [{
                "pid": "", "method": null, "worker": 1, "is_blocked": true, "is_announced": true,
                "is_over": true, "lasted_ns": 1, "backtrace": null
            }],
            "observes": "", "worker_times": [{}], "distributions": {"types": [{}]},
            "alarms": [{
                "number": 1, "kind": "", "is_severe": true, "pid": null, "text": "", "value": 1,
                "limit": 1, "since_ns": 1
            }]
        }]})),
        written::<Acted>(
            json!({"version": 1, "scheduler": 1, "pid": "", "action": "cancel", "stands": true,
            "successor": ""}),
        ),
        written::<Processes>(
            json!({"version": 1, "live": 1, "matched": 1, "processes": [{
                "scheduler": 1, "pid": "", "state": "idle", "method": "", "type_name": "",
                "names": [], "parent": null, "incarnation": 0, "is_cancelled": false,
                "is_terminating": false, "left": 0, "queued": null, "quiet_ns": null,
                "counts": {}, "waits": [{"command": null, "name": null, "tag": 1, "since_ns": 1}]
            }]}),
        ),
        written::<Groups>(json!({"version": 1, "others": 1, "groups": [{
            "scheduler": 1, "type_name": "", "method": "", "label": null, "state": "idle",
            "waits_for": null, "count": 1, "waiting": 1
        }]})),
        written::<Tree>(json!({"version": 1, "others": 1, "nodes": [{
            "scheduler": 1, "pid": null, "parent": null, "name": null, "kind": "",
            "is_supervisor": true, "state": null, "restarts": 1, "last_cause": null
        }]})),
        written::<Waits>(json!({
            "version": 1, "others": 1, "cycles": [[0]],
            "waits": [{
                "scheduler": null, "waiter": "", "waiter_name": null, "kind": "", "parties": [],
                "since_ns": 1
            }],
            "heads": [{"party": "", "party_name": null, "waiters": 1, "longest_ns": 1}]
        })),
        written::<Letters>(json!({"version": 1, "schedulers": [{
            "scheduler": 1, "host": "", "undelivered": 1, "refused": 1,
            "last": [{
                "reason": "", "source": null, "target": "", "topic": "", "at_ns": 1, "text": null
            }]
        }]})),
        written::<Nodes>(json!({"version": 1, "nodes": [{
            "scheduler": 1, "name": "", "cluster": "", "incarnation": "",
            "peers": [{
                "name": "", "incarnation": null, "state": "", "round_trip_ns": null,
                "queued": [1, 1], "unacknowledged": [1, 1], "resent": [1, 1], "watching": 1,
                "watched": 1, "links": 1, "asked": 1, "waiting": 1, "ended": 1, "last_end": null,
                "undelivered": 1
            }],
            "names": {"eventual": 1, "strong": 1, "first": [{
                "name": "", "pid": "", "node": "", "token": null, "is_given_up": false
            }]},
            "lease": {"left_ns": 1, "whole_ns": 1, "names": 1, "locks": 1, "waiting": 1},
            "store": {"what": "", "lost_ns": null, "waiting": 1}
        }]})),
        written::<Sockets>(json!({"version": 1, "open": 1, "driven": [1], "sockets": [{
            "scheduler": 1, "id": 1, "kind": "", "local": null, "peer": null,
            "waits": [{
                "is_write": true, "pid": null, "scheduler": null, "name": null, "since_ns": null
            }]
        }]})),
    ]
}

fn written<T: DeserializeOwned + Serialize>(answer: Value) -> Value {
    let read: T = serde_json::from_value(answer).unwrap();
    serde_json::to_value(read).unwrap()
}

/// The members of objects that the script has from the browser or makes itself.
const OWN: &str = "\
    abort abs across act activeElement add addEventListener ago altKey answer any append \
    appendChild assign at axes background beginPath below blob body busy busyShare buttons by \
    canvas ceil cell cells children class classList className clear clearRect click clientWidth \
    close closest colour column columns commandRate confirm contains createElement \
    createElementNS createObjectURL ctrlKey data dataset decades delete depth devicePixelRatio \
    dim disabled documentElement down draw element end enter entries EventSource exec failures \
    fill fillRect fillStyle fillText filter find findIndex firstChild flat flatMap floor \
    focus font forEach format frame from fromEntries get getContext getElementById \
    getPropertyValue globalAlpha has hash head headers height hidden history hover idle includes \
    indexOf info insertBefore isBad isBusy isFolded isHere isIntersecting isLog isNaN isNear \
    isStale join json keep kept key keys lastChild later legend length line lineJoin lines lineTo \
    lineWidth listen localeCompare log log10 log2 lose make map max maxWidth messageRate metaKey \
    min minWidth move moveTo near newest next nextElementSibling nextSibling nothing now observe \
    of offsetX ok paddingLeft parse path patience period point points pop prepend preventDefault \
    previous previousElementSibling process push querySelectorAll question queue rate rates \
    ready50 ready99 reduce remove removeAttribute replace replaceChildren replaceState reverse \
    revokeObjectURL round row rows run said scrollIntoView see seen series set setAttribute \
    setTransform shape shares shift showModal shown signal silences since size slice some sort \
    sortedBy split sqrt start startsWith status step50 step99 stepRate stop stream streamAt \
    stroke strokeStyle style tab tabIndex take tell textAlign textBaseline textContent texts \
    timeout timerRate title to toFixed toggle toLocaleString trim unobserve values visibility \
    watch when width";
