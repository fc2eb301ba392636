//! The list of nodes that a node tells to its peers.

use super::packets::{put_text, take_text};
use ganger_cluster::NodeId;

/// The most nodes in a list.
pub(crate) const MOST_NODES: usize = 100;

/// A node, and where other nodes reach it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NodeAt {
    pub(crate) name: NodeId,
    pub(crate) address: Box<str>,
}

/// Encodes the body of a frame with the first [`MOST_NODES`] nodes.
pub(crate) fn encode_nodes<'a>(nodes: impl IntoIterator<Item = &'a NodeAt>) -> Vec<u8> {
    let mut body = vec![0];
    for node in nodes.into_iter().take(MOST_NODES) {
        body[0] += 1;
        put_text(&mut body, node.name.as_str());
        put_text(&mut body, &node.address);
    }
    body
}

/// Parses the nodes in a body; none if the body is malformed.
pub(crate) fn parse_nodes(mut body: &[u8]) -> Option<Vec<NodeAt>> {
    let (count, rest) = body.split_first()?;
    let count = usize::from(*count);
    if count > MOST_NODES {
        return None;
    }
    body = rest;
    let mut nodes = Vec::with_capacity(count);
    for _ in 0..count {
        nodes.push(NodeAt {
            name: NodeId::new(take_text(&mut body)?).ok()?,
            address: take_text(&mut body)?.into(),
        });
    }
    body.is_empty().then_some(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_come_back_and_are_bounded() {
        let node = |number: usize| NodeAt {
            name: NodeId::new(format!("node-{number}")).unwrap(),
            address: format!("10.0.0.1:{number}").into(),
        };
        let nodes: Vec<_> = (0..2 * MOST_NODES).map(node).collect();
        let body = encode_nodes(&nodes);
        assert_eq!(parse_nodes(&body).unwrap(), nodes[..MOST_NODES]);
        for end in 0..body.len() {
            assert!(parse_nodes(&body[..end]).is_none());
        }
        assert_eq!(parse_nodes(&[0]).unwrap(), []);
        assert!(parse_nodes(&[u8::MAX; 4096]).is_none());
    }
}
