//! The README's test command: the gate runs the same command, so the two can't drift apart.

use crate::Failure;
use crate::cargo::Cargo;
use crate::root::root;
use std::fs;

/// Characters with a meaning for a shell.
const SPECIAL: [char; 8] = ['"', '\'', '\\', '$', '|', '&', ';', '`'];

/// Returns the README's test command, without its comment: the first line in a fenced block that
/// starts with `cargo test`.
pub(crate) fn test_command() -> Result<Cargo, Failure> {
    let readme = fs::read_to_string(root().join("README.md"))?;
    let blocks = readme.split("```").skip(1).step_by(2);
    let mut lines = blocks.flat_map(str::lines).map(str::trim);
    let line = lines.find(|line| line.starts_with("cargo test "));
    let line = line.ok_or("README.md has no line `cargo test` in a fenced block")?;
    let command = line.split(" #").next().unwrap_or_default().trim();
    if command.contains(SPECIAL) {
        return Err(format!("README.md's test command needs a shell: `{command}`").into());
    }
    Ok(Cargo::new(command.trim_start_matches("cargo")))
}
