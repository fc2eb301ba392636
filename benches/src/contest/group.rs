//! Groups of workloads, which have names.

use std::fmt;

/// No group has this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownGroup {
    /// The name.
    pub name: String,
    /// All of them.
    pub known: Vec<&'static str>,
}

/// Returns the group with a name.
pub(crate) fn find<G: Copy>(
    name: &str,
    groups: &[G],
    name_of: impl Fn(G) -> &'static str,
) -> Result<G, UnknownGroup> {
    let mut groups = groups.iter().copied();
    let known = groups.clone().map(&name_of);
    groups
        .find(|&group| name_of(group) == name)
        .ok_or_else(|| UnknownGroup {
            name: name.to_owned(),
            known: known.collect(),
        })
}

impl fmt::Display for UnknownGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, known } = self;
        write!(
            f,
            "there is no group `{name}`; there are {}",
            known.join(", ")
        )
    }
}

impl std::error::Error for UnknownGroup {}
