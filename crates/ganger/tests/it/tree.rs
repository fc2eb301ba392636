//! The example of a supervision tree: how it heals, and how it prints itself.

#[path = "../../examples/tree.rs"]
#[allow(dead_code, reason = "`main` is for those that run it")]
mod example;

use ganger::prelude::*;

// pins: S1, S9, S13
#[test]
fn the_tree_heals_and_prints_itself() {
    let scheduler = Scheduler::start_default().unwrap();
    let tree = example::shop().start(&scheduler).unwrap();
    let text = "shop (one for one)\n├─ till runs.\n├─ stock runs:\n│  ├─ shelf runs.\n│  └─ \
                scale runs.\n└─ audit runs.";
    assert_eq!(tree.to_string(), text);
    let till = tree.child("till");
    let (stock, scale) = (tree.child("stock"), tree.child("stock/scale"));
    for child in ["till", "audit", "stock/shelf"] {
        example::hurt(&tree, child).unwrap();
    }
    assert_eq!((tree.child("till"), tree.child("stock")), (till, stock));
    assert_ne!(tree.child("stock/scale"), scale);
    example::hurt(&tree, "stock/scale").unwrap();
    assert_ne!(tree.child("stock"), stock);
    let restarts: Vec<_> = tree.children().iter().map(|it| it.restarts).collect();
    assert_eq!(restarts, [1, 1, 1]);
    assert!(
        tree.to_string()
            .contains("till runs, restarted once, last failed: nothing to add to 0.")
    );
    assert!(matches!(tree.stop().reason, ExitReason::Cancelled(_)));
}
