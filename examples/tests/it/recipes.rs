//! The page of tokio's libraries shows parts of the programs.

use std::fs;

const PROGRAMS: [&str; 2] = ["baskets.rs", "grpc/main.rs"];

/// Returns whether the program has the lines, in this order.
fn has(program: &str, lines: &[&str]) -> bool {
    let mut rest = program;
    lines.iter().all(|line| match rest.split_once(line) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

#[test]
fn each_part_on_the_page_is_in_a_program() {
    let here = env!("CARGO_MANIFEST_DIR");
    let page = fs::read_to_string(format!("{here}/../docs/guide/tokio.md")).unwrap();
    let programs = PROGRAMS.map(|it| fs::read_to_string(format!("{here}/{it}")).unwrap());
    let parts: Vec<_> = page.split("```rust,ignore\n").skip(1).collect();
    assert!(!parts.is_empty());
    for part in parts {
        let (part, _) = part.split_once("```").unwrap();
        let lines: Vec<_> = part.lines().map(str::trim).collect();
        assert!(programs.iter().any(|it| has(it, &lines)), "{part}");
    }
}
