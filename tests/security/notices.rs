//! Row S36: what a branch, or a repository, may do to who is told of it.

use super::*;

/// K33, K53, S36: a repository names no program, and what it holds is text on a pipe to the one that the account names
#[test]
fn s36_a_notice_is_text_for_the_accounts_own_program() {
    let world = World::any();
    let fired = world.root().join("fired");
    let script = format!("touch '{}'", fired.display());
    let asks = "echo 'SET_STATE {\"state\":\"wait\",\"subject\":\"$(touch fired) `touch fired`\",\"body\":\"; touch fired\"}'";
    let dir = repo(&world, &[("ask", asks)]);
    world.git(&dir, &["config", "aynig.notify", &script]);
    let told = world.root().join("told");
    let said = tick(&world, &dir, "ask", "first").expect(0);
    assert!(said.err.contains("'aynig.notify'"), "{}", said.err);
    // A program of that name in the working tree, the one that the account means elsewhere.
    executable(&dir.join("tell"), &format!("#!/bin/sh\n{script}\n"));
    executable(
        &world.root().join("bin/tell"),
        &format!(
            "#!/bin/sh\n{{ pwd; printf '<%s>' \"$@\"; env; cat; }} >'{0}.new'; mv '{0}.new' '{0}'\n",
            told.display()
        ),
    );
    global(&world, &["aynig.notify", "tell 'one word'"]);
    tick(&world, &dir, "ask", "$(touch${IFS}fired)").expect(0);
    let text = support::life::eventually("the notice", || std::fs::read_to_string(&told).ok());
    let (told, notice) = text.split_once("{\"schema\":\"aynig.notice/1\"").unwrap();
    assert!(
        notice.contains("$(touch fired) `touch fired`")
            && notice.contains("\"branch\":\"$(touch${IFS}fired)\"")
    );
    assert!(told.contains("<one word>") && !told.contains("AYNIG_") && !told.contains("BODY="), "{told}");
    assert!(told.starts_with(&format!("{}\n", dir.join(".git").canonicalize().unwrap().display())), "{told}");
    assert!(!fired.exists() && !dir.join("fired").exists() && !dir.join(".git/fired").exists());
}

/// K53, S36: what lies among what is owed is read as an enemy's, and in a repository that is not trusted not at all
#[test]
fn s36_what_is_owed_is_no_way_to_have_somebody_told() {
    let world = World::any();
    let dir = repo(&world, &[]);
    let told = world.root().join("told");
    executable(&world.root().join("bin/tell"), &format!("#!/bin/sh\ncat >>'{}'\n", told.display()));
    global(&world, &["aynig.notify", "tell"]);
    let notices = dir.join(".git/aynig/notices");
    std::fs::create_dir_all(&notices).unwrap();
    let id = "0192f0a0-1234-4abc-8def-0123456789ab";
    world.raw_commit(&dir, "work", format!("x\n\ndwp-state: wait\ndwp-run-id: {id}\n").as_bytes());
    let secret = world.root().join("secret");
    std::fs::write(&secret, "{\"branch\":[],\"remote\":null}").unwrap();
    std::os::unix::fs::symlink(&secret, notices.join(id)).unwrap();
    nix::unistd::mkfifo(&notices.join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    std::fs::write(notices.join("no-branch"), "{\"branch\":[46,46,47],\"remote\":\"--upload-pack=x\"}")
        .unwrap();
    let bin = world.root().join("bin/git-aynig");
    world.run("timeout", &dir, &["60", bin.to_str().unwrap(), "status"]).expect(0);
    assert!(!told.exists() && secret.exists());
    // Not trusted: what its folder says is not looked at.
    std::fs::remove_file(notices.join(id)).unwrap();
    let branch: Vec<u8> = b"refs/heads/work".to_vec();
    let note = serde_json::json!({"branch": branch, "remote": null}).to_string();
    std::fs::write(notices.join(id), note).unwrap();
    world.aynig(&dir, &["trust", "--revoke"]).expect(0);
    world.aynig(&dir, &["status"]);
    assert!(notices.join(id).exists() && !told.exists());
}
