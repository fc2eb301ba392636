//! Turns addresses into text.

use std::ffi::c_void;
use std::fmt::Write;

/// Returns a line for each function, the innermost first: its name, and the place of its code, if
/// known. Ends before the first function whose name contains an element of `ends`.
///
/// Functions inlined into a frame have their own lines only with debug information.
pub(super) fn text(frames: &[u64], ends: &[&str]) -> String {
    let mut text = String::new();
    for &address in frames {
        let lines = lines(address);
        let own = lines
            .iter()
            .position(|line| ends.iter().any(|part| line.contains(part)));
        for line in &lines[..own.unwrap_or(lines.len())] {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(line);
        }
        if own.is_some() {
            break;
        }
    }
    text
}

/// Returns lines for the function at the address, and for the functions into which it is inlined.
fn lines(address: u64) -> Vec<String> {
    let mut lines = Vec::new();
    // `resolve` looks up the address before, so that a return address means its call.
    backtrace::resolve((address + 1) as *mut c_void, |symbol| {
        let Some(name) = symbol.name() else { return };
        // Formats the name without its hash.
        let mut line = format!("{name:#}");
        if let (Some(file), Some(number)) = (symbol.filename(), symbol.lineno()) {
            let _ = write!(line, " at {}:{number}", file.display());
        }
        lines.push(line);
    });
    if lines.is_empty() {
        lines.push(format!("{address:#x}"));
    }
    lines
}
