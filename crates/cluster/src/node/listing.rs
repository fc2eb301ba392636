//! An entry of a node's directory, as nodes tell each other.

use super::places::Places;
use crate::wire::{Fields, Known, ReadError, Reader};
use ganger_link::carrier::MAX_NAME;
use ganger_proc_api::Pid;
use std::sync::Arc;

const MEMBER: u8 = 0;
const NAME: u8 = 1;

/// Replaces what was told of the same entry before.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Listing {
    /// A process is in a group this often from now on.
    Joined {
        scope: Arc<str>,
        group: Arc<str>,
        pid: Pid,
        joins: u64,
    },
    /// The process has the name since a time; none has it.
    Named {
        name: Arc<str>,
        holder: Option<(Pid, u64)>,
    },
}

impl Listing {
    pub(crate) fn write(&self, fields: &mut impl Fields, places: Places) {
        match self {
            Self::Joined {
                scope,
                group,
                pid,
                joins,
            } => {
                fields.u8(MEMBER);
                fields.bytes(scope.as_bytes());
                fields.bytes(group.as_bytes());
                places.write(fields, *pid);
                fields.varint(*joins);
            }
            Self::Named { name, holder } => {
                fields.u8(NAME);
                fields.bytes(name.as_bytes());
                fields.u8(u8::from(holder.is_some()));
                if let Some((pid, since)) = holder {
                    places.write(fields, *pid);
                    fields.varint(*since);
                }
            }
        }
    }

    /// Reads an entry. A peer speaks for its own processes alone.
    pub(crate) fn read(
        reader: &mut Reader,
        known: &mut Known,
        places: Places,
    ) -> Result<Self, ReadError> {
        let its_own = |pid: Pid| match pid.node() == Some(places.peer) {
            true => Ok(pid),
            false => Err(ReadError::Short),
        };
        Ok(match reader.u8()? {
            MEMBER => Self::Joined {
                scope: text(reader)?,
                group: text(reader)?,
                pid: its_own(places.read(reader, known)?)?,
                joins: reader.varint()?,
            },
            NAME => Self::Named {
                name: text(reader)?,
                holder: match reader.u8()? {
                    0 => None,
                    _ => {
                        let pid = its_own(places.read(reader, known)?)?;
                        Some((pid, reader.varint()?))
                    }
                },
            },
            _ => return Err(ReadError::Short),
        })
    }
}

fn text(reader: &mut Reader) -> Result<Arc<str>, ReadError> {
    let bytes = reader.bytes()?;
    if bytes.len() > MAX_NAME {
        return Err(ReadError::Text);
    }
    let text = std::str::from_utf8(&bytes).map_err(|_| ReadError::Text)?;
    Ok(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Apart;
    use ganger_proc_api::NodeName;

    fn read(listing: &Listing) -> Result<Listing, ReadError> {
        let [own, peer] = ["alpha", "beta"].map(|it| NodeName::new(it).unwrap());
        let mut fields = Apart::default();
        listing.write(&mut fields, Places { own, peer });
        let mut reader = Reader::new(fields.finish());
        let there = Places {
            own: peer,
            peer: own,
        };
        let read = Listing::read(&mut reader, &mut Known::default(), there);
        assert!(read.is_err() || reader.rest().is_empty());
        read
    }

    fn joined(group: &str, pid: &str) -> Listing {
        Listing::Joined {
            scope: "scope".into(),
            group: group.into(),
            pid: pid.parse().unwrap(),
            joins: 3,
        }
    }

    fn named(holder: Option<&str>) -> Listing {
        Listing::Named {
            name: "cart".into(),
            holder: holder.map(|pid| (pid.parse().unwrap(), 7)),
        }
    }

    // pins: B36
    #[test]
    fn a_peer_speaks_for_its_own_processes_alone() {
        let its_own = "{alpha@main|1}";
        assert_eq!(read(&joined("g", "{main|1}")), Ok(joined("g", its_own)));
        assert_eq!(read(&named(Some("{main|1}"))), Ok(named(Some(its_own))));
        assert_eq!(read(&named(None)), Ok(named(None)));
        for pid in ["{beta@main|1}", "{gamma@main|1}"] {
            assert_eq!(read(&joined("g", pid)), Err(ReadError::Short));
            assert_eq!(read(&named(Some(pid))), Err(ReadError::Short));
        }
        let long = "g".repeat(MAX_NAME + 1);
        assert_eq!(read(&joined(&long, its_own)), Err(ReadError::Text));
        let longest = joined(&long[1..], its_own);
        assert_eq!(read(&longest), Ok(longest));
    }
}
