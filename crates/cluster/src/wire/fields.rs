//! The fields of a message, written into a frame, or apart where the message is larger than frames.

use super::packer::Writer;
use super::routes::Route;
use super::symbols::{INLINE, SymbolKind};
use super::varint;
use bytes::Bytes;
use ganger_proc_api::HostName;

/// Takes the fields of a message. A [`Reader`](crate::Reader) reads the fields in the same order.
pub(crate) trait Fields {
    fn u8(&mut self, byte: u8);
    fn varint(&mut self, number: u64);
    fn bytes(&mut self, bytes: &[u8]);
    fn symbol(&mut self, kind: SymbolKind, text: &str);

    fn host(&mut self, host: HostName) {
        self.symbol(SymbolKind::Host, host.as_str());
    }

    /// Appends a route, of which `write` writes the parts if the peer does not know it.
    fn route(&mut self, _: Route, write: impl FnOnce(&mut Self)) {
        self.varint(INLINE);
        write(self);
    }
}

impl Fields for Writer<'_> {
    fn u8(&mut self, byte: u8) {
        Writer::u8(self, byte);
    }

    fn varint(&mut self, number: u64) {
        Writer::varint(self, number);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        Writer::bytes(self, bytes);
    }

    fn symbol(&mut self, kind: SymbolKind, text: &str) {
        Writer::symbol(self, kind, text);
    }

    fn host(&mut self, host: HostName) {
        Writer::host(self, host);
    }

    fn route(&mut self, route: Route, write: impl FnOnce(&mut Self)) {
        Writer::route(self, route, write);
    }
}

/// A message outside of frames. Its texts are inline, so a reader needs no table.
#[derive(Debug, Default)]
pub(crate) struct Apart(Vec<u8>);

impl Apart {
    pub(crate) fn finish(self) -> Bytes {
        self.0.into()
    }
}

impl Fields for Apart {
    fn u8(&mut self, byte: u8) {
        self.0.push(byte);
    }

    fn varint(&mut self, number: u64) {
        varint::put(&mut self.0, number);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn symbol(&mut self, _: SymbolKind, text: &str) {
        self.varint(INLINE);
        self.bytes(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Known, Reader};

    #[test]
    fn a_message_apart_is_read_without_a_table() {
        let mut apart = Apart::default();
        apart.u8(7);
        apart.symbol(SymbolKind::Topic, "order");
        apart.symbol(SymbolKind::Topic, "order");
        apart.varint(300);
        apart.bytes(b"rest");
        let mut reader = Reader::new(apart.finish());
        let mut known = Known::default();
        assert_eq!(reader.u8(), Ok(7));
        for _ in 0..2 {
            let text = reader.symbol(&mut known, SymbolKind::Topic).unwrap();
            assert_eq!(&*text, "order");
        }
        assert_eq!(reader.varint(), Ok(300));
        assert_eq!(reader.bytes().unwrap(), "rest");
    }
}
