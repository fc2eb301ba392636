//! How plain the comments are: a number for each crate, which may only fall.
//!
//! Two shares are counted over the sentences of all comments: words that name no role, such as
//! "that" and "those", and sentences that begin with a pronoun. A crate that the list does not name
//! has to be as plain as comparable projects are: tokio, rayon and nexosim have 2.0 to 2.9 vague
//! words in 100, and 1.5 to 3.2 % of pronouns.

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

/// How much better than its number a crate may be, until the list has a new number.
const SLACK: usize = 5;

/// The most vague words in 1,000, and the most pronouns at the begin of 1,000 sentences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Limit {
    vague: usize,
    pronouns: usize,
}

/// Where the numbers are.
const LIST: &str = "xtask/src/tidy/prose.rs";

/// For a crate without a number of its own, which is as plain as its field.
const NEW: Limit = limit(30, 40);

const fn limit(vague: usize, pronouns: usize) -> Limit {
    Limit { vague, pronouns }
}

/// The crates that are not as plain yet: none at the moment.
const LIMITS: [(&str, Limit); 0] = [];

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

    /// In thousandths, rounded up.
    fn shares(&self) -> Limit {
        let share = |part: usize, whole: usize| (1_000 * part).div_ceil(whole.max(1));
        limit(
            share(self.vague, self.words),
            share(self.pronouns, self.sentences),
        )
    }
}

/// Checks the comments of each crate beside its number.
pub(super) fn check(sources: &[Source], findings: &mut Vec<Finding>) {
    let mut counts: BTreeMap<&str, Count> = BTreeMap::new();
    for source in sources {
        if let Some(folder) = folder(&source.path) {
            counts.entry(folder).or_default().add(source);
        }
    }
    for (folder, count) in &counts {
        let listed = LIMITS.iter().find(|(name, _)| name == folder);
        let limit = listed.map_or(NEW, |(_, limit)| *limit);
        let shares = count.shares();
        let mut find = |name: &str, share: usize, limit: usize, is_listed: bool| {
            let what = if share > limit {
                format!("{share} {name}; at most {limit}: name the role that each stands for")
            } else if is_listed && share + SLACK < limit {
                format!("{share} {name}, and {LIST} allows {limit}: write {share}")
            } else {
                return;
            };
            findings.push(Finding {
                path: (*folder).to_owned(),
                line: None,
                what,
            });
        };
        let is_listed = listed.is_some();
        let vague = "vague words in 1,000 of its comments";
        find(vague, shares.vague, limit.vague, is_listed);
        let pronouns = "of 1,000 sentences of its comments begin with a pronoun";
        find(pronouns, shares.pronouns, limit.pronouns, is_listed);
    }
}

/// The crate of a file, as the list names it.
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
    fn a_crate_without_a_number_is_plain() {
        let mut findings = Vec::new();
        let plain = "/// The sender takes room, and waits.\n".repeat(3);
        check(&[source("crates/new/src/a.rs", &plain)], &mut findings);
        assert!(findings.is_empty(), "{findings:?}");
        let vague = "/// It takes what is left of that.\n";
        check(&[source("crates/new/src/a.rs", vague)], &mut findings);
        let found: Vec<_> = findings.iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0].starts_with("crates/new: 286 vague words"),
            "{found:?}"
        );
        assert!(
            found[1].starts_with("crates/new: 1000 of 1,000 sentences"),
            "{found:?}"
        );
    }

    #[test]
    fn a_crate_has_the_name_of_its_folder() {
        assert_eq!(folder("crates/sched/src/a.rs"), Some("crates/sched"));
        assert_eq!(folder("xtask/src/main.rs"), Some("xtask"));
        assert_eq!(folder("build.rs"), None);
    }
}
