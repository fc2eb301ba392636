//! An authority, and certificates of nodes by it, as files.
//!
//! The tests of the engines include this file: they run with the keys that users have.

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use std::error::Error;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// The secret of the authority: for more certificates later. No node needs it.
pub(crate) const AUTHORITY_KEY: &str = "ca.key";

/// Writes into a folder for each node: the certificate of the authority, a certificate for the
/// node's name, and its key. The certificates are valid from the begin of the first year to the
/// begin of the last. Makes the authority in `root` at first, and keeps it afterwards.
pub(crate) fn issue<S: AsRef<str>>(
    root: &Path,
    names: &[S],
    years: [i32; 2],
) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(root)?;
    let path = root.join(AUTHORITY_KEY);
    let key = match fs::read_to_string(&path) {
        Ok(text) => KeyPair::from_pem(&text)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let key = KeyPair::generate()?;
            write_secret(&path, &key)?;
            key
        }
        Err(error) => return Err(error.into()),
    };
    let mut authority = CertificateParams::default();
    authority.distinguished_name = called("authority of a ganger cluster");
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    authority.not_before = date_time_ymd(2000, 1, 1);
    authority.not_after = date_time_ymd(2200, 1, 1);
    let certificate = authority.self_signed(&key)?.pem();
    let issuer = Issuer::new(authority, key);
    for name in names {
        let name = name.as_ref();
        let folder = root.join(name);
        fs::create_dir_all(&folder)?;
        let key = KeyPair::generate()?;
        let mut node = CertificateParams::new([name.to_owned()])?;
        node.distinguished_name = called(name);
        node.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        node.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        [node.not_before, node.not_after] = years.map(|year| date_time_ymd(year, 1, 1));
        let node = node.signed_by(&key, &issuer)?.pem();
        fs::write(folder.join("ca.pem"), &certificate)?;
        fs::write(folder.join("node.pem"), node)?;
        write_secret(&folder.join("node.key"), &key)?;
    }
    Ok(())
}

fn called(name: &str) -> DistinguishedName {
    let mut called = DistinguishedName::new();
    called.push(DnType::CommonName, name);
    called
}

/// Writes a file that only its owner may read.
fn write_secret(path: &Path, key: &KeyPair) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    let mut file = options.open(path)?;
    file.write_all(key.serialize_pem().as_bytes())
}
