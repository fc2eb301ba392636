//! The README's test command: the gate runs the same command, so the two can't drift apart.

use crate::Failure;
use crate::cargo::Cargo;
use crate::root::root;
use std::fs;

/// Characters that a shell would not pass on as they are.
const SPECIAL: &[char] = &[
    '"', '\'', '\\', '$', '|', '&', ';', '<', '>', '*', '(', ')', '`',
];

/// The README's test command.
pub(crate) fn test_command() -> Result<Cargo, Failure> {
    let path = root().join("README.md");
    let readme = fs::read_to_string(&path)
        .map_err(|error| format!("no test command: can't read {}: {error}", path.display()))?;
    let line = find(&readme).ok_or(
        "README.md has no test command: no fenced block in it has a line that starts with `cargo \
         test`",
    )?;
    if line.contains(SPECIAL) {
        return Err(format!("README.md's test command needs a shell: `{line}`").into());
    }
    Ok(Cargo::new(line.split_whitespace().skip(1)))
}

/// Returns the first line in a fenced block that starts with `cargo test`, without its comment.
fn find(readme: &str) -> Option<&str> {
    let mut fenced = false;
    for line in readme.lines().map(str::trim) {
        if line.starts_with("```") {
            fenced = !fenced;
        } else if fenced && (line == "cargo test" || line.starts_with("cargo test ")) {
            return line.split(" #").next().map(str::trim);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_found_in_a_fenced_block_only() {
        let readme = "Run\ncargo test --no\n```sh\ncargo build\ncargo testing\n```\ncargo test\n\
                      ```sh\n  cargo test --workspace --all-features   # two minutes\n```\n";
        assert_eq!(find(readme), Some("cargo test --workspace --all-features"));
        assert_eq!(find("cargo test\n```\nls\n```"), None);
        assert_eq!(find("```\ncargo test\n```"), Some("cargo test"));
    }
}
