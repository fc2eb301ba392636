//! A secret that all nodes of a cluster share, and the proof that a node has it.
//!
//! **Protocol.** Each side has sent a greeting with a nonce. The dialer sends its proof first: the
//! HMAC of its role and both greetings, so it fits this connection, these names and this direction
//! alone. The acceptor sends its own proof after it has checked the dialer's. The keys of frames
//! are HMACs over other words and both greetings: what has passed a handshake on can't speak then.

use crate::error::DirectError;
use ganger_sched::internal::{choose, here};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The longest cookie.
const MOST: u64 = 4096;

/// The side of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Dialer,
    Acceptor,
}

/// The key of proofs.
#[derive(Clone)]
pub(crate) struct Cookie(hmac::Key);

impl Cookie {
    pub(crate) fn new(secret: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// Computes the proof of a side. The greetings are whole packets with their lengths.
    pub(crate) fn prove(&self, role: Role, dialer: &[u8], acceptor: &[u8]) -> [u8; 32] {
        let tag = hmac::sign(&self.0, &said(role, dialer, acceptor));
        let mut proof = [0; 32];
        proof.copy_from_slice(tag.as_ref());
        proof
    }

    /// Computes the key for the frames from a side, on a connection without TLS. No proof tells it.
    pub(crate) fn frames(&self, from: Role, dialer: &[u8], acceptor: &[u8]) -> [u8; 32] {
        let side: &[u8] = match from {
            Role::Dialer => b"ganger direct frames of the dialer",
            Role::Acceptor => b"ganger direct frames of the acceptor",
        };
        let tag = hmac::sign(&self.0, &[side, dialer, acceptor].concat());
        let mut key = [0; 32];
        key.copy_from_slice(tag.as_ref());
        key
    }

    /// Returns whether a proof is right, in constant time.
    pub(crate) fn check(&self, role: Role, dialer: &[u8], acceptor: &[u8], proof: &[u8]) -> bool {
        hmac::verify(&self.0, &said(role, dialer, acceptor), proof).is_ok()
    }
}

impl fmt::Debug for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cookie(..)")
    }
}

fn said(role: Role, dialer: &[u8], acceptor: &[u8]) -> Vec<u8> {
    let role: &[u8] = match role {
        Role::Dialer => b"ganger direct dialer",
        Role::Acceptor => b"ganger direct acceptor",
    };
    [role, dialer, acceptor].concat()
}

/// Draws bytes that no other node can guess. In a simulation its seed chooses them.
pub(crate) fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    if here::simulated().is_some() {
        let chosen = || choose("direct: a random byte", 256).unwrap_or_default();
        bytes.fill_with(|| u8::try_from(chosen()).unwrap_or_default());
        return Ok(bytes);
    }
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| io::Error::other("the system has no random numbers"))?;
    Ok(bytes)
}

/// Returns the place of the cookie, unless the program says another.
pub(crate) fn usual_file() -> Result<PathBuf, DirectError> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    let home = home.ok_or(DirectError::NoCookie)?;
    Ok(Path::new(&home).join(".ganger.cookie"))
}

/// Reads the cookie from a file, which other users must not be able to read. Makes the file if it
/// does not exist.
pub(crate) fn read_or_make(path: &Path) -> Result<Cookie, DirectError> {
    let failed = |error| DirectError::Cookie {
        path: path.to_owned(),
        error,
    };
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make(path).map_err(failed)?;
            fs::metadata(path)
        }
        _ => fs::metadata(path),
    };
    let found = found.map_err(failed)?;
    if is_public(&found) {
        return Err(DirectError::CookieIsPublic(path.to_owned()));
    }
    if found.len() > MOST {
        return Err(failed(io::Error::other("it is too long for a cookie")));
    }
    let secret = fs::read(path).map_err(failed)?;
    let secret = secret.trim_ascii();
    if secret.is_empty() {
        return Err(DirectError::CookieIsEmpty);
    }
    Ok(Cookie::new(secret))
}

#[cfg(unix)]
fn is_public(file: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.permissions().mode() & 0o077 != 0
}

#[cfg(not(unix))]
fn is_public(_: &fs::Metadata) -> bool {
    false
}

/// Makes the file in a single step: of two programs at once the first makes it, and both read
/// the same.
fn make(path: &Path) -> io::Result<()> {
    let secret: [u8; 24] = random()?;
    let text: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut other = path.as_os_str().to_owned();
    other.push(format!(".{}", &text[..8]));
    let text = &text[8..];
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    let made = options.open(&other).and_then(|mut file| {
        writeln!(file, "{text}")?;
        file.sync_all()
    });
    let linked = made.and_then(|()| fs::hard_link(&other, path));
    let removed = fs::remove_file(&other);
    match linked {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => removed,
        Err(error) => Err(error),
        Ok(()) => removed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Proofs fit their role, both greetings, and the cookie.
    #[test]
    fn a_proof_fits_once() {
        let cookie = Cookie::new(b"secret");
        let proof = cookie.prove(Role::Dialer, b"one", b"two");
        assert!(cookie.check(Role::Dialer, b"one", b"two", &proof));
        assert!(!cookie.check(Role::Acceptor, b"one", b"two", &proof));
        assert!(!cookie.check(Role::Dialer, b"two", b"one", &proof));
        assert!(!cookie.check(Role::Dialer, b"one", b"three", &proof));
        assert!(!Cookie::new(b"other").check(Role::Dialer, b"one", b"two", &proof));
    }

    #[test]
    fn a_cookie_is_made_once_and_only_its_owner_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cookie");
        let made = read_or_make(&path).unwrap();
        let proof = made.prove(Role::Dialer, b"one", b"two");
        let read = read_or_make(&path).unwrap();
        assert!(read.check(Role::Dialer, b"one", b"two", &proof));
        make(&path).unwrap();
        assert!(
            read_or_make(&path)
                .unwrap()
                .check(Role::Dialer, b"one", b"two", &proof)
        );
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(!is_public(&fs::metadata(&path).unwrap()));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
            assert!(matches!(
                read_or_make(&path),
                Err(DirectError::CookieIsPublic(_))
            ));
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        }
        fs::write(&path, " \n").unwrap();
        assert!(matches!(
            read_or_make(&path),
            Err(DirectError::CookieIsEmpty)
        ));
    }
}
