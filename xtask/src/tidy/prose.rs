//! How plain the comments of each crate are.
//!
//! Two shares are counted over the sentences of all comments: words that name no role, such as
//! "that" and "those", and sentences that begin with a pronoun.

use super::Finding;
use super::source::Source;
use std::collections::BTreeMap;

/// Words and phrases that leave the reader to find what is meant.
const VAGUE: [&str; 23] = [
    "one",
    "ones",
    "that",
    "those",
    "what",
    "which",
    "whichever",
    "whatever",
    "so many",
    "so long",
    "of it",
    "at the most",
    "at the least",
    "no longer",
    "there is",
    "there are",
    "is to",
    "are to",
    "has to",
    "beside",
    "aside",
    "apart",
    "others",
];

/// First words of a sentence that has no role as its subject.
const PRONOUNS: [&str; 6] = ["It", "One", "That", "Those", "What", "Others"];

/// A shorter sentence is a heading, or a name.
const LEAST_WORDS: usize = 4;

/// The most vague words in 1,000 words of a crate's comments, and the most pronouns at the begin of
/// 1,000 sentences. Comparable projects, tokio, rayon and nexosim, have 20 to 29, and 15 to 32.
const MOST_VAGUE: usize = 30;
const MOST_PRONOUNS: usize = 40;

/// What the comments of a crate have.
#[derive(Debug, Default, PartialEq, Eq)]
struct Count {
    sentences: usize,
    words: usize,
    vague: usize,
    pronouns: usize,
}

impl Count {
    fn add(&mut self, source: &Source) {
        for sentence in sentences(source) {
            self.sentences += 1;
            self.words += sentence.split_whitespace().count();
            self.vague += vague_words(&sentence);
            self.pronouns += usize::from(begins_with_pronoun(&sentence));
        }
    }
}

/// Checks the comments of each crate.
pub(super) fn check(sources: &[Source], findings: &mut Vec<Finding>) {
    let mut counts: BTreeMap<&str, Count> = BTreeMap::new();
    for source in sources {
        if let Some(folder) = folder(&source.path) {
            counts.entry(folder).or_default().add(source);
        }
    }
    for (folder, count) in &counts {
        let vague = (count.vague, count.words, MOST_VAGUE, "words are vague");
        let pronouns = "sentences begin with a pronoun";
        let pronouns = (count.pronouns, count.sentences, MOST_PRONOUNS, pronouns);
        for (part, whole, most, what) in [vague, pronouns] {
            let share = (1_000 * part).div_ceil(whole.max(1));
            if share > most {
                let what = format!("{share} of 1,000 {what}; at most {most}: name the roles");
                findings.push(Finding::at(*folder, None, what));
            }
        }
    }
}

/// Returns the folder of a file's crate.
fn folder(path: &str) -> Option<&str> {
    let (first, rest) = path.split_once('/')?;
    let length = match first {
        "crates" => first.len() + 1 + rest.find('/')?,
        _ => first.len(),
    };
    Some(&path[..length])
}

/// The sentences of the comments that have a line of their own, without code, tables and headings.
fn sentences(source: &Source) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut block = String::new();
    let mut is_code = false;
    for line in &source.lines {
        let is_comment = line.code.trim().is_empty() && !line.comment.is_empty();
        let text = if is_comment { line.comment.trim() } else { "" };
        let is_fence = text.starts_with("```");
        is_code = is_comment && (is_code != is_fence);
        let is_prose = !text.is_empty() && !is_fence && !is_code && !text.starts_with(['#', '|']);
        let is_item = text.starts_with("- ") || text.starts_with("* ");
        if !is_prose || is_item {
            blocks.push(std::mem::take(&mut block));
        }
        if is_prose {
            block.push_str(text);
            block.push(' ');
        }
    }
    blocks.push(block);
    blocks.iter().flat_map(|block| split(block)).collect()
}

/// Splits a block after each full stop that a capital, a mark or a code word follows.
fn split(block: &str) -> Vec<String> {
    let mut sentences = vec![String::new()];
    let mut words = block.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let sentence = sentences
            .last_mut()
            .expect("there is always the present one");
        if !sentence.is_empty() {
            sentence.push(' ');
        }
        sentence.push_str(word);
        let is_begin =
            |next: &&str| next.starts_with(|c: char| c.is_ascii_uppercase() || "*`[".contains(c));
        if word.ends_with(['.', '!', '?']) && words.peek().is_some_and(is_begin) {
            sentences.push(String::new());
        }
    }
    sentences.retain(|sentence| sentence.split(' ').count() >= LEAST_WORDS);
    sentences
}

fn vague_words(sentence: &str) -> usize {
    let text = sentence.to_ascii_lowercase();
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let count = |phrase: &&str| {
        let places = text.match_indices(*phrase);
        let whole = places.filter(|(at, _)| {
            let before = is_part(text[..*at].chars().next_back());
            let after = is_part(text[at + phrase.len()..].chars().next());
            !before && !after
        });
        whole.count()
    };
    VAGUE.iter().map(count).sum()
}

fn begins_with_pronoun(sentence: &str) -> bool {
    let first = sentence.split(|c: char| !c.is_alphanumeric()).next();
    first.is_some_and(|first| PRONOUNS.contains(&first))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source::parse(path, text)
    }

    #[test]
    fn sentences_are_those_of_whole_comments() {
        let text = "/// The sender takes room. It is\n/// refused without it.\n\
                    let a = 1; // Not a sentence of its own line.\n\
                    /// - An item of a list ends here\n/// - and the next one begins here\n\
                    /// # A heading is no sentence\n\
                    /// ```\n/// let it = that(of, one, more);\n/// ```\n\
                    // Two words.\n";
        assert_eq!(
            sentences(&source("crates/mpsc/src/a.rs", text)),
            [
                "The sender takes room.",
                "It is refused without it.",
                "- An item of a list ends here",
                "- and the next one begins here",
            ]
        );
    }

    #[test]
    fn vague_words_are_whole_and_phrases_count_once() {
        assert_eq!(
            vague_words("The sender takes the stone, thatched and besides."),
            0
        );
        assert_eq!(
            vague_words("That is to be what others, so many of them, want."),
            5
        );
        assert_eq!(vague_words("whichever of those"), 2);
        assert!(begins_with_pronoun("It waits."));
        assert!(!begins_with_pronoun("Items wait."));
    }

    #[test]
    fn a_crate_is_plain() {
        let mut findings = Vec::new();
        let plain = "/// The sender takes room, and waits.\n".repeat(3);
        check(&[source("crates/new/src/a.rs", &plain)], &mut findings);
        assert!(findings.is_empty(), "{findings:?}");
        let vague = "/// It takes what is left of that.\n";
        check(&[source("crates/new/src/a.rs", vague)], &mut findings);
        let found: Vec<_> = findings.iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("crates/new: 286 of 1,000 words"));
        assert!(found[1].starts_with("crates/new: 1000 of 1,000 sentences"));
    }
}
