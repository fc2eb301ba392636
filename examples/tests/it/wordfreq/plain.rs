//! The definition of the counts, as a single-threaded program would put it.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// The counts of a plain counter.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) files: u64,
    pub(crate) skipped: u64,
    pub(crate) bytes: u64,
    pub(crate) words: HashMap<String, u64>,
}

impl Counts {
    /// Counts all files at and below `path`. All must be readable.
    pub(crate) fn add_path(&mut self, path: &Path) {
        let metadata = fs::symlink_metadata(path).unwrap();
        if metadata.is_dir() {
            for entry in fs::read_dir(path).unwrap() {
                self.add_path(&entry.unwrap().path());
            }
        } else if metadata.is_file() {
            self.add_bytes(&fs::read(path).unwrap());
        }
    }

    fn add_bytes(&mut self, bytes: &[u8]) {
        if bytes.iter().take(8192).any(|&byte| byte == 0) {
            self.skipped += 1;
            return;
        }
        self.files += 1;
        self.bytes += bytes.len() as u64;
        let text = String::from_utf8_lossy(bytes);
        for word in text.split(|c: char| !c.is_alphabetic()) {
            if !word.is_empty() {
                *self.words.entry(word.to_lowercase()).or_insert(0) += 1;
            }
        }
    }

    /// Returns the most frequent words first; equally frequent words are in alphabetical order.
    pub(crate) fn ranked(&self) -> Vec<(String, u64)> {
        let mut ranked: Vec<_> = self.words.clone().into_iter().collect();
        ranked.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        ranked
    }
}
