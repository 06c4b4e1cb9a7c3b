//! A repository whose configuration another user wrote, before a user trusted it: rows S6, S7 and S16.

use super::*;

/// Keys that make Git start a program, with the form that their value takes (`@` is the program).
const PROGRAMS: &[(&str, &str)] = &[
    ("core.fsmonitor", "@"),
    ("core.sshCommand", "@"),
    ("core.gitProxy", "@"),
    ("core.askPass", "@"),
    ("core.pager", "@"),
    ("core.editor", "@"),
    ("core.alternateRefsCommand", "@"),
    ("core.hooksPath", "@-hooks"),
    ("sequence.editor", "@"),
    ("credential.helper", "!@"),
    ("diff.external", "@"),
    ("diff.x.command", "@"),
    ("diff.x.textconv", "@"),
    ("merge.x.driver", "@"),
    ("filter.x.clean", "@"),
    ("filter.x.smudge", "@"),
    ("filter.x.process", "@"),
    ("filter.x.required", "true"),
    ("gpg.program", "@"),
    ("gpg.ssh.program", "@"),
    ("commit.gpgSign", "true"),
    ("log.showSignature", "true"),
    ("interactive.diffFilter", "@"),
    ("pager.status", "@"),
    ("alias.status", "!@"),
    ("alias.config", "!@"),
    ("uploadpack.packObjectsHook", "@"),
    ("trace2.eventTarget", "@-trace"),
    ("protocol.ext.allow", "always"),
    ("remote.evil.url", "ext::@"),
    ("remote.evil.uploadpack", "@"),
    ("remote.evil.receivepack", "@"),
    ("remote.ssh.url", "ssh://nowhere.invalid/x"),
    ("aynig.remote", "evil"),
    ("aynig.commandsFrom", "branch"),
    ("aynig.exec", "@"),
    ("aynig.notify", "@"),
    ("aynig.worktreeDir", "@-slots"),
    ("aynig.requireSignature", "true"),
];

/// A repository with every one of those, a branch that asks for a command, and attributes that name the drivers.
fn hostile(world: &World, name: &str) -> (PathBuf, PathBuf) {
    let (dir, fired) = (world.init(name), world.root().join("fired"));
    let go = format!("#!/bin/sh\ntouch '{}'\n{DONE}\n", fired.display());
    let files = [
        (".gitattributes", "* filter=x diff=x merge=x\n"),
        ("file.txt", "one\n"),
        (".aynig/command/go", &go),
    ];
    world.commit_files(&dir, "main", &files, "seed");
    world.git(&dir, &["reset", "-q", "--hard"]);
    world.raw_commit(&dir, "work", b"go\n\ndwp-state: go\ndwp-source: git:evil\n");
    world.raw_commit(
        &dir,
        "stalled",
        b"go\n\ndwp-state: stalled\ndwp-stalled-run: x\ndwp-origin-state: go\n",
    );
    let program = world.root().join("program");
    let script = format!("#!/bin/sh\necho \"$0 $*\" >>'{}'\nexit 1\n", fired.display());
    executable(&program, &script);
    for hook in
        ["post-checkout", "reference-transaction", "post-index-change", "pre-push", "fsmonitor-watchman"]
    {
        executable(&world.root().join("program-hooks").join(hook), &script);
        executable(&dir.join(".git/hooks").join(hook), &script);
    }
    let mut config = std::fs::read_to_string(dir.join(".git/config")).unwrap();
    for (key, value) in PROGRAMS {
        let (section, rest) = key.split_once('.').unwrap();
        let value = value.replace('@', program.to_str().unwrap());
        config += &match rest.rsplit_once('.') {
            Some((sub, key)) => format!("[{section} \"{sub}\"]\n\t{key} = \"{value}\"\n"),
            None => format!("[{section}]\n\t{rest} = \"{value}\"\n"),
        };
    }
    std::fs::write(dir.join(".git/config"), config).unwrap();
    (dir, fired)
}

/// K14, K33, S6, S7: nothing of the repository's configuration runs before a user trusts it
#[test]
fn s07_before_trust_no_program_of_the_configuration_runs() {
    let mut world = World::any();
    let (dir, fired) = hostile(&world, "repo");
    world.set("GIT_TERMINAL_PROMPT", "0");
    for args in [
        &["status"][..],
        &["status", "-v", "work"],
        &["status", "--json"],
        &["status", "--porcelain"],
        &["events", "work"],
        &["events", "work", "--history"],
        &["logs", "work"],
        &["doctor"],
        &["gc", "--dry-run"],
        &["hooks", "status"],
        &["trust", "--list"],
        &["tick"],
        &["tick", "work"],
        &["tick", "--detach"],
        &["tick", "--dry-run"],
        &["run"],
        &["hook", "post-commit"],
        &["hook", "post-merge"],
        &["-h"],
    ] {
        let said = world.aynig(&dir, args);
        let ran = std::fs::read_to_string(&fired).unwrap_or_default();
        assert!(ran.is_empty(), "{args:?} ran: {ran}{}{}", said.out, said.err);
    }
    assert!(!world.root().join("program-slots").exists() && !world.root().join("program-trace").exists());
    // The traps are real.
    world.try_git(&dir, &["fetch", "evil"]);
    world.try_git(&dir, &["status"]);
    assert!(std::fs::read_to_string(&fired).unwrap().lines().count() >= 2);
}

/// K33, S7: an object that a partial clone lacks is not fetched before a user trusts it
#[test]
fn s07_before_trust_nothing_is_fetched_for_a_partial_clone() {
    let world = World::any();
    let (dir, fired) = hostile(&world, "repo");
    let tree = world.git(&dir, &["-c", "core.fsmonitor=false", "rev-parse", "work^{tree}"]);
    for (key, value) in [
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "evil"),
        ("remote.evil.promisor", "true"),
        ("remote.evil.partialCloneFilter", "tree:0"),
    ] {
        world.git(&dir, &["config", key, value]);
    }
    std::fs::remove_file(dir.join(".git/objects").join(&tree[..2]).join(&tree[2..])).unwrap_or_else(|e| {
        // What fast-import wrote is in a pack: all of it goes, but for the commits that were written one by one.
        let _ = (e, std::fs::remove_dir_all(dir.join(".git/objects/pack")));
    });
    let _ = std::fs::remove_file(&fired);
    for args in [&["status"][..], &["status", "work"], &["doctor"], &["tick", "work"], &["events", "work"]] {
        let said = world.aynig(&dir, args);
        let ran = std::fs::read_to_string(&fired).unwrap_or_default();
        assert!(ran.is_empty(), "{args:?} ran: {ran}{}{}", said.out, said.err);
    }
    world.try_git(&dir, &["-c", "core.fsmonitor=false", "cat-file", "-p", &tree]);
    if std::fs::read_to_string(&fired).unwrap_or_default().is_empty() {
        support::skipped("S7: this git fetches nothing by itself");
    }
}

/// S7: on a server no driver runs: clean, smudge, process, LFS's own, diff, text conversion, merge
#[test]
fn s07_on_a_server_no_driver_runs_whatever_is_pushed() {
    let world = World::any();
    let dir = world.try_init("repo.git", &["--bare"]).unwrap();
    let fired = world.root().join("fired");
    let program = world.root().join("program");
    executable(&program, &format!("#!/bin/sh\necho \"$0 $*\" >>'{}'\ncat\n", fired.display()));
    let p = program.to_str().unwrap();
    for (key, value) in [
        ("filter.x.clean", p),
        ("filter.x.smudge", p),
        ("filter.x.required", "true"),
        ("filter.y.process", p),
        ("filter.lfs.process", p),
        ("filter.lfs.clean", p),
        ("filter.lfs.smudge", p),
        ("filter.lfs.required", "true"),
        ("diff.x.textconv", p),
        ("diff.x.command", p),
        ("merge.x.driver", p),
        ("core.fsmonitor", p),
    ] {
        global(&world, &[key, value]);
    }
    let attributes = "*.x filter=x diff=x merge=x\n*.y filter=y\n*.bin filter=lfs diff=lfs merge=lfs -text\n";
    let files = |go: &str| -> Vec<(String, String)> {
        let all = [
            (".gitattributes", attributes),
            ("a.x", "x\n"),
            ("a.y", "y\n"),
            ("a.bin", "bin\n"),
            (".aynig/command/go", go),
        ];
        all.map(|(k, v)| (k.to_owned(), v.to_owned())).to_vec()
    };
    let edit = format!("#!/bin/sh\nfor f in a.x a.y a.bin; do echo more >>$f; done\n{DONE}\n");
    let files = files(&edit);
    let files: Vec<(&str, &str)> = files.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    world.commit_files(&dir, "main", &files, "seed");
    world.aynig(&dir, &["trust", "--ref", "main"]).expect(0);
    for branch in ["a", "b", "c"] {
        world.aynig(&dir, &["set-state", "go", "-b", branch]).expect(0);
        world.commit_files(&dir, "other", &[("a.x", branch)], "other");
        world.aynig(&dir, &["tick", branch]).expect(0);
        assert_eq!(world.git(&dir, &["cat-file", "blob", &format!("{branch}:a.bin")]), "bin\nmore");
    }
    world.aynig(&dir, &["gc"]).expect(0);
    let ran = std::fs::read_to_string(&fired).unwrap_or_default();
    assert!(ran.is_empty(), "{ran}");
}

/// K33, S16: files of a branch that look like a bare repository are one only where Git says so
#[test]
fn s16_a_bare_repository_inside_a_branch_is_refused_as_git_refuses_it() {
    let world = World::any();
    let dir = repo(&world, &[]);
    global(&world, &["safe.bareRepository", "explicit"]);
    let inner = dir.join("docs");
    world.git(&dir, &["init", "-q", "--bare", "docs"]);
    let fired = world.root().join("fired");
    let program = world.root().join("program");
    executable(&program, &format!("#!/bin/sh\ntouch '{}'\n", fired.display()));
    let config = format!(
        "[core]\n\tbare = true\n\trepositoryformatversion = 0\n\tsshCommand = {0}\n[aynig]\n\tremote = x\n\
         [remote \"x\"]\n\turl = ssh://x/y\n",
        program.display()
    );
    std::fs::write(inner.join("config"), config).unwrap();
    let theirs = world.try_git(&inner, &["rev-parse", "--git-dir"]);
    if theirs.code == 0 {
        return support::skipped("S16: this git knows no safe.bareRepository");
    }
    for args in [&["status"][..], &["tick"], &["trust"], &["set-state", "build", "-b", "x"]] {
        let said = world.aynig(&inner, args).expect(128);
        assert!(said.err.contains("safe.bareRepository"), "{args:?}: {}", said.err);
    }
    assert!(!fired.exists());
    // Named, it is meant; and a repository's own folder is no such thing.
    world.aynig(&dir, &["--git-dir=docs", "trust", "--list"]).expect(0);
    tick(&world, &dir, "build", "work").expect(0);
}

/// K33, S16: `safe.directory` by `git -c` is as good here as it is to Git
#[test]
fn s16_a_foreign_repository_that_the_command_line_calls_safe_is_served() {
    if !support::world::is_root() {
        return support::skipped("S16: only root can give a repository away");
    }
    let world = World::any();
    let dir = repo(&world, &[]);
    nix::unistd::chown(&dir, Some(65534.into()), None).unwrap();
    nix::unistd::chown(&dir.join(".git"), Some(65534.into()), None).unwrap();
    assert_eq!(world.aynig(&dir, &["status"]).code, 128);
    let safe = format!("safe.directory={}", dir.display());
    for args in [["-c", &safe, "aynig", "status"], ["-c", "safe.directory=*", "aynig", "status"]] {
        world.try_git(&dir, &args).expect(0);
    }
    world.try_git(&dir, &["-c", "safe.directory=/other", "aynig", "status"]).expect(128);
    assert_eq!(world.try_git(&dir, &["status"]).code, 128, "as Git has it");
    // What resets the list there counts over what a file says, as it does for Git.
    world.git(&world.root(), &["config", "--global", "--add", "safe.directory", "*"]);
    world.try_git(&dir, &["aynig", "status"]).expect(0);
    for git in [&["aynig", "status"][..], &["status"]] {
        world.try_git(&dir, &[&["-c", "safe.directory="], git].concat()).expect(128);
    }
}

/// K34, S29: nothing is pushed to a path that only the repository names, and no process waits for that
#[test]
fn s29_before_trust_nothing_is_pushed_to_a_path() {
    let world = World::any();
    let dir = world.init("repo");
    Place::new(&world, &dir).seed();
    world.git(&world.root(), &["clone", "-q", "--bare", "repo", "other.git"]);
    world.git(&dir, &["remote", "add", "origin", "../other.git"]);
    global(&world, &["--unset", "protocol.file.allow"]);
    for args in [
        &["set-state", "build", "-b", "work", "--push"][..],
        &["set-state", "build", "-b", "work", "--remote", "origin"],
    ] {
        let said = world.aynig(&dir, args).expect(2);
        assert!(said.err.contains("not trusted: the hooks of a repository at a path"), "{}", said.err);
    }
    // Another key of that section says nothing of transports.
    global(&world, &["protocol.version", "2"]);
    world.aynig(&dir, &["status", "--remote", "origin"]).expect(0);
    global(&world, &["protocol.allow", "always"]);
    global(&world, &["--unset", "protocol.version"]);
    global(&world, &["protocol.version", "2"]);
    world.aynig(&dir, &["set-state", "build", "-b", "work", "--push"]).expect(0);
    global(&world, &["protocol.allow", "never"]);
    global(&world, &["protocol.file.allow", "always"]);
    world.aynig(&dir, &["set-state", "build", "-b", "other", "--push"]).expect(0);
}

/// K34, S29: Git's own transports are there before trust, as the account allows them; what the repository says of them
/// counts for nothing.
#[test]
fn s29_before_trust_the_account_says_which_transports_there_are() {
    let world = World::any();
    let dir = world.init("repo");
    Place::new(&world, &dir).seed();
    let asked = world.root().join("asked");
    let ssh = world.root().join("ssh");
    executable(&ssh, &format!("#!/bin/sh\ntouch '{}'\nexit 1\n", asked.display()));
    global(&world, &["core.sshCommand", ssh.to_str().unwrap()]);
    world.git(&dir, &["remote", "add", "origin", "ssh://nowhere.invalid/x"]);
    for (account, own, is_asked) in [
        (&[][..], &[][..], true),
        (&[("protocol.allow", "ALWAYS")], &[], true),
        (&[("protocol.allow", "Always"), ("protocol.ssh.allow", "user")], &[], false),
        (&[("protocol.allow", "never")], &[("protocol.ssh.allow", "always")], false),
        (
            &[("protocol.allow", "never"), ("protocol.ssh.allow", "always")],
            &[("protocol.allow", "never")],
            true,
        ),
        (&[], &[("protocol.allow", "never"), ("protocol.ssh.allow", "never")], true),
    ] {
        for (key, value) in account {
            global(&world, &[key, value]);
        }
        for (key, value) in own {
            world.git(&dir, &["config", key, value]);
        }
        let said = world.aynig(&dir, &["status", "--remote", "origin"]);
        assert_eq!(asked.exists(), is_asked, "{account:?} {own:?}: {}", said.err);
        let _ = std::fs::remove_file(&asked);
        // A helper that the address names is no transport of Git's.
        world.git(&dir, &["remote", "add", "helper", "nohelper::x"]);
        let said = world.aynig(&dir, &["status", "--remote", "helper"]);
        assert!(said.err.contains("transport 'nohelper' not allowed"), "{account:?} {own:?}: {}", said.err);
        world.git(&dir, &["remote", "remove", "helper"]);
        for (key, _) in account {
            global(&world, &["--unset", key]);
        }
        for (key, _) in own {
            world.git(&dir, &["config", "--unset", key]);
        }
    }
}

/// K34, S29: nor does a variable of the caller's open what an address makes a program of.
#[test]
fn s29_before_trust_no_variable_opens_another_transport() {
    let world = World::any();
    let dir = world.init("repo");
    Place::new(&world, &dir).seed();
    let fired = world.root().join("fired");
    let url = format!("ext::touch {}", fired.display());
    world.git(&dir, &["remote", "add", "origin", &url]);
    let call = |allowed: &str| {
        let mut command = world.command(world.root().join("bin/git-aynig"), &dir);
        command.env("GIT_ALLOW_PROTOCOL", allowed).args(["status", "--remote", "origin"]);
        Said::from(command.output().unwrap())
    };
    for allowed in ["ext", "ssh:ext:file", "file"] {
        let said = call(allowed);
        assert!(said.err.contains("transport 'ext' not allowed"), "{allowed}: {}", said.err);
        assert!(!fired.exists(), "{allowed}");
    }
    // What it names of Git's own counts as ever.
    world.git(&world.root(), &["clone", "-q", "--bare", "repo", "other.git"]);
    world.git(&dir, &["remote", "set-url", "origin", "../other.git"]);
    call("ext:file").expect(0);
    assert!(call("ssh").err.contains("transport 'file' not allowed"));
}

/// K34, S29: a repository inside of `.aynig/` is not asked for its changes, for which Git would start its filters
#[test]
fn s29_a_repository_inside_the_folder_of_commands_starts_nothing() {
    let world = World::any();
    let (dir, pack) = (world.init("repo"), world.init("pack"));
    world.commit_files(&pack, "main", &[(".aynig/command/go", "#!/bin/sh\n")], "pack");
    let inner = dir.join(".aynig/sub");
    std::fs::create_dir_all(&inner).unwrap();
    world.git(&inner, &["init", "-q"]);
    std::fs::write(inner.join("a"), "1\n").unwrap();
    world.git(&inner, &["add", "a"]);
    world.git(&inner, &["commit", "-qm", "s"]);
    std::fs::write(inner.join(".git/info/attributes"), "* filter=x\n").unwrap();
    let fired = world.root().join("fired");
    world.git(&inner, &["config", "filter.x.clean", &format!("touch '{}'; cat", fired.display())]);
    world.git(&dir, &["-c", "advice.addEmbeddedRepo=false", "add", ".aynig"]);
    world.git(&dir, &["commit", "-qm", "seed"]);
    // Another file of the same size.
    std::thread::sleep(std::time::Duration::from_millis(50));
    std::fs::remove_file(inner.join("a")).unwrap();
    std::fs::write(inner.join("a"), "2\n").unwrap();
    for args in [&["install", "--dry-run"][..], &["install"]] {
        world.aynig(&dir, &[args, &[pack.to_str().unwrap()]].concat()).expect(0);
        assert!(!fired.exists(), "{args:?}");
    }
    assert!(dir.join(".aynig/command/go").exists());
}
