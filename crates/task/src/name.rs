//! The name of a task, for people: the name of its function.
//!
//! A task is started with a function or with a closure. A closure has no name of its own. A closure
//! that only calls an async function returns the function's future, which has the function's name.

const CLOSURE: &str = "::{{closure}}";

/// Returns the name of a task's function, from the type names of the function and its future.
pub(crate) fn function(body: &'static str, future: &'static str) -> &'static str {
    let Some(wrapper) = body.strip_suffix(CLOSURE) else {
        return body;
    };
    // A closure of this crate is around the user's function, whose types are the closure's last
    // parameters.
    if wrapper.contains("ganger_task::")
        && let Some((body, future)) = last_parameters(wrapper.trim_end_matches(CLOSURE))
    {
        return function(body, future);
    }
    match future.strip_suffix(CLOSURE) {
        Some(called) if !future.starts_with(body) => called,
        _ => body,
    }
}

/// Returns the last two parameters of a function.
fn last_parameters(name: &'static str) -> Option<(&'static str, &'static str)> {
    let list = name.strip_suffix('>')?;
    let (mut depth, mut commas) = (0, Vec::new());
    for (at, byte) in list.bytes().enumerate().rev() {
        match byte {
            // An arrow is not a bracket.
            b'>' if !list[..at].ends_with('-') => depth += 1,
            b')' | b']' | b'}' => depth += 1,
            b'<' if depth == 0 => {
                commas.push(at);
                break;
            }
            b'<' | b'(' | b'[' | b'{' => depth -= 1,
            b',' if depth == 0 => commas.push(at),
            _ => {}
        }
    }
    let [second, first, ..] = commas[..] else {
        return None;
    };
    Some((list[first + 1..second].trim(), list[second + 1..].trim()))
}

#[cfg(test)]
mod tests {
    use super::function;

    #[test]
    fn a_task_has_the_name_of_its_function() {
        for (body, future, expected) in [
            ("shop::serve", "shop::serve::{{closure}}", "shop::serve"),
            // A closure with a call of the function, an async closure, and a closure with a future
            // in a box.
            (
                "shop::main::{{closure}}",
                "shop::serve<u8>::{{closure}}",
                "shop::serve<u8>",
            ),
            (
                "shop::main::{{closure}}",
                "shop::main::{{closure}}::{{closure}}",
                "shop::main::{{closure}}",
            ),
            (
                "shop::main::{{closure}}",
                "core::pin::Pin<alloc::boxed::Box<dyn core::future::Future>>",
                "shop::main::{{closure}}",
            ),
        ] {
            assert_eq!(function(body, future), expected);
        }
    }

    #[test]
    fn what_this_crate_wraps_keeps_its_name() {
        for (types, expected) in [
            ("u32, shop::serve, shop::serve::{{closure}}", "shop::serve"),
            (
                "(u8, u8), shop::main::{{closure}}, shop::Shop<(u8, u8)>::serve::{{closure}}",
                "shop::Shop<(u8, u8)>::serve",
            ),
            (
                "fn(u8) -> u8, shop::Till<fn(u8) -> u8>::run, x::{{closure}}",
                "shop::Till<fn(u8) -> u8>::run",
            ),
        ] {
            let own = "<ganger_sched::Handle as ganger_task::answers::TaskExt>::call_task";
            let body = format!("{own}<{types}>::{{{{closure}}}}").leak();
            let future = format!("{body}::{{{{closure}}}}").leak();
            assert_eq!(function(body, future), expected);
        }
    }
}
