//! Tests of syncing.

use super::*;

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
