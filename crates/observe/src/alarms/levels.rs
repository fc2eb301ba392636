//! When an alarm is raised, and when it ends.
//!
//! **Problem.** A value going up and down around a limit would raise its alarm again and again.
//!
//! **Protocol.** A rule has two limits. A value at `on` or above for `looks` looks in a row raises
//! the alarm. A value below `off` for `calm` looks in a row ends the alarm, and so does the end of
//! the value's process. Between the two limits nothing changes. So each alarm is raised once and
//! ends once.

use std::collections::HashMap;
use std::hash::Hash;

/// The limits of a kind of alarm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) on: u64,
    pub(super) off: u64,
    /// At least 1.
    pub(super) looks: u32,
    /// At least 1.
    pub(super) calm: u32,
}

/// A change of an alarm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Edge {
    Raised,
    Ended,
}

/// A value's place between the limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Level {
    is_raised: bool,
    /// Looks in a row beyond the limit of the next change.
    beyond: u32,
}

impl Level {
    fn look(&mut self, rule: Rule, value: Option<u64>) -> Option<Edge> {
        let needed = match (self.is_raised, value) {
            (true, None) => 1,
            (true, Some(value)) if value < rule.off => rule.calm,
            (false, Some(value)) if value >= rule.on => rule.looks,
            _ => {
                self.beyond = 0;
                return None;
            }
        };
        self.beyond += 1;
        if self.beyond < needed {
            return None;
        }
        self.beyond = 0;
        self.is_raised = !self.is_raised;
        Some(if self.is_raised {
            Edge::Raised
        } else {
            Edge::Ended
        })
    }
}

/// The most raised alarms of a kind at a time. Further values wait until an alarm ends.
const MOST: usize = 100;

/// The levels of a kind's values, by their keys.
#[derive(Debug)]
pub(super) struct Levels<K> {
    rule: Rule,
    levels: HashMap<K, Level>,
}

impl<K: Copy + Eq + Hash + Ord> Levels<K> {
    pub(super) fn new(rule: Rule) -> Self {
        Self {
            rule: Rule {
                off: rule.off.min(rule.on),
                looks: rule.looks.max(1),
                calm: rule.calm.max(1),
                ..rule
            },
            levels: HashMap::new(),
        }
    }

    pub(super) fn rule(&self) -> Rule {
        self.rule
    }

    /// Takes the values of a look, and gives the changes in the order of their keys.
    pub(super) fn look(&mut self, values: &HashMap<K, u64>) -> Vec<(K, Edge, u64)> {
        let mut changes = Vec::new();
        let mut raised = self.levels.values().filter(|it| it.is_raised).count();
        let mut keys: Vec<K> = self.levels.keys().copied().collect();
        let is_new = |key: &&K| !self.levels.contains_key(key);
        let is_high = |(key, value): (&K, &u64)| (*value >= self.rule.on).then_some(*key);
        keys.extend(values.iter().filter_map(is_high).filter(|key| is_new(&key)));
        keys.sort_unstable();
        for key in keys {
            let value = values.get(&key).copied();
            let level = self.levels.entry(key).or_default();
            if !level.is_raised && raised == MOST {
                continue;
            }
            if let Some(edge) = level.look(self.rule, value) {
                match edge {
                    Edge::Raised => raised += 1,
                    Edge::Ended => raised -= 1,
                }
                changes.push((key, edge, value.unwrap_or_default()));
            }
        }
        self.levels.retain(|_, level| *level != Level::default());
        changes
    }
}

/// By how much values have grown since they last fell.
#[derive(Debug)]
pub(super) struct Growth<K>(HashMap<K, Grows>);

#[derive(Debug)]
struct Grows {
    base: u64,
    last: u64,
}

impl<K> Default for Growth<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Copy + Eq + Hash> Growth<K> {
    /// Takes the values of a look; gives their growths. Absent values are forgotten.
    pub(super) fn look(&mut self, values: &HashMap<K, u64>) -> HashMap<K, u64> {
        self.0.retain(|key, _| values.contains_key(key));
        let growth = |(&key, &value): (&K, &u64)| {
            let begin = || Grows {
                base: value,
                last: value,
            };
            let it = self.0.entry(key).or_insert_with(begin);
            if value < it.last {
                it.base = value;
            }
            it.last = value;
            (key, value - it.base)
        };
        values.iter().map(growth).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Returns whether the alarm is raised after these values: the plainest model, which looks at
    /// the whole past again for each value.
    fn is_raised(rule: Rule, values: &[Option<u64>]) -> bool {
        let mut is_raised = false;
        let mut since = 0;
        for end in 1..=values.len() {
            let new = &values[since..end];
            let last = |count: u32| new.len().checked_sub(count as usize).map(|at| &new[at..]);
            let high = |it: &Option<u64>| it.is_some_and(|it| it >= rule.on);
            let low = |it: &Option<u64>| it.is_none_or(|it| it < rule.off);
            let changes = if is_raised {
                new.last().is_some_and(Option::is_none)
                    || last(rule.calm).is_some_and(|it| it.iter().all(low))
            } else {
                last(rule.looks).is_some_and(|it| it.iter().all(high))
            };
            if changes {
                is_raised = !is_raised;
                since = end;
            }
        }
        is_raised
    }

    fn rules() -> impl Strategy<Value = Rule> {
        (0..6_u64, 0..6_u64, 1..4_u32, 1..4_u32).prop_map(|(a, b, looks, calm)| Rule {
            on: a.max(b),
            off: a.min(b),
            looks,
            calm,
        })
    }

    // pins: V16
    #[test]
    fn alarms_are_raised_and_end_as_a_plain_model_says_each_once() {
        let config = ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::default()
        };
        let value = || prop::option::weighted(0.9, 0..7_u64);
        proptest!(config, |(rule in rules(), looks in vec([value(), value(), value()], 0..40))| {
            let mut levels = Levels::new(rule);
            let mut raised = [false; 3];
            for end in 1..=looks.len() {
                let values = (0..).zip(looks[end - 1]);
                let values = values.filter_map(|(key, it)| Some((key, it?))).collect();
                for (key, edge, _) in levels.look(&values) {
                    let key: usize = key;
                    // Never twice in a row.
                    prop_assert_eq!(edge == Edge::Ended, raised[key]);
                    raised[key] = edge == Edge::Raised;
                }
                for (key, is) in raised.into_iter().enumerate() {
                    let of_key: Vec<_> = looks[..end].iter().map(|it| it[key]).collect();
                    prop_assert_eq!(is, is_raised(rule, &of_key), "{} after {:?}", key, of_key);
                }
            }
        });
    }

    // pins: V16
    #[test]
    fn so_many_alarms_of_a_kind_are_raised_and_nothing_is_kept_of_calm_values() {
        let rule = Rule {
            on: 5,
            off: 3,
            looks: 1,
            calm: 1,
        };
        let mut levels = Levels::new(rule);
        let all: HashMap<u64, u64> = (0..1_000).map(|key| (key, 9)).collect();
        let changes = levels.look(&all);
        assert!(changes.iter().map(|it| it.0).eq(0..100));
        assert_eq!(levels.levels.len(), 100);
        let changes = levels.look(&all.into_iter().filter(|it| it.0 != 7).collect());
        let expected = [(7, Edge::Ended, 0), (100, Edge::Raised, 9)];
        assert_eq!(changes, expected);
        assert_eq!(levels.look(&HashMap::new()).len(), 100);
        assert!(levels.levels.is_empty());
    }

    #[test]
    fn growth_is_since_the_last_fall() {
        let mut growth = Growth::default();
        let mut look = |value: Option<u64>| {
            let values = value.map(|it| ("key", it)).into_iter().collect();
            growth.look(&values).get("key").copied()
        };
        let seen = [5, 7, 7, 20, 19, 30].map(|it| look(Some(it)));
        assert_eq!(seen, [0, 2, 2, 15, 0, 11].map(Some));
        assert_eq!((look(None), look(Some(90))), (None, Some(0)));
    }
}
