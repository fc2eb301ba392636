//! The lock-free crates take their atomics from `ganger_sync`: loom can't see other atomics.

use super::Finding;
use super::source::Source;

const LOCK_FREE: [&str; 5] = ["deque", "nodes", "mpsc", "ring", "sched"];

pub(super) fn check(source: &Source, findings: &mut Vec<Finding>) {
    if !source
        .product_crate()
        .is_some_and(|name| LOCK_FREE.contains(&name))
    {
        return;
    }
    for (number, line) in source.numbered() {
        for library in ["std", "core"] {
            let module = format!("{library}::sync::");
            let nested = line.code.split_once(&module).is_some_and(|(_, rest)| {
                rest.starts_with("atomic") || rest.starts_with('{') && rest.contains("atomic")
            });
            if nested {
                let what = format!("{module}atomic instead of ganger_sync::atomic");
                findings.push(Finding::new(source, number, what));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    const TEXT: &str = "use std::sync::Arc;\nuse std::sync::atomic::AtomicBool;\n\
                        use ganger_sync::atomic::AtomicU32;\nuse std::sync::{Arc, atomic};\n\
                        // std::sync::atomic\nlet x = core::sync::atomic::AtomicU8::new(0);\n";

    #[test]
    fn foreign_atomics_are_found() {
        let found = found(check, "crates/deque/src/a.rs", TEXT);
        assert_eq!(
            found,
            [
                "2: std::sync::atomic instead of ganger_sync::atomic",
                "4: std::sync::atomic instead of ganger_sync::atomic",
                "6: core::sync::atomic instead of ganger_sync::atomic",
            ]
        );
    }

    #[test]
    fn other_crates_and_tests_may_have_them() {
        for path in [
            "crates/sync/src/atomic.rs",
            "crates/deque/tests/a.rs",
            "xtask/src/a.rs",
        ] {
            assert!(found(check, path, TEXT).is_empty(), "{path}");
        }
    }
}
