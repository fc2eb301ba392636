//! The file of a registrar: effects that outlive the program.
//!
//! **Problem.** An answer must hold after a crash, at any moment, of the program or the machine. A
//! crash in the middle of a write leaves a torn tail, of which no answer was given.
//!
//! **Protocol.** The file has a head, and then frames: a mark, the length, a CRC-32, and effects.
//! 1. *Append*: the effects of a batch are one frame. The batch is answered when the system has the
//!    frame on the disk (`fdatasync`).
//! 2. *Open*: frames are read up to the first that is incomplete or wrong. With no right frame
//!    behind, it is a torn tail, and is cut off. Otherwise the file is damaged, and is refused:
//!    promised entries are missing.
//! 3. *Compaction*: a file that is much longer than its table is written anew next to it, synced,
//!    and renamed over it.
//!
//! A failed write or sync is the end of the log: the system may have dropped the bytes, so a later
//! sync that succeeds would say nothing of them.
//!
//! A file may lose promised entries all the same: an operator puts an older copy in its place, or a
//! disk has confirmed too early. So that no number is used again even then, numbers begin above the
//! time of the clock at each opening, in microseconds: more than a store has writes.
//!
//! A file next to it is locked, for as long as the log is open: two authorities would be none.

use super::entry::Revision;
use super::table::{Effect, Table};
use ganger_proc_api::Instant;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use thiserror::Error;

const HEAD: &[u8; 8] = b"GNGRSTR1";
const MARK: [u8; 4] = [0xf7, b'G', b'F', 0x1a];

/// The mark, the length and the checksum of a frame.
const FRAME: usize = 12;

/// The most bytes of effects in a frame. A batch is far shorter.
const MAX_FRAME: usize = 64 << 20;

/// A file below this length is not compacted.
const SMALL: u64 = 4 << 20;

/// Effects in a frame of a compacted file.
const CHUNK: usize = 256;

/// A registrar's file can't be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LogError {
    /// The system has refused a call.
    #[error("the registrar's file {path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// Another program has the file open.
    #[error("the registrar's file {0} is in use by another program: a cluster has one registrar")]
    InUse(PathBuf),
    /// The file is of another program, or of a later version.
    #[error("{0} is not a registrar's file of this version")]
    NotALog(PathBuf),
    /// Bytes in the middle of the file are wrong. Promised entries are lost.
    #[error(
        "the registrar's file {path} is damaged at byte {at}: restore a backup, or remove the \
         file after all nodes have stopped"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The first wrong frame.
        at: u64,
    },
}

pub(crate) struct Log {
    path: PathBuf,
    file: File,
    length: u64,
    /// The length after the last compaction.
    compact: u64,
    buffer: Vec<u8>,
    has_failed: bool,
    _lock: File,
}

impl Log {
    /// Opens or makes a file. Returns the table in it, whose leases begin now. Blocks.
    pub(crate) fn open(path: &Path, now: Instant) -> Result<(Self, Table), LogError> {
        let failed = |error| LogError::Io {
            path: path.to_owned(),
            error,
        };
        let lock = File::create(beside(path, ".lock")).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Err(LogError::InUse(path.to_owned())),
            Err(fs::TryLockError::Error(error)) => return Err(failed(error)),
        }
        let _left_by_a_crash = fs::remove_file(beside(path, ".new"));
        let mut file = OpenOptions::new();
        let file = file.read(true).write(true).create(true).truncate(false);
        let mut file = file.open(path).map_err(failed)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        let mut table = Table::default();
        let length = if bytes.len() < HEAD.len() && HEAD.starts_with(&bytes) {
            // New, or torn before its first frame.
            file.set_len(0).map_err(failed)?;
            file.seek(SeekFrom::Start(0)).map_err(failed)?;
            file.write_all(HEAD).map_err(failed)?;
            HEAD.len()
        } else if bytes.starts_with(HEAD) {
            let length = read(&bytes, |effect| table.replay(effect, now));
            length.map_err(|at| LogError::Damaged {
                path: path.to_owned(),
                at: at as u64,
            })?
        } else {
            return Err(LogError::NotALog(path.to_owned()));
        };
        let length = length as u64;
        file.set_len(length).map_err(failed)?;
        file.sync_all().map_err(failed)?;
        sync_folder(path).map_err(failed)?;
        file.seek(SeekFrom::End(0)).map_err(failed)?;
        table.honour(now);
        let log = Self {
            path: path.to_owned(),
            file,
            length,
            compact: length,
            buffer: Vec::new(),
            has_failed: false,
            _lock: lock,
        };
        Ok((log, table))
    }

    /// Has all later numbers be above `least`. Blocks.
    pub(crate) fn rise(&mut self, table: &mut Table, least: u64) -> Result<(), LogError> {
        if table.revision().0 >= least {
            return Ok(());
        }
        let used = Effect::Used(Revision(least));
        table.replay(&used, Instant::NEVER);
        self.append(&[used]).map_err(|error| LogError::Io {
            path: self.path.clone(),
            error,
        })
    }

    /// Keeps the effects of a batch. They are on the disk when this returns. Blocks. After an error
    /// the log keeps nothing more.
    pub(crate) fn append(&mut self, effects: &[Effect]) -> io::Result<()> {
        if self.has_failed {
            return Err(io::Error::other("an earlier write has failed"));
        }
        self.has_failed = true;
        self.buffer.clear();
        frame(effects, &mut self.buffer)?;
        self.file.write_all(&self.buffer)?;
        self.file.sync_data()?;
        self.length += self.buffer.len() as u64;
        self.has_failed = false;
        Ok(())
    }

    /// Writes the file anew if it is much longer than what the table needs. Blocks. Without room
    /// for a second file, the log goes on with the first.
    pub(crate) fn compact(&mut self, table: &Table) -> io::Result<()> {
        if self.length < SMALL.max(4 * self.compact) || self.has_failed {
            return Ok(());
        }
        let rewritten = self.rewrite(table);
        if let Err(error) = &rewritten
            && !self.has_failed
        {
            let text = "the registrar's file can't be compacted";
            tracing::warn!(target: "ganger::cluster", %error, "{text}");
            self.compact = self.length;
            return Ok(());
        }
        rewritten
    }

    fn rewrite(&mut self, table: &Table) -> io::Result<()> {
        let new = beside(&self.path, ".new");
        let mut file = File::create(&new)?;
        file.write_all(HEAD)?;
        let mut length = HEAD.len() as u64;
        let mut chunk = Vec::new();
        let mut effects = table.effects().peekable();
        while effects.peek().is_some() {
            chunk.extend(effects.by_ref().take(CHUNK));
            self.buffer.clear();
            frame(&chunk, &mut self.buffer)?;
            file.write_all(&self.buffer)?;
            length += self.buffer.len() as u64;
            chunk.clear();
        }
        file.sync_all()?;
        // From here on it is unknown which of the two files a crash leaves; both are right until
        // the next write, which must go to the new.
        self.has_failed = true;
        fs::rename(&new, &self.path)?;
        sync_folder(&self.path)?;
        self.file = file;
        (self.length, self.compact) = (length, length);
        self.has_failed = false;
        Ok(())
    }
}

/// Returns a name next to the file.
fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(path.as_os_str());
    name.push(end);
    name.into()
}

/// Waits until the name of the file is on the disk.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    // Other systems have no such call.
    if cfg!(unix) {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

fn frame(effects: &[Effect], bytes: &mut Vec<u8>) -> io::Result<()> {
    let body = postcard::to_stdvec(effects).map_err(io::Error::other)?;
    let length = u32::try_from(body.len()).map_err(io::Error::other)?;
    bytes.extend_from_slice(&MARK);
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&checksum(length, &body).to_le_bytes());
    bytes.extend_from_slice(&body);
    Ok(())
}

fn checksum(length: u32, body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&length.to_le_bytes());
    hasher.update(body);
    hasher.finalize()
}

/// Reads the effects of the frame at the beginning of these bytes, and its length.
fn first(bytes: &[u8]) -> Option<(Vec<Effect>, usize)> {
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let length = word(4)?;
    let end = FRAME + usize::try_from(length).ok()?;
    if !bytes.starts_with(&MARK) || end > MAX_FRAME {
        return None;
    }
    let body = bytes.get(FRAME..end)?;
    if word(8)? != checksum(length, body) {
        return None;
    }
    Some((postcard::from_bytes(body).ok()?, end))
}

/// Reads frames, up to a torn tail. Returns the number of right bytes, or the place of wrong bytes
/// before right bytes.
fn read(bytes: &[u8], mut take: impl FnMut(&Effect)) -> Result<usize, usize> {
    let mut at = HEAD.len();
    while let Some((effects, length)) = first(&bytes[at..]) {
        effects.iter().for_each(&mut take);
        at += length;
    }
    let tail = &bytes[at..];
    let is_damaged = (1..tail.len()).any(|from| first(&tail[from..]).is_some());
    if is_damaged { Err(at) } else { Ok(at) }
}

#[cfg(test)]
mod tests {
    use super::super::api::{StoreAnswer, StoreOp};
    use super::*;
    use std::time::Duration;

    const NOW: Instant = Instant::from_nanos(0);

    /// A temporary folder.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("ganger-registrar-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn file(&self) -> PathBuf {
            self.0.join("log")
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _gone = fs::remove_dir_all(&self.0);
        }
    }

    fn apply(log: &mut Log, table: &mut Table, op: StoreOp) -> StoreAnswer {
        let mut effects = Vec::new();
        let answer = table.apply(op, NOW, &mut effects).unwrap();
        log.append(&effects).unwrap();
        log.compact(table).unwrap();
        answer
    }

    // pins: B32
    #[test]
    fn of_a_torn_file_each_whole_batch_is_left() {
        let folder = Folder::new("torn");
        let (mut log, mut table) = Log::open(&folder.file(), NOW).unwrap();
        let mut lengths = vec![(log.length, table.snapshot(""))];
        let ttl = Duration::from_secs(1);
        let StoreAnswer::Lease(lease) = apply(&mut log, &mut table, StoreOp::Grant { ttl }) else {
            panic!("no lease");
        };
        lengths.push((log.length, table.snapshot("")));
        for round in 0..8 {
            let op = StoreOp::create(format!("k{round}"), "value").with_lease(lease);
            apply(&mut log, &mut table, op);
            lengths.push((log.length, table.snapshot("")));
        }
        apply(&mut log, &mut table, StoreOp::Revoke { lease });
        lengths.push((log.length, table.snapshot("")));
        drop(log);
        let whole = fs::read(folder.file()).unwrap();
        for length in 0..=whole.len() {
            for garbage in [&b""[..], &[0xee; 9], &MARK] {
                let mut torn = whole[..length].to_vec();
                torn.extend_from_slice(garbage);
                if length < HEAD.len() && !garbage.is_empty() {
                    continue;
                }
                fs::write(folder.file(), &torn).unwrap();
                let (log, table) = Log::open(&folder.file(), NOW).unwrap();
                let right = lengths.iter().rev().find(|(it, _)| *it <= length as u64);
                let right = right.unwrap_or(&lengths[0]);
                assert_eq!((log.length, table.snapshot("")), *right, "{length}");
                drop(log);
                assert_eq!(fs::metadata(folder.file()).unwrap().len(), right.0);
            }
        }
    }

    // pins: B32
    #[test]
    fn a_flipped_bit_in_the_middle_is_not_taken_for_a_torn_tail() {
        let folder = Folder::new("flipped");
        let (mut log, mut table) = Log::open(&folder.file(), NOW).unwrap();
        for round in 0..3 {
            apply(
                &mut log,
                &mut table,
                StoreOp::create(format!("k{round}"), "v"),
            );
        }
        let before = log.length;
        apply(&mut log, &mut table, StoreOp::create("last", "v"));
        drop(log);
        let whole = fs::read(folder.file()).unwrap();
        for at in HEAD.len()..usize::try_from(before).unwrap() {
            let mut flipped = whole.clone();
            flipped[at] ^= 0x10;
            fs::write(folder.file(), &flipped).unwrap();
            let opened = Log::open(&folder.file(), NOW).map(drop);
            assert!(
                matches!(opened, Err(LogError::Damaged { .. })),
                "{at}: {opened:?}"
            );
        }
        let mut other = whole.clone();
        other[0] ^= 1;
        fs::write(folder.file(), &other).unwrap();
        let opened = Log::open(&folder.file(), NOW).map(drop);
        assert!(matches!(opened, Err(LogError::NotALog(_))), "{opened:?}");
        fs::write(folder.file(), &whole).unwrap();
        let (log, again) = Log::open(&folder.file(), NOW).unwrap();
        assert_eq!(again.snapshot(""), table.snapshot(""));
        let second = Log::open(&folder.file(), NOW).map(drop);
        assert!(matches!(second, Err(LogError::InUse(_))), "{second:?}");
        drop(log);
    }

    // pins: B27, B32
    #[test]
    fn an_older_copy_of_a_file_uses_no_number_again() {
        let folder = Folder::new("older");
        let write = |clock, key: &str| {
            let (mut log, mut table) = Log::open(&folder.file(), NOW).unwrap();
            log.rise(&mut table, clock).unwrap();
            let written = apply(&mut log, &mut table, StoreOp::create(key, "v"));
            let StoreAnswer::Written(revision) = written else {
                panic!("{written:?}");
            };
            revision.0
        };
        assert_eq!(write(1_000, "a"), 1_001);
        let older = fs::read(folder.file()).unwrap();
        assert_eq!(write(2_000, "b"), 2_001);
        fs::write(folder.file(), older).unwrap();
        assert_eq!(write(3_000, "b"), 3_001);
        // The clock was set back.
        assert_eq!(write(1_500, "c"), 3_002);
        fs::remove_file(folder.file()).unwrap();
        assert_eq!(write(4_000, "a"), 4_001);
    }

    // pins: B32
    #[test]
    fn a_compacted_file_has_the_entries_and_the_numbers() {
        let folder = Folder::new("compact");
        let (mut log, mut table) = Log::open(&folder.file(), NOW).unwrap();
        let mut longest = 0;
        let value = vec![1; super::super::MAX_VALUE];
        for round in 0..300 {
            let op = StoreOp::create("key", value.clone());
            let StoreAnswer::Written(revision) = apply(&mut log, &mut table, op) else {
                panic!("not written");
            };
            apply(&mut log, &mut table, StoreOp::delete("key", revision));
            assert_eq!(revision.0, 2 * round + 1);
            longest = longest.max(log.length);
        }
        assert!(longest < SMALL + (100 << 10), "{longest}");
        drop(log);
        let (_log, again) = Log::open(&folder.file(), NOW).unwrap();
        assert_eq!(again.snapshot(""), table.snapshot(""));
    }
}
