//! Bytes on a connection, without input and output. All lengths are checked before anything is
//! allocated for them.

#[cfg(test)]
mod checker;
mod frames;
mod gossip;
mod packets;

pub(crate) use frames::{CODE, Codes, FrameError, Frames, Kind, Seal, put_frame};
pub(crate) use gossip::{NodeAt, encode_nodes, parse_nodes};
pub(crate) use packets::{
    Greeting, HEAD, Packet, PacketError, PacketHead, VERSION, proof, refusal,
};

/// The inputs in the fuzzer's corpus. A package without the project has no corpus.
#[cfg(test)]
mod tests {
    use super::checker;
    use std::fs;
    use std::path::Path;

    #[test]
    fn corpus() {
        let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
        if !fuzz.exists() {
            return;
        }
        let folder = fuzz.join("corpus/direct");
        let mut count = 0;
        for file in fs::read_dir(folder).expect("the corpus is there") {
            let path = file.unwrap().path();
            println!("{}", path.display());
            checker::check(&fs::read(path).unwrap());
            count += 1;
        }
        assert!(count > 0);
    }
}
