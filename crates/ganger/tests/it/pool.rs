//! The example of a pool: each job is carried out, though workers panic.

#[path = "../../examples/pool.rs"]
#[allow(dead_code, reason = "`main` is for those that run it")]
mod example;

// pins: W1, W3
#[test]
fn each_number_is_squared() {
    let expected: u64 = (1..=500).map(|number: u64| number * number).sum();
    assert_eq!(example::sum_of_squares(3, 500).unwrap(), expected);
}
