//! Tests of file modes and of syncing.

use super::*;

#[test]
fn modes_are_those_git_would_give() {
    assert_eq!(Shared::from_config(Some(b"group")).mode(0o644, false), 0o664);
    assert_eq!(Shared::from_config(Some(b"group")).mode(0o444, false), 0o444);
    assert_eq!(Shared::from_config(Some(b"group")).mode(0o700, true), 0o2770);
    assert_eq!(Shared::from_config(Some(b"all")).mode(0o640, false), 0o664);
    assert_eq!(Shared::from_config(Some(b"0600")).mode(0o644, false), 0o600);
    assert_eq!(Shared::from_config(Some(b"0640")).mode(0o755, true), 0o2750);
    assert_eq!(Shared::from_config(None).mode(0o644, false), 0o644);
}

/// K42: a folder that `git pack-refs` removed needs no syncing; one that can't be synced is an error.
#[test]
fn a_folder_is_synced_or_gone() {
    let dir = tempfile::tempdir().unwrap();
    let policy = Policy {
        durable: true,
        log_refs: LogRefs::Never,
        shared: Shared::Umask,
        lock_wait: Duration::from_secs(1),
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let git = Git::find([("PATH".into(), path)]).unwrap();
    let refs = FilesRefs::new(dir.path(), 40, policy, git);
    refs.sync_folder_of(&dir.path().join("refs/heads/a/b")).unwrap();
    let circle = dir.path().join("circle");
    std::os::unix::fs::symlink("circle", &circle).unwrap();
    let failed = refs.sync_folder_of(&circle.join("b"));
    assert!(matches!(&failed, Err(StoreError::Io { path, .. }) if *path == circle), "{failed:?}");
}
