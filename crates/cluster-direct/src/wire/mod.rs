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
    use super::checker::{self, Sums};
    use super::{FrameError, Frames, Kind, Seal, put_frame};
    use std::fs;
    use std::path::{Path, PathBuf};

    fn folder() -> Option<PathBuf> {
        let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
        fuzz.exists().then(|| fuzz.join("corpus/direct"))
    }

    #[test]
    fn corpus() {
        let Some(folder) = folder() else {
            return;
        };
        let mut count = 0;
        for file in fs::read_dir(folder).expect("the corpus is there") {
            let path = file.unwrap().path();
            println!("{}", path.display());
            checker::check(&fs::read(path).unwrap());
            count += 1;
        }
        assert!(count > 0);
    }

    fn written(seal: Seal, frames: &[(Kind, &[u8])]) -> Vec<u8> {
        let (mut seal, mut bytes) = (seal, Vec::new());
        for (kind, body) in frames {
            put_frame(&mut bytes, &mut seal, *kind, body);
        }
        bytes
    }

    /// Reads the kinds of the frames in `bytes`, and why the last is none.
    fn read(seal: Seal, bytes: &[u8]) -> (Vec<Kind>, Option<FrameError>) {
        let (mut frames, mut kinds) = (Frames::new(seal), Vec::new());
        frames.push(bytes);
        loop {
            match frames.next() {
                Ok(Some((kind, _))) => kinds.push(kind),
                Ok(None) => return (kinds, None),
                Err(error) => return (kinds, Some(error)),
            }
        }
    }

    /// Reads the seeds of frames, whole and malformed. With `GANGER_WRITE_SEEDS` set, the test
    /// writes the seeds into the corpus.
    #[test]
    fn the_seeds_of_frames_are_read_as_they_should() {
        let sums = || Seal::by(Sums::default());
        let [hello, alive, ask, left]: [(Kind, &[u8]); 4] = [
            (Kind::Session, b"hello"),
            (Kind::Alive, b""),
            (Kind::Ask, b""),
            (Kind::Refused, &[9]),
        ];
        let all = [hello, alive, ask, left];
        let frames = written(sums(), &all);
        assert_eq!(read(sums(), &frames), (all.map(|it| it.0).to_vec(), None));
        let mut wrong = written(sums(), &[hello]);
        *wrong.last_mut().unwrap() ^= 1;
        let code = Some(FrameError::Code);
        assert_eq!(read(sums(), &wrong), (vec![], code));
        let twice = written(sums(), &[alive]).repeat(2);
        assert_eq!(read(sums(), &twice), (vec![Kind::Alive], code));
        let open = written(Seal::absent(), &[hello, alive]);
        let kinds = vec![Kind::Session, Kind::Alive];
        assert_eq!(read(Seal::absent(), &open), (kinds, None));
        let seeds = [
            ("frames", frames),
            ("frame-wrong-code", wrong),
            ("frame-twice", twice),
            ("frames-over-tls", open),
        ];
        for (name, bytes) in seeds {
            checker::check(&bytes);
            if std::env::var_os("GANGER_WRITE_SEEDS").is_some()
                && let Some(folder) = folder()
            {
                fs::write(folder.join(name), &bytes).unwrap();
            }
        }
    }
}
