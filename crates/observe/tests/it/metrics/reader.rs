//! A reader of Prometheus' text, written from the description of the format and from no writer: it
//! refuses what a strict reader refuses.

use std::collections::{BTreeMap, BTreeSet};

/// Labels in the order of their names.
pub(crate) type Labels = BTreeMap<String, String>;

/// The lines of a metric.
#[derive(Debug, Default)]
pub(crate) struct Family {
    pub(crate) kind: String,
    pub(crate) help: String,
    /// By the whole name, which has `_bucket`, `_sum` or `_count` behind it in a histogram.
    pub(crate) samples: BTreeMap<(String, Labels), f64>,
}

/// Reads a document. The families are by their names.
pub(crate) fn read(text: &str) -> BTreeMap<String, Family> {
    assert!(text.is_empty() || text.ends_with('\n'), "no last line end");
    let mut all = BTreeMap::<String, Family>::new();
    let mut last = String::new();
    for line in text.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let (word, rest) = comment.split_once(' ').expect("a word");
            let (name, rest) = rest.split_once(' ').expect("a name");
            match word {
                "HELP" => {
                    assert!(!all.contains_key(name), "{name} is there twice");
                    name.clone_into(&mut last);
                    rest.clone_into(&mut all.entry(last.clone()).or_default().help);
                }
                "TYPE" => {
                    let family = all.get_mut(name).expect("HELP comes first");
                    assert!(family.samples.is_empty() && name == last, "{line}");
                    assert!(["counter", "gauge", "histogram"].contains(&rest), "{line}");
                    rest.clone_into(&mut family.kind);
                }
                "UNIT" => assert!(name.trim_end_matches("_total").ends_with(rest), "{line}"),
                _ => panic!("{line}"),
            }
            continue;
        }
        let (name, labels, value) = sample(line);
        let family = all.get_mut(&last).expect("TYPE comes first");
        let suffixes: &[&str] = match &*family.kind {
            "histogram" => &["_bucket", "_sum", "_count"],
            _ => &[""],
        };
        let is_its = name
            .strip_prefix(&last)
            .is_some_and(|it| suffixes.contains(&it));
        assert!(is_its, "{line} is not of {last}");
        let before = family.samples.insert((name, labels), value);
        assert_eq!(before, None, "{line} is there twice");
    }
    all
}

fn is_name(text: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.starts_with(is_letter) && text.chars().all(|c| is_letter(c) || c.is_ascii_digit())
}

/// Reads a line with a value.
fn sample(line: &str) -> (String, Labels, f64) {
    let end = line.find(['{', ' ']).expect("a value");
    let (name, mut rest) = line.split_at(end);
    assert!(is_name(name), "{line}");
    let mut labels = Labels::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        while !rest.starts_with('}') {
            let (label, after) = rest.split_once("=\"").expect("a label's value");
            assert!(is_name(label), "{line}");
            let (value, after) = quoted(after);
            let before = labels.insert(label.to_owned(), value);
            assert_eq!(before, None, "{line} has {label} twice");
            rest = after.strip_prefix(',').unwrap_or(after);
        }
        rest = &rest[1..];
    }
    let value = rest.strip_prefix(' ').expect("a space");
    (name.to_owned(), labels, value.parse().expect("a number"))
}

/// Reads a value to its quotation mark, and returns what is behind it.
fn quoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (value, &text[at + 1..]),
            '\\' => match chars.next().expect("an escaped character").1 {
                'n' => value.push('\n'),
                c @ ('\\' | '"') => value.push(c),
                c => panic!("\\{c} is no escape"),
            },
            c => value.push(c),
        }
    }
    panic!("{text:?} has no end");
}

impl Family {
    /// Returns the value with this name and these labels.
    #[track_caller]
    pub(crate) fn get(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let labels: Labels = labels.iter().map(own).collect();
        let key = (name.to_owned(), labels);
        let value = self.samples.get(&key);
        *value.unwrap_or_else(|| panic!("{key:?} is not in {self:#?}"))
    }

    /// Returns the values of a label.
    pub(crate) fn values(&self, label: &str) -> BTreeSet<&str> {
        let labels = self
            .samples
            .keys()
            .filter_map(|(_, labels)| labels.get(label));
        labels.map(|it| &**it).collect()
    }

    /// Checks whether the buckets of each series grow, and whether the last bucket has all; returns
    /// their counts.
    pub(crate) fn counts(&self, name: &str) -> BTreeMap<Labels, Vec<(f64, f64)>> {
        let mut all = BTreeMap::<Labels, Vec<(f64, f64)>>::new();
        for ((line, labels), &count) in &self.samples {
            if *line == format!("{name}_bucket") {
                let mut labels = labels.clone();
                let bound = labels.remove("le").expect("a bound").parse().unwrap();
                all.entry(labels).or_default().push((bound, count));
            }
        }
        for (labels, buckets) in &mut all {
            buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
            assert!(
                buckets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1),
                "{buckets:?}"
            );
            let &(bound, total) = buckets.last().expect("a bucket");
            assert_eq!(bound, f64::INFINITY);
            let key = |suffix: &str| (format!("{name}{suffix}"), labels.clone());
            assert_eq!(self.samples[&key("_count")], total);
            assert_eq!(self.samples[&key("_sum")] > 0.0, total > 0.0);
        }
        all
    }
}

#[test]
fn broken_documents_are_refused() {
    let head = "# HELP a A.\n# TYPE a gauge\n";
    let is_read = |text: &str| std::panic::catch_unwind(|| read(text)).is_ok();
    assert!(is_read(&format!("{head}a{{x=\"}},\\\"\\\\\\n\"}} 1\n")));
    for broken in [
        "a{x=\"1} 1\n",
        "b 1\n",
        "a 1\na 1\n",
        "a x\n",
        "a{x=\"\\y\"} 1\n",
        "a 1",
    ] {
        assert!(!is_read(&format!("{head}{broken}")), "{broken}");
    }
}
