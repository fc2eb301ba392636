//! Symbolic links, sockets, and unreadable files.

use super::program::run;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use tempfile::TempDir;

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Creates a folder `real` with a file of two words, and an empty place next to it.
fn folder() -> (TempDir, std::path::PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let real = directory.path().join("real");
    fs::create_dir(&real).unwrap();
    fs::write(real.join("file"), "two words").unwrap();
    (directory, real)
}

#[test]
fn symbolic_links_are_not_followed() {
    let (directory, real) = folder();
    symlink("file", real.join("link")).unwrap();
    symlink("..", real.join("loop")).unwrap();
    symlink("nowhere", real.join("dangling")).unwrap();
    let ended = run(["--json", text(directory.path())]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let numbers = ["files", "skipped", "failed", "words"].map(|name| ended.number(name));
    assert_eq!(numbers, [1, 0, 0, 2]);
}

#[test]
fn a_symbolic_link_as_path_is_noted() {
    let (directory, real) = folder();
    let link = directory.path().join("link");
    symlink(&real, &link).unwrap();
    let ended = run(["--json", text(&link)]);
    assert_eq!((ended.code, ended.number("files")), (Some(0), 0));
    let note = format!(
        "wordfreq: {} is a symbolic link and is not followed\n",
        link.display()
    );
    assert_eq!(ended.stderr, note);
}

#[test]
fn special_files_are_ignored_in_folders_and_refused_as_paths() {
    let (_directory, real) = folder();
    let socket = real.join("socket");
    let _listener = UnixListener::bind(&socket).unwrap();
    let ended = run(["--json", text(&real)]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    assert_eq!(["files", "failed"].map(|name| ended.number(name)), [1, 0]);

    let ended = run(["--json", text(&socket), text(&real)]);
    assert_eq!(ended.code, Some(1));
    assert_eq!(["files", "failed"].map(|name| ended.number(name)), [1, 1]);
    let line = format!("wordfreq: can't read {}: it is neither ", socket.display());
    assert!(ended.stderr.starts_with(&line), "{}", ended.stderr);
}

#[test]
fn what_may_not_be_read_fails_and_the_rest_is_counted() {
    let (directory, real) = folder();
    let secret = directory.path().join("secret");
    fs::write(&secret, "word").unwrap();
    let locked = directory.path().join("locked");
    fs::create_dir(&locked).unwrap();
    for path in [&secret, &locked] {
        fs::set_permissions(path, Permissions::from_mode(0o000)).unwrap();
    }
    if fs::read(&secret).is_ok() {
        // Nothing is forbidden to root.
        return;
    }
    let ended = run(["--json", text(directory.path())]);
    fs::set_permissions(&locked, Permissions::from_mode(0o700)).unwrap();
    assert_eq!(ended.code, Some(1));
    let numbers = ["files", "skipped", "failed", "words"].map(|name| ended.number(name));
    assert_eq!(numbers, [1, 0, 2, 2]);
    let mut lines: Vec<_> = ended.stderr.lines().collect();
    lines.sort_unstable();
    for (line, path) in lines.iter().zip([&locked, &secret]) {
        let start = format!("wordfreq: can't read {}: ", path.display());
        assert!(line.starts_with(&start), "{line}");
    }
    assert_eq!(lines.len(), 2);
    assert!(real.exists());
}
