//! Counts equal a plain counter's.

use super::program::check;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use tempfile::TempDir;

/// The size of the program's reads.
const CHUNK: usize = 65_536;

/// Numbers that look random and are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn letters(&mut self, count: usize) -> Vec<u8> {
        let mut letter = || self.pick(b"abcdefghijklmnopqrstuvwxyz");
        (0..count).map(|_| letter()).collect()
    }
}

/// Creates a tree with these files.
fn tree(files: &[(&str, Vec<u8>)]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    directory
}

fn check_tree(files: &[(&str, Vec<u8>)]) {
    let directory = tree(files);
    for workers in [1, 4] {
        check(&[directory.path().to_owned()], workers);
    }
}

#[test]
fn the_crates_own_tree() {
    let root = env!("CARGO_MANIFEST_DIR");
    let entries = fs::read_dir(root).unwrap().map(|entry| entry.unwrap());
    let paths: Vec<PathBuf> = entries
        .filter(|entry| {
            let name = entry.file_name().into_string().unwrap();
            !name.starts_with('.') && name != "target"
        })
        .map(|entry| entry.path())
        .collect();
    let ended = check(&paths, 2);
    assert!(ended.number("files") > 30);
}

#[test]
fn empty_files_and_no_files() {
    check_tree(&[]);
    check_tree(&[
        ("empty", vec![]),
        ("a/empty", vec![]),
        ("a/b/newline", b"\n".to_vec()),
        ("a/b/word", b"word".to_vec()),
    ]);
}

#[test]
fn files_that_end_at_and_around_a_chunks_end() {
    let text = "abc ".repeat(CHUNK).into_bytes();
    let lengths = [CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 3 * CHUNK - 2];
    let files = lengths.map(|length| (length.to_string(), text[..length].to_vec()));
    let files: Vec<_> = files
        .iter()
        .map(|(name, text)| (name.as_str(), text.clone()))
        .collect();
    check_tree(&files);
}

#[test]
fn words_and_characters_across_chunk_borders() {
    let across: [&[u8]; 9] = [
        b" straddling ",
        " żółć ".as_bytes(),
        "ΟΔΥΣΣΕΥΣ ".as_bytes(),
        " 漢字".as_bytes(),
        "x🦀y".as_bytes(),
        b"ab\xe2\x82cd",
        b"ab\xf0\x9f\xa6\xf0\x9f\xa6\x80",
        b"a\xff\xfe\x80b",
        b"a\xed\xa0\x80b",
    ];
    let mut contents = Vec::new();
    for text in across {
        for before in 1..text.len() {
            let mut content = Vec::new();
            for border in [CHUNK, 2 * CHUNK] {
                let filler = b"filler, ".iter().cycle();
                content.extend(filler.take(border - before - content.len()));
                content.extend_from_slice(text);
            }
            contents.push((contents.len().to_string(), content));
        }
    }
    let long_word = ("long".to_owned(), "Long".repeat(CHUNK).into_bytes());
    contents.push(long_word);
    let files: Vec<_> = contents
        .iter()
        .map(|(name, text)| (name.as_str(), text.clone()))
        .collect();
    check_tree(&files);
}

#[test]
fn binary_files_have_a_nul_in_their_first_8_kib() {
    let with_nul_at = |at: usize| {
        let mut content = b"text ".repeat(4000);
        content[at] = 0;
        content
    };
    let directory = tree(&[
        ("0", with_nul_at(0)),
        ("8191", with_nul_at(8191)),
        ("8192", with_nul_at(8192)),
        ("short", b"a\0b".to_vec()),
    ]);
    let ended = check(&[directory.path().to_owned()], 2);
    assert_eq!((ended.number("files"), ended.number("skipped")), (1, 3));
}

#[test]
fn invalid_utf_8() {
    let mut numbers = Numbers(0x5eed);
    let pieces: [&[u8]; 12] = [
        b"\xff",
        b"\xc3",
        b"\xe2\x82",
        b"\xf0\x9f\xa6",
        b"\x80",
        b"\xed\xa0\x80",
        b"a",
        b"Word",
        b" ",
        "é".as_bytes(),
        "€".as_bytes(),
        "🦀".as_bytes(),
    ];
    let files: Vec<_> = (0..8)
        .map(|number| {
            let length = numbers.below(200_000);
            let mut content = Vec::new();
            while content.len() < length {
                content.extend_from_slice(numbers.pick(&pieces));
            }
            (number.to_string(), content)
        })
        .collect();
    let files: Vec<_> = files
        .iter()
        .map(|(name, text)| (name.as_str(), text.clone()))
        .collect();
    check_tree(&files);
}

#[test]
fn twenty_thousand_small_files() {
    let directory = tempfile::tempdir().unwrap();
    let mut numbers = Numbers(20_000);
    for folder in 0..100 {
        let folder = directory.path().join(folder.to_string());
        fs::create_dir(&folder).unwrap();
        for file in 0..200 {
            let mut content = Vec::new();
            for _ in 0..numbers.below(60) {
                content.extend_from_slice(numbers.pick(&["Common", "words", "and"]).as_bytes());
                content.push(numbers.pick(b" \n-1"));
                if numbers.below(10) == 0 {
                    content.extend(numbers.letters(4));
                    content.push(b' ');
                }
            }
            fs::write(folder.join(file.to_string()), content).unwrap();
        }
    }
    for workers in [1, 4] {
        let ended = check(&[directory.path().to_owned()], workers);
        assert_eq!(ended.number("files"), 20_000);
    }
}

#[test]
fn a_large_file_that_is_not_held_in_memory() {
    const LENGTH: usize = 50_000_000;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("large.txt");
    let mut numbers = Numbers(200);
    let vocabulary: Vec<Vec<u8>> = (0..5_000)
        .map(|_| {
            let length = 1 + numbers.below(12);
            numbers.letters(length)
        })
        .collect();
    let separators: [&[u8]; 8] = [
        b" ",
        b" ",
        b" ",
        b", ",
        b".\n",
        b"-",
        "—".as_bytes(),
        b" The ",
    ];
    let mut file = BufWriter::new(File::create(&path).unwrap());
    let mut length = 0;
    while length < LENGTH {
        let word = &vocabulary[numbers.below(vocabulary.len())];
        let separator = numbers.pick(&separators);
        file.write_all(word).unwrap();
        file.write_all(separator).unwrap();
        length += word.len() + separator.len();
    }
    drop(file);
    let ended = check(&[path], 2);
    if cfg!(target_os = "linux") {
        let line = ended
            .stderr
            .lines()
            .find_map(|line| line.strip_prefix("peak memory: "));
        let megabytes: f64 = line.unwrap().strip_suffix(" MB").unwrap().parse().unwrap();
        assert!(megabytes < 30.0, "{megabytes} MB of memory");
    }
}
