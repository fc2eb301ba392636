//! How plain the comments of each crate are, and whether functions say what they do.
//!
//! Two shares are counted over the sentences of all comments of a crate, and of its tests: words
//! that name no role, such as "that" and "those", and sentences that begin with a pronoun.

use super::Findings;
use super::source::{Source, count};
use std::collections::BTreeMap;

/// Words and phrases whose meaning the reader must find.
const VAGUE: &str = "one, ones, that, those, what, which, whichever, whatever, so many, so long, \
                     of it, at the most, at the least, no longer, there is, there are, is to, \
                     are to, has to, beside, aside, apart, others";

/// First words of a sentence without a role as its subject.
const PRONOUNS: [&str; 6] = ["It", "One", "That", "Those", "What", "Others"];

/// Words with the ending of a verb in the third person.
const NO_VERBS: [&str; 6] = ["This", "Its", "As", "Always", "Others", "Thus"];

/// A shorter sentence is a heading, or a name.
const LEAST_WORDS: usize = 4;

/// The most vague words in 1,000 words of a crate's comments, and the most pronouns at the begin of
/// 1,000 sentences. Comparable projects, tokio, rayon and nexosim, have 20 to 29, and 15 to 32.
const MOST_VAGUE: usize = 30;
const MOST_PRONOUNS: usize = 40;

/// Checks the comments of each crate.
pub(super) fn check(sources: &[Source], findings: &mut Findings) {
    let mut crates: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for source in sources {
        check_functions(source, findings);
        if let Some(folder) = folder(&source.path) {
            crates.entry(folder).or_default().extend(sentences(source));
        }
    }
    for (folder, sentences) in crates {
        let words = sentences.iter().map(|it| it.split(' ').count()).sum();
        let vague = sentences.iter().map(|it| vague_words(it)).sum();
        let pronouns = sentences.iter().filter(|it| begins_with_pronoun(it));
        let pronouns = pronouns.count();
        let vague = (vague, words, MOST_VAGUE, "words are vague");
        let what = "sentences begin with a pronoun";
        for (part, whole, most, what) in [vague, (pronouns, sentences.len(), MOST_PRONOUNS, what)] {
            let share = (1_000_usize * part).div_ceil(usize::max(whole, 1));
            if share > most {
                let what = format!("{share} of 1,000 {what}; at most {most}: name the roles");
                findings.add(folder, 0, what);
            }
        }
    }
}

/// Returns the folder of a file's crate, or of the crate's tests.
fn folder(path: &str) -> Option<&str> {
    let (first, rest) = path.split_once('/')?;
    let mut length = first.len();
    if first == "crates" {
        length += 1 + rest.find('/')?;
    }
    if path[length..].starts_with("/tests/") {
        length += "/tests".len();
    }
    Some(&path[..length])
}

/// Checks that the documentation of each function begins with a verb in the third person.
fn check_functions(source: &Source, findings: &mut Findings) {
    let (mut first, mut open) = (None, 0);
    for ((number, line), text) in source.numbered().zip(source.text.lines()) {
        let text = text.trim_start();
        if let Some(words) = text.strip_prefix("///") {
            first.get_or_insert((number, words));
        } else if open > 0 || text.starts_with("#[") {
            // An attribute, of any number of lines.
            open += line.code.matches('[').count();
            open -= line.code.matches(']').count();
        } else if !text.starts_with("//")
            && let Some((number, words)) = first.take()
            && is_function(&line.code)
            && !begins_with_verb(words)
        {
            let what = "a function's documentation begins with a verb, such as `Returns`";
            findings.add(&source.path, number, what);
        }
    }
}

fn is_function(code: &str) -> bool {
    let marks = ["const", "async", "unsafe", "extern", "\"\""];
    let is_mark = |word: &str| word.starts_with("pub") || marks.contains(&word);
    let before = code.split_once("fn ").map(|(before, _)| before);
    before.is_some_and(|before| before.split_whitespace().all(is_mark))
}

fn begins_with_verb(words: &str) -> bool {
    let mut words = words.split(|c: char| !c.is_alphanumeric());
    let first = words.find(|word| !word.is_empty());
    first.is_some_and(|word| word.ends_with('s') && !NO_VERBS.contains(&word))
}

/// Returns the sentences of the comments that have a line of their own, without code, tables and
/// headings.
fn sentences(source: &Source) -> Vec<String> {
    let mut blocks = vec![String::new()];
    let mut is_code = false;
    for line in &source.lines {
        let is_comment = line.code.trim().is_empty();
        let text = if is_comment { line.comment.trim() } else { "" };
        let is_fence = text.starts_with("```");
        is_code = is_comment && (is_code != is_fence);
        let is_prose = !text.is_empty() && !is_fence && !is_code && !text.starts_with(['#', '|']);
        if !is_prose || text.starts_with("- ") || text.starts_with("* ") {
            blocks.push(String::new());
        }
        if let Some(block) = blocks.last_mut().filter(|_| is_prose) {
            block.push_str(text);
            block.push(' ');
        }
    }
    blocks.iter().flat_map(|block| split(block)).collect()
}

/// Splits a block after each full stop that a capital, a mark or a code word follows.
fn split(block: &str) -> Vec<String> {
    let (mut sentences, mut sentence) = (Vec::new(), Vec::new());
    let mut words = block.split_whitespace().peekable();
    while let Some(word) = words.next() {
        sentence.push(word);
        let is_begin =
            |next: &&str| next.starts_with(|c: char| c.is_ascii_uppercase() || "*`[".contains(c));
        if word.ends_with(['.', '!', '?']) && words.peek().is_none_or(is_begin) {
            sentences.push(std::mem::take(&mut sentence));
        }
    }
    sentences.push(sentence);
    sentences.retain(|sentence| sentence.len() >= LEAST_WORDS);
    let sentences = sentences.iter().map(|sentence| sentence.join(" "));
    sentences.collect()
}

fn vague_words(sentence: &str) -> usize {
    let text = sentence.to_ascii_lowercase();
    VAGUE.split(", ").map(|phrase| count(&text, phrase)).sum()
}

fn begins_with_pronoun(sentence: &str) -> bool {
    let first = sentence.split(|c: char| !c.is_alphanumeric()).next();
    first.is_some_and(|first| PRONOUNS.contains(&first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_those_of_whole_comments() {
        let text = "/// The sender takes room. It is\n/// refused without it.\n\
                    let a = 1; // Not a sentence of its own line.\n\
                    /// - An item of a list ends here\n/// - and the next one begins here\n\
                    /// # A heading is no sentence\n\
                    /// ```\n/// let it = 1;\n///\n/// that(of, one, more);\n/// ```\n\
                    // Two words.\n";
        let found = sentences(&Source::parse("crates/mpsc/src/a.rs", text)).join("|");
        let lines = "The sender takes room.|It is refused without it.|\
                     - An item of a list ends here|- and the next one begins here";
        assert_eq!(found, lines);
    }

    fn found(text: &str) -> String {
        let mut findings = Findings::default();
        check(&[Source::parse("crates/new/src/a.rs", text)], &mut findings);
        findings.shown().join("|")
    }

    #[test]
    fn a_function_says_what_it_does() {
        for good in [
            "/// Returns room.\n#[allow(\n    dead_code\n)]\npub(crate) const fn room() {}\n",
            "/// The room.\nstruct Room {\n    /// The way out.\n    out: fn (u8),\n}\n",
            "/// The room.\nstruct Room;\n\nfn room() {}\n",
        ] {
            assert_eq!(found(good), "");
        }
        for bad in ["The room.", "`room` is full.", "As there."] {
            let attributes = "#[allow(\n    dead_code\n)]\n// Why.\n";
            let bad = found(&format!(
                "/// {bad}\n{attributes}pub async unsafe fn room() {{}}\n"
            ));
            assert!(
                bad.starts_with("crates/new/src/a.rs:1: a function"),
                "{bad}"
            );
        }
    }

    #[test]
    fn a_crate_is_plain() {
        let plain = "/// The sender takes a stone, thatched and besides.\n";
        assert_eq!(found(plain), "");
        let found = found("/// It takes what is left of that, so many of them.\n");
        assert!(found.starts_with("crates/new: 1000 of 1,000 sentences"));
        assert!(found.contains("|crates/new: 273 of 1,000 words"), "{found}");
    }
}
