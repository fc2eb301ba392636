//! Turns addresses into functions, and these into text.

use crate::sampler::{Function, Functions};
use std::ffi::c_void;
use std::fmt::Write;

/// Returns a line for each function, the innermost first: its name, and the place of its code, if
/// known. Ends before the first function whose name contains an element of `ends`.
///
/// Functions inlined into a frame have their own lines only with debug information.
pub(super) fn text(frames: &[u64], ends: &[&str]) -> String {
    let mut text = String::new();
    for &address in frames {
        let Functions { inner, is_end } = functions(address, ends);
        for function in inner {
            let separator = if text.is_empty() { "" } else { "\n" };
            let _ = write!(text, "{separator}{function}");
        }
        if is_end {
            break;
        }
    }
    text
}

/// Returns the function at the address, after the functions inlined into it. Ends before the first
/// function whose name contains an element of `ends`.
pub(super) fn functions(address: u64, ends: &[&str]) -> Functions {
    let mut functions = Functions::default();
    let mut is_known = false;
    // `resolve` looks up the address before, so that a return address means its call.
    backtrace::resolve((address + 1) as *mut c_void, |symbol| {
        let Some(name) = symbol.name() else { return };
        is_known = true;
        // Formats the name without its hash.
        let name = format!("{name:#}");
        functions.is_end |= ends.iter().any(|part| name.contains(part));
        if !functions.is_end {
            functions.inner.push(Function {
                name,
                file: symbol.filename().map(|it| it.display().to_string()),
                line: symbol.lineno(),
            });
        }
    });
    if !is_known {
        functions.inner.push(Function {
            name: format!("{address:#x}"),
            file: None,
            line: None,
        });
    }
    functions
}
