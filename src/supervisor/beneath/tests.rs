//! Which names below a root are opened, and which are refused. Implements K16, K19.

use super::*;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};

/// Makes a root with a file, a folder with a file, a file outside of the root, and one of each kind that is
/// refused.
fn scene() -> (tempfile::TempDir, Root) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    std::fs::create_dir_all(root.join("sub")).unwrap();
    std::fs::create_dir(dir.path().join("away")).unwrap();
    std::fs::write(dir.path().join("outside"), "secret").unwrap();
    std::fs::write(dir.path().join("away/in"), "secret").unwrap();
    std::fs::write(root.join("plain"), "0123456789").unwrap();
    std::fs::write(root.join("sub/in"), "below").unwrap();
    symlink("../outside", root.join("link")).unwrap();
    symlink("plain", root.join("inner-link")).unwrap();
    symlink("nowhere", root.join("dangling")).unwrap();
    symlink("../away", root.join("link-folder")).unwrap();
    nix::unistd::mkfifo(&root.join("fifo"), Mode::S_IRWXU).unwrap();
    drop(std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap());
    let root = Root::open(&root).unwrap();
    (dir, root)
}

fn p(path: &str) -> &Path {
    Path::new(path)
}

const REFUSED: &[(&str, Refusal)] = &[
    ("link", Refusal::Link),
    ("inner-link", Refusal::Link),
    ("dangling", Refusal::Link),
    ("link-folder", Refusal::Link),
    ("link-folder/in", Refusal::Link),
    ("fifo", Refusal::NotPlain),
    ("socket", Refusal::NotPlain),
    ("sub", Refusal::NotPlain),
    ("plain/in", Refusal::NotFolder),
    ("../outside", Refusal::Outside),
    ("sub/../plain", Refusal::Outside),
    ("/etc/passwd", Refusal::Outside),
    ("", Refusal::Outside),
    (".", Refusal::Outside),
];

#[test]
fn only_regular_files_below_the_root_are_read() {
    let (_dir, root) = scene();
    assert_eq!(root.read(p("plain"), 10).unwrap(), b"0123456789");
    assert_eq!(root.read(p("./sub//in"), 10).unwrap(), b"below");
    for (path, why) in REFUSED {
        assert_eq!(root.read(p(path), 1 << 20).unwrap_err().refusal(), Some(*why), "{path}");
        assert_eq!(root.read_tail(p(path), 10).unwrap_err().refusal(), Some(*why), "{path}");
    }
    assert!(root.read(p("none"), 10).unwrap_err().is_missing());
    assert_eq!(found(root.read(p("sub/none"), 10)).unwrap(), None);
    let device = Root::open(p("/dev")).unwrap();
    assert_eq!(device.read(p("zero"), 10).unwrap_err().refusal(), Some(Refusal::NotPlain));
}

#[test]
fn an_error_names_the_path_and_what_it_is() {
    let (dir, root) = scene();
    let path = dir.path().join("root/link");
    assert_eq!(
        root.read(p("link"), 1).unwrap_err().to_string(),
        format!("cannot read '{}': it is a symbolic link", path.display())
    );
    let said = root.read(p("/etc/passwd"), 1).unwrap_err().to_string();
    assert!(said.starts_with(&format!("cannot read '{}", dir.path().display())), "{said}");
}

#[test]
fn what_is_read_is_bounded() {
    let (_dir, root) = scene();
    assert_eq!(root.read(p("plain"), 9).unwrap_err().refusal(), Some(Refusal::TooLong(9)));
    assert_eq!(root.read_from(p("plain"), 3, 4).unwrap(), b"3456");
    assert_eq!(root.read_from(p("plain"), 99, 4).unwrap(), b"");
    assert_eq!(root.read_tail(p("plain"), 4).unwrap(), b"6789");
    assert_eq!(root.read_tail(p("plain"), 99).unwrap(), b"0123456789");
    // A file whose reported length is wrong: the system says that it has none.
    let proc = Root::open(p("/proc/self")).unwrap();
    if let Ok(all) = proc.read(p("maps"), 1 << 20) {
        assert!(!all.is_empty());
        assert_eq!(proc.read(p("maps"), 9).unwrap_err().refusal(), Some(Refusal::TooLong(9)));
    }
}

#[test]
fn nothing_is_written_through_a_link_or_into_what_is_no_file() {
    let (dir, root) = scene();
    for (path, why) in REFUSED {
        assert_eq!(root.append(p(path), 0o600).unwrap_err().refusal(), Some(*why), "{path}");
        assert_eq!(root.lock_file(p(path), 0o600).unwrap_err().refusal(), Some(*why), "{path}");
        let error = root.create_new(p(path), 0o600).unwrap_err();
        assert!(error.is_there() || error.refusal() == Some(*why), "{path}: {error}");
    }
    assert!(root.create_new(p("plain"), 0o600).unwrap_err().is_there());
    root.create_new(p("sub/new"), 0o640).unwrap().write_all(b"n").unwrap();
    root.append(p("sub/new"), 0o600).unwrap().write_all(b"m").unwrap();
    assert_eq!(root.read(p("sub/new"), 9).unwrap(), b"nm");
    root.append(p("made"), 0o600).unwrap();
    assert_eq!(std::fs::metadata(dir.path().join("root/made")).unwrap().mode() & 0o777, 0o600);
    assert!(!dir.path().join("root/nowhere").exists());
    assert_eq!(std::fs::read(dir.path().join("outside")).unwrap(), b"secret");
}

#[test]
fn replacing_takes_the_name_and_never_what_it_leads_to() {
    let (dir, root) = scene();
    for name in ["plain", "link", "dangling", "fifo", "new", "sub/in"] {
        root.replace(p(name), b"new", 0o600).unwrap();
        assert_eq!(root.read(p(name), 9).unwrap(), b"new", "{name}");
    }
    root.replace(p("link-folder/in"), b"new", 0o600).unwrap_err();
    root.replace(p("sub"), b"new", 0o600).unwrap_err();
    assert_eq!(std::fs::read(dir.path().join("outside")).unwrap(), b"secret");
    assert_eq!(std::fs::read(dir.path().join("away/in")).unwrap(), b"secret");
    let left = root.list(p(""), 99).unwrap();
    assert!(left.iter().all(|entry| !entry.name.as_bytes().starts_with(b".")), "{left:?}");
}

#[test]
fn folders_are_made_below_the_root_alone() {
    let (dir, root) = scene();
    root.create_dirs(p("sub/a/b"), 0o700).unwrap();
    root.create_dirs(p("sub/a/b"), 0o700).unwrap();
    root.below(p("sub/a")).unwrap().create_new(p("b/file"), 0o600).unwrap();
    assert_eq!(root.create_dirs(p("link-folder/x"), 0o700).unwrap_err().refusal(), Some(Refusal::Link));
    assert_eq!(root.create_dirs(p("plain/x"), 0o700).unwrap_err().refusal(), Some(Refusal::NotFolder));
    assert_eq!(root.create_dirs(p("../x"), 0o700).unwrap_err().refusal(), Some(Refusal::Outside));
    assert!(!dir.path().join("away/x").exists() && !dir.path().join("x").exists());
    assert_eq!(root.below(p("link-folder")).unwrap_err().refusal(), Some(Refusal::Link));
}

#[test]
fn a_root_stays_the_folder_that_it_was() {
    let (dir, root) = scene();
    std::fs::rename(dir.path().join("root"), dir.path().join("moved")).unwrap();
    symlink("away", dir.path().join("root")).unwrap();
    assert_eq!(root.read(p("plain"), 10).unwrap(), b"0123456789");
    assert!(root.read(p("in"), 10).unwrap_err().is_missing());
}

#[test]
fn a_listing_is_bounded_and_says_what_each_name_is() {
    let (_dir, root) = scene();
    let all = root.list(p(""), 99).unwrap();
    let kinds: Vec<_> = all.iter().map(|e| (e.name.to_str().unwrap(), e.kind)).collect();
    let want = [
        ("dangling", Kind::Link),
        ("fifo", Kind::Other),
        ("inner-link", Kind::Link),
        ("link", Kind::Link),
        ("link-folder", Kind::Link),
        ("plain", Kind::File),
        ("socket", Kind::Other),
        ("sub", Kind::Folder),
    ];
    assert_eq!(kinds, want);
    for (name, kind) in want {
        assert_eq!(root.kind(p(name)).unwrap(), Some(kind));
    }
    assert_eq!(root.kind(p("none/none")).unwrap(), None);
    assert_eq!(root.list(p(""), 8).unwrap().len(), 8);
    assert_eq!(root.list(p(""), 7).unwrap_err().refusal(), Some(Refusal::TooMany(7)));
    assert_eq!(root.list(p("link-folder"), 7).unwrap_err().refusal(), Some(Refusal::Link));
    assert_eq!(root.list(p("plain"), 7).unwrap_err().refusal(), Some(Refusal::NotFolder));
}

#[test]
fn a_link_is_read_and_a_folder_synced_where_they_are() {
    let (_dir, root) = scene();
    assert_eq!(root.link(p("link")).unwrap(), "../outside");
    assert_eq!(root.link(p("link-folder/in")).unwrap_err().refusal(), Some(Refusal::Link));
    assert!(root.link(p("plain")).is_err());
    for folder in ["", "sub"] {
        root.sync(p(folder)).unwrap();
    }
    assert_eq!(root.sync(p("link-folder")).unwrap_err().refusal(), Some(Refusal::Link));
    assert_eq!(root.sync(p("plain")).unwrap_err().refusal(), Some(Refusal::NotFolder));
    assert!(root.sync(p("none")).unwrap_err().is_missing());
}

#[test]
fn a_link_is_removed_and_not_what_it_leads_to() {
    let (dir, root) = scene();
    root.remove(p("link")).unwrap();
    assert!(root.remove(p("none")).unwrap_err().is_missing() && dir.path().join("outside").exists());
    root.create_dirs(p("empty"), 0o700).unwrap();
    root.remove_dir(p("empty")).unwrap();
}
