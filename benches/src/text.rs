//! Figures as people read them.

/// Returns a number with three digits, or with all digits before the point.
pub(crate) fn figure(x: f64) -> String {
    match x {
        0.0 => "0".to_owned(),
        x if x < 0.1 => format!("{x:.3}"),
        x if x < 10.0 => format!("{x:.2}"),
        x if x < 100.0 => format!("{x:.1}"),
        x if x < 10_000.0 => format!("{x:.0}"),
        x => with_commas(&format!("{x:.0}")),
    }
}

/// Returns a ratio as text: `2.50×`.
pub(crate) fn times(x: f64) -> String {
    format!("{}×", figure(x))
}

/// Returns a figure with its unit; a pure number has none.
pub(crate) fn with_unit(figure: &str, unit: &str) -> String {
    match unit {
        "x" | "" => figure.to_owned(),
        unit => format!("{figure} {unit}"),
    }
}

/// Inserts a comma between thousands.
fn with_commas(digits: &str) -> String {
    let mut text = String::new();
    for (nth, digit) in digits.chars().enumerate() {
        if nth > 0 && (digits.len() - nth).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns a number as short as an axis needs it: `1`, `10 k`, `2.5 M`.
pub(crate) fn short(x: f64) -> String {
    let (scaled, suffix) = match x.abs() {
        size if size >= 1e9 => (x / 1e9, " G"),
        size if size >= 1e6 => (x / 1e6, " M"),
        size if size >= 1e3 => (x / 1e3, " k"),
        _ => (x, ""),
    };
    let text = format!("{scaled:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text}{suffix}")
}

/// Returns the number behind a name at the begin of a line, as in many files of `/proc`.
pub(crate) fn number(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits() {
        let texts = [0.0, 0.005, 1.0, 12.34, 99.0, 893.1, 1_444_000.4].map(figure);
        assert_eq!(
            texts,
            ["0", "0.005", "1.00", "12.3", "99.0", "893", "1,444,000"]
        );
        assert_eq!(times(0.355), "0.35×");
    }

    #[test]
    fn numbers_are_grouped_and_shortened() {
        assert_eq!(["1", "999", "1000"].map(with_commas), ["1", "999", "1,000"]);
        assert_eq!(with_commas("12345678"), "12,345,678");
        let texts = [1.0, 0.25, 1_000.0, 2_500_000.0, 1e9].map(short);
        assert_eq!(texts, ["1", "0.25", "1 k", "2.5 M", "1 G"]);
    }

    #[test]
    fn a_number_is_found_by_its_name() {
        let info = "MemTotal:  8000 kB\nMemFree:  10 kB\nMemAvailable:   2000 kB\nHuge: lots\n";
        let numbers = ["MemAvailable:", "Huge:", "Swap:"].map(|name| number(info, name));
        assert_eq!(numbers, [Some(2_000), None, None]);
    }

    #[test]
    fn a_ratio_has_no_unit() {
        assert_eq!(with_unit("1.05", "x"), "1.05");
        assert_eq!(with_unit("12.0", "ns"), "12.0 ns");
    }
}
