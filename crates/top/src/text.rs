//! Texts for a terminal: numbers and times in a few columns, and names without control characters.
//!
//! **Problem.** A program chooses the names of its processes. A terminal obeys escape sequences in
//! a name, and text that runs from right to left moves its neighbours. So each name passes
//! [`clean`] before it is shown.

use std::borrow::Cow;
use std::time::Duration;

/// The mark in the place of a control character.
const MARK: char = '\u{fffd}';

/// Replaces control characters, and invisible characters with a direction.
///
/// ```
/// assert_eq!(ganger_top::text::clean("a\x1b[2Jb\n"), "a\u{fffd}[2Jb\u{fffd}");
/// assert_eq!(ganger_top::text::clean("Größe"), "Größe");
/// ```
#[must_use]
pub fn clean(text: &str) -> Cow<'_, str> {
    if text.chars().any(is_unsafe) {
        let replaced = text.chars().map(|c| if is_unsafe(c) { MARK } else { c });
        Cow::Owned(replaced.collect())
    } else {
        Cow::Borrowed(text)
    }
}

/// Returns whether a terminal might obey the character, or show text in another place because of
/// it.
pub(crate) fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
                | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
        )
}

/// Formats a number in at most six columns: `9999`, `12.3k`, `1.2M`.
///
/// ```
/// assert_eq!(ganger_top::text::count(12_345), "12.3k");
/// ```
#[must_use]
pub fn count(number: u64) -> String {
    if number < 10_000 {
        return number.to_string();
    }
    let mut value = number as f64;
    let mut unit = "";
    for next in ["k", "M", "G", "T", "P", "E"] {
        if value < 999.5 {
            break;
        }
        value /= 1_000.0;
        unit = next;
    }
    short(value, unit)
}

/// Formats a number for each second: `0.3`, `12`, `4.5k`.
#[must_use]
pub fn rate(number: f64) -> String {
    match number {
        0.05..9.95 => format!("{number:.1}"),
        _ => count(whole(number)),
    }
}

/// Formats a share of 1 in percent, without the sign.
#[must_use]
pub fn percent(share: f64) -> String {
    whole(share * 100.0).to_string()
}

/// Formats a time in at most six columns: `850 ns`, `1.2 ms`, `3h12m`.
///
/// ```
/// use ganger_top::text::time;
/// assert_eq!([time(1_234_567), time(192 * 60_000_000_000)], ["1.2 ms", "3h12m"]);
/// ```
#[must_use]
pub fn time(nanos: u64) -> String {
    const SECOND: u64 = 1_000_000_000;
    let value = nanos as f64;
    match nanos {
        0..1_000 => format!("{nanos} ns"),
        1_000..999_500 => short(value / 1e3, " µs"),
        999_500..999_500_000 => short(value / 1e6, " ms"),
        _ if nanos < 100 * SECOND => short(value / 1e9, " s"),
        _ => {
            let (minutes, seconds) = (nanos / SECOND / 60, nanos / SECOND % 60);
            let (hours, days) = (minutes / 60, minutes / 60 / 24);
            match minutes {
                0..60 => format!("{minutes}m{seconds:02}s"),
                60..2_880 => format!("{hours}h{:02}m", minutes % 60),
                _ if days < 1_000 => format!("{days}d{:02}h", hours % 24),
                _ => format!("{days}d"),
            }
        }
    }
}

/// Formats a duration as [`time`] does.
pub(crate) fn duration(time: Duration) -> String {
    self::time(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

/// Formats three digits at most, with a unit.
fn short(value: f64, unit: &str) -> String {
    let digits = usize::from(value < 99.95 && unit.len() == 1 || value < 9.95);
    format!("{value:.digits$}{unit}")
}

/// Returns the nearest whole number; 0 for less.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a conversion of floats to integers saturates"
)]
pub(crate) fn whole(number: f64) -> u64 {
    number.round() as u64
}

/// Shortens the name of a type to the last part of each path: `Vec<u8>` of `alloc::vec::Vec<u8>`.
///
/// ```
/// assert_eq!(ganger_top::text::short_type("shop::Shelf<store::Item>"), "Shelf<Item>");
/// ```
#[must_use]
pub fn short_type(name: &str) -> String {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':' || c == '{' || c == '}';
    let mut shortened = String::new();
    let mut rest = name;
    while !rest.is_empty() {
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let (path, after) = rest.split_at(end);
        shortened.push_str(last_part(path));
        let mut others = after.chars();
        shortened.extend(others.next());
        rest = others.as_str();
    }
    shortened
}

/// Returns the last part of a path. A closure has the name of its function.
fn last_part(path: &str) -> &str {
    let named = path.trim_end_matches("::{{closure}}");
    named.rsplit("::").next().unwrap_or(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_fit_their_columns() {
        for number in (0..64).flat_map(|bit| [1_u64 << bit, (1 << bit) - 1, u64::MAX >> bit]) {
            assert!(count(number).chars().count() <= 6, "{}", count(number));
            let text = time(number);
            assert!(text.chars().count() <= 7, "{text}");
        }
        let counts = [0, 9_999, 10_000, 99_949, 999_499, 999_500, 1_250_000];
        let expected = ["0", "9999", "10.0k", "99.9k", "999k", "1.0M", "1.2M"];
        assert_eq!(counts.map(count), expected);
        let times = [0, 999, 1_500, 12_345, 999_499, 1_000_000, 250_000_000];
        let expected = [
            "0 ns", "999 ns", "1.5 µs", "12 µs", "999 µs", "1.0 ms", "250 ms",
        ];
        assert_eq!(times.map(time), expected);
        let seconds = [3, 99, 125, 3_599, 3_600, 172_799, 172_800, 100_000_000];
        let expected = [
            "3.0 s", "99 s", "2m05s", "59m59s", "1h00m", "47h59m", "2d00h", "1157d",
        ];
        assert_eq!(seconds.map(|it| time(it * 1_000_000_000)), expected);
        assert_eq!(
            [0.0, 0.04, 0.26, 9.9, 9.96, 1e5].map(rate),
            ["0", "0", "0.3", "9.9", "10", "100k"]
        );
        assert_eq!([0.0, 0.004, 0.5, 1.0].map(percent), ["0", "0", "50", "100"]);
    }

    #[test]
    fn a_terminal_obeys_no_name() {
        let hostile = "\u{1b}]0;title\u{7}\u{9b}31m\r\u{202e}\u{2066}\u{200b}\u{feff}x\u{7f}";
        let cleaned = clean(hostile);
        assert!(!cleaned.chars().any(is_unsafe));
        assert_eq!(cleaned.chars().count(), hostile.chars().count());
        assert!(cleaned.contains("]0;title") && cleaned.contains('x'));
        assert!(matches!(clean("Straße 東京"), Cow::Borrowed(_)));
    }

    #[test]
    fn types_lose_their_paths() {
        assert_eq!(
            short_type("a::b::C<d::E, &mut f::G<[u8]>>"),
            "C<E, &mut G<[u8]>>"
        );
        assert_eq!(short_type("shop::serve::{{closure}}"), "serve");
        assert_eq!(short_type("serve::{{closure}}::{{closure}}"), "serve");
        assert_eq!(short_type("(a::B, c::D)"), "(B, D)");
        assert_eq!(short_type(""), "");
    }
}
