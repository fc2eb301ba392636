//! The subjects of frames and beacons.
//!
//! Frames go to `g.<cluster>.<to>.<from>.<lane>`, beacons to `g.<cluster>.live.<from>`. The sender
//! is a part of the subject, so a broker that limits a user to its own subjects vouches for it.
//!
//! Names may have any bytes; a part of a subject may not. So all but letters, digits, `-` and `_`
//! is `%` and two digits. A name has a single such form, and no other is accepted: else a user
//! with the right for `%61lpha` would speak for `alpha`.

use async_nats::Subject;
use ganger_cluster::{Lane, NodeId};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The first part of all subjects.
const ROOT: &str = "g";

/// In a beacon's subject, the part in place of a receiver's name. Frames have a part more.
const LIVE: &str = "live";

/// The most subjects in the cache.
const MOST_READY: usize = 4096;

/// The subjects of a node in a cluster.
#[derive(Debug, Clone)]
pub(crate) struct Subjects {
    cluster: String,
    me: String,
}

impl Subjects {
    pub(crate) fn new(cluster: &str, me: &NodeId) -> Self {
        Self {
            cluster: escape(cluster),
            me: escape(me.as_str()),
        }
    }

    /// Returns the subject of the frames for this node.
    pub(crate) fn inbox(&self, lane: Lane) -> String {
        let Self { cluster, me } = self;
        format!("{ROOT}.{cluster}.{me}.*.{}", word(lane))
    }

    /// Returns the subject of the frames from this node to another.
    pub(crate) fn frames(&self, to: &NodeId, lane: Lane) -> String {
        let Self { cluster, me } = self;
        let to = escape(to.as_str());
        format!("{ROOT}.{cluster}.{to}.{me}.{}", word(lane))
    }

    /// Returns the subject of the beacons of this node.
    pub(crate) fn beacon(&self) -> String {
        let Self { cluster, me } = self;
        format!("{ROOT}.{cluster}.{LIVE}.{me}")
    }

    /// Returns the subject of the beacons of all nodes.
    pub(crate) fn beacons(&self) -> String {
        format!("{ROOT}.{}.{LIVE}.*", self.cluster)
    }

    /// Returns the subject of the broker's own answers. Within the node's rights.
    pub(crate) fn answers(&self) -> String {
        let Self { cluster, me } = self;
        format!("{ROOT}.{cluster}.{me}")
    }

    /// Returns the subject of a question without an answer. Within the node's rights.
    pub(crate) fn question(&self) -> String {
        let Self { cluster, me } = self;
        format!("{ROOT}.{cluster}.{me}.{me}.question")
    }

    /// Returns the subjects needed by the node, in words.
    pub(crate) fn rights(&self) -> String {
        let Self { cluster, me } = self;
        format!(
            "publish {ROOT}.{cluster}.*.{me}.* and {ROOT}.{cluster}.{LIVE}.{me}, subscribe \
             {ROOT}.{cluster}.{me}.*.* and {ROOT}.{cluster}.{LIVE}.*"
        )
    }

    /// Returns the sender of a frame for this node.
    pub(crate) fn sender_of_frame(&self, subject: &str, lane: Lane) -> Option<NodeId> {
        let [root, cluster, to, from, end] = parts(subject)?;
        let is_here = root == ROOT && cluster == self.cluster && to == self.me;
        self.other(is_here && end == word(lane), from)
    }

    /// Returns the sender of a beacon.
    pub(crate) fn sender_of_beacon(&self, subject: &str) -> Option<NodeId> {
        let [root, cluster, live, from] = parts(subject)?;
        let is_beacon = root == ROOT && cluster == self.cluster && live == LIVE;
        self.other(is_beacon, from)
    }

    fn other(&self, is_fine: bool, from: &str) -> Option<NodeId> {
        let name = (is_fine && from != self.me).then(|| unescape(from))??;
        NodeId::new(name).ok()
    }
}

/// The subjects of a lane, kept for the next frame.
#[derive(Debug)]
pub(crate) struct Ready {
    subjects: Subjects,
    lane: Lane,
    ready: BTreeMap<NodeId, Subject>,
}

impl Ready {
    pub(crate) fn new(subjects: Subjects, lane: Lane) -> Self {
        Self {
            subjects,
            lane,
            ready: BTreeMap::new(),
        }
    }

    pub(crate) fn get(&mut self, to: &NodeId) -> Subject {
        if let Some(subject) = self.ready.get(to) {
            return subject.clone();
        }
        if self.ready.len() >= MOST_READY {
            self.ready.clear();
        }
        let subject = Subject::from(self.subjects.frames(to, self.lane));
        self.ready.insert(to.clone(), subject.clone());
        subject
    }
}

/// Returns the last part of a lane's subjects.
pub(crate) fn word(lane: Lane) -> &'static str {
    match lane {
        Lane::Control => "control",
        Lane::Data => "data",
    }
}

/// Splits a subject with exactly so many parts.
fn parts<const N: usize>(subject: &str) -> Option<[&str; N]> {
    let mut parts = subject.split('.');
    let mut found = [""; N];
    for part in &mut found {
        *part = parts.next()?;
    }
    parts.next().is_none().then_some(found)
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

pub(crate) fn escape(name: &str) -> String {
    let mut escaped = String::with_capacity(name.len());
    for byte in name.bytes() {
        if is_plain(byte) {
            escaped.push(char::from(byte));
        } else {
            write!(escaped, "%{byte:02X}").expect("a String takes all");
        }
    }
    escaped
}

/// Returns the name, if this is its only form.
pub(crate) fn unescape(part: &str) -> Option<String> {
    let mut name = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((first, others)) = rest.split_first() {
        rest = others;
        if *first != b'%' {
            name.push(*first);
            continue;
        }
        let (digits, others) = rest.split_at_checked(2)?;
        rest = others;
        let digits = std::str::from_utf8(digits).ok()?;
        name.push(u8::from_str_radix(digits, 16).ok()?);
    }
    let name = String::from_utf8(name).ok()?;
    (escape(&name) == part).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> NodeId {
        NodeId::new(text).unwrap()
    }

    fn at(me: &str) -> Subjects {
        Subjects::new("shop", &name(me))
    }

    #[test]
    fn a_frame_is_for_its_receiver_from_its_sender() {
        for from in ["alpha", "a.b*c>d e", "straße", "%61lpha", "live", "*"] {
            let subject = at(from).frames(&name("beta"), Lane::Data);
            assert_eq!(subject.split('.').count(), 5, "{subject}");
            assert!(!subject.contains([' ', '*', '>']), "{subject}");
            let sender = at("beta").sender_of_frame(&subject, Lane::Data);
            assert_eq!(sender, Some(name(from)));
            assert_eq!(at("beta").sender_of_frame(&subject, Lane::Control), None);
            assert_eq!(at("gamma").sender_of_frame(&subject, Lane::Data), None);
            assert_eq!(at("beta").sender_of_beacon(&subject), None);
        }
        assert_eq!(at("a.b").inbox(Lane::Data), "g.shop.a%2Eb.*.data");
    }

    #[test]
    fn a_beacon_tells_its_sender_and_the_own_is_none() {
        let subject = at("live").beacon();
        assert_eq!(subject, "g.shop.live.live");
        assert_eq!(at("beta").sender_of_beacon(&subject), Some(name("live")));
        assert_eq!(at("live").sender_of_beacon(&subject), None);
        let elsewhere = Subjects::new("shop2", &name("beta"));
        assert_eq!(elsewhere.sender_of_beacon(&subject), None);
    }

    /// Refuses a forged name: the right for another form of a name is no right for the name.
    #[test]
    fn a_name_has_a_single_form() {
        for forged in ["%61lpha", "a%2eb", "a%2", "a%", "a%zz", "a%+1", "", "%FF"] {
            let subject = format!("g.shop.beta.{forged}.data");
            let sender = at("beta").sender_of_frame(&subject, Lane::Data);
            assert_eq!(sender, None, "{forged}");
        }
    }

    #[test]
    fn the_longest_names_fit_the_line_of_a_broker() {
        let longest = name(&"é".repeat(127));
        let subjects = Subjects::new(&"é".repeat(127), &longest);
        let subject = subjects.frames(&longest, Lane::Control);
        // A broker takes lines of 4,096 bytes; MSG has the subject, a number and a length.
        assert!(subject.len() < 4000, "{}", subject.len());
    }

    #[test]
    fn subjects_are_kept_within_a_bound() {
        let mut ready = Ready::new(at("alpha"), Lane::Data);
        for number in 0..=MOST_READY {
            ready.get(&name(&number.to_string()));
        }
        assert_eq!(ready.ready.len(), 1);
        let subject = ready.get(&name("beta"));
        assert_eq!(&*subject, "g.shop.beta.alpha.data");
        assert_eq!(ready.get(&name("beta")), subject);
    }
}
