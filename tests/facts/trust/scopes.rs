//! Who may say what runs, and where it counts (K33, K34).

use super::*;

/// K33, K34: nothing runs, nothing is claimed, and the printed command mends it
#[test]
fn an_untrusted_repository_runs_nothing_and_says_what_mends_it() {
    for git in gits() {
        for name in ["repo", "mein tölles 'repo' $x`y`\\z"] {
            let world = World::new(&git);
            let dir = world.init(name);
            Place::new(&world, &dir).seed();
            world.aynig(&dir, &["set-state", "build", "-b", "work"]).expect(0);
            let before = world.git(&dir, &["for-each-ref"]);
            let said = world.aynig(&dir, &["tick"]).expect(2);
            assert!(said.err.contains("not trusted"), "{}", said.err);
            let named = world.aynig(&dir, &["tick", "work"]).expect(2);
            assert_eq!(world.git(&dir, &["for-each-ref"]), before, "nothing is claimed");
            assert!(!dir.join(".aynig/logs").exists());
            paste(&world, &world.root(), &hint(&named)).expect(0);
            let said = world.aynig(&dir, &["tick"]).expect(0);
            assert!(said.out.starts_with("work: build -> review"), "{}", said.out);
        }
    }
}

/// K34: the hint works where HEAD is detached, in bare repositories, and without HOME
#[test]
fn the_hint_works_wherever_it_is_printed() {
    let world = World::any();
    let dir = asked(&world);
    world.git(&dir, &["checkout", "-q", "--detach"]);
    let said = world.aynig(&dir, &["tick"]).expect(2);
    paste(&world, &world.root(), &hint(&said)).expect(0);
    assert!(world.aynig(&dir, &["tick"]).expect(0).out.contains("build -> review"));

    let bare = world.try_init("bare.git", &["--bare"]).unwrap();
    Place::bare(&world, &bare).seed();
    world.aynig(&bare, &["set-state", "build", "-b", "work"]).expect(0);
    let said = world.aynig(&bare, &["tick"]).expect(2);
    paste(&world, &world.root(), &hint(&said)).expect(0);
    assert!(world.aynig(&bare, &["tick"]).expect(0).out.contains("build -> review"));

    let mut world = World::any();
    let dir = asked(&world);
    world.vars.remove(std::ffi::OsStr::new("HOME"));
    // A folder below a home that is not known is none in the repository.
    world.vars.insert("GIT_CONFIG_PARAMETERS".into(), "'aynig.worktreeDir'='~/slots'".into());
    let said = world.aynig(&dir, &["doctor"]);
    assert!(said.out.contains("bad value '~/slots' for 'aynig.worktreeDir'"), "{}{}", said.out, said.err);
    world.vars.remove(std::ffi::OsStr::new("GIT_CONFIG_PARAMETERS"));
    let said = world.aynig(&dir, &["tick"]).expect(2);
    let said = paste(&world, &world.root(), &hint(&said)).expect(0);
    assert!(said.out.contains("build -> review"), "{}", said.out);
}

/// K33: without HOME the user has no configuration, whatever home the system knows of
#[test]
fn without_a_home_the_one_of_the_password_file_does_not_count() {
    let mut world = World::any();
    let dir = asked(&world);
    let (home, passwd) = (world.root().join("passwd home"), world.root().join("passwd"));
    std::fs::create_dir(&home).unwrap();
    std::fs::write(home.join(".gitconfig"), "[aynig]\n\tcommandsFrom = branch\n").unwrap();
    let id = nix::unistd::geteuid();
    std::fs::write(&passwd, format!("me:x:{id}:{id}::{}:/bin/sh\n", home.display())).unwrap();
    let there = |world: &World, last: &str| {
        let script = format!("mount --bind \"$0\" /etc/passwd && {last}");
        let args = ["-m", "sh", "-c", &script, passwd.to_str().unwrap()];
        world.command("unshare", &dir).args(args).output().unwrap()
    };
    if !there(&world, "true").status.success() {
        return skipped("this user can't put a file in the place of another");
    }
    world.set("HOME", home.to_str().unwrap());
    assert_eq!(there(&world, "git aynig doctor | grep -c 'ok *trust'").stdout, b"1\n", "it would be trusted");
    world.vars.remove(std::ffi::OsStr::new("HOME"));
    let said: Said = there(&world, "git aynig tick work").into();
    assert!(said.expect(2).err.contains("not trusted"));
}

/// K33: what a repository says about itself is not heard, whichever file says it
#[test]
fn trust_from_the_repositorys_own_configuration_does_not_count() {
    for by_git in [false, true] {
        let mut world = World::any();
        let dir = asked(&world);
        if by_git {
            // Then git is asked for the configuration, not gix.
            world.set("GIT_CONFIG_PARAMETERS", "'user.name'='Ada'");
        }
        let refused = |what: &str| {
            let said = world.aynig(&dir, &["tick"]).expect(2);
            let warned = said.err.contains("warning:") && said.err.contains("commandsfrom");
            assert!(warned && said.err.contains("ignored"), "{what}, by git: {by_git}: {}", said.err);
        };
        world.git(&dir, &["config", "aynig.commandsFrom", "branch"]);
        refused("plain");
        world.git(&dir, &["config", "--unset", "aynig.commandsFrom"]);
        world.git(&dir, &["config", &format!("aynig.{}.commandsFrom", dir.join(".git").display()), "branch"]);
        refused("by path");
        world.git(&dir, &["config", "--remove-section", &format!("aynig.{}", dir.join(".git").display())]);
        std::fs::write(dir.join("included"), "[aynig]\n\tcommandsFrom = branch\n").unwrap();
        world.git(&dir, &["config", "include.path", "../included"]);
        refused("included");
        world.git(&dir, &["config", "--unset", "include.path"]);
        world.git(&dir, &["config", "extensions.worktreeConfig", "true"]);
        world.git(&dir, &["config", "--worktree", "aynig.commandsFrom", "branch"]);
        refused("of the worktree");
    }
}

/// K33
#[test]
fn other_protected_keys_of_the_repository_are_ignored_with_a_warning() {
    for by_git in [false, true] {
        let mut world = World::any();
        let dir = asked(&world);
        world.aynig(&dir, &["trust"]).expect(0);
        let elsewhere = world.root().join("elsewhere");
        for (key, value) in [
            ("branches", "nothing"),
            ("exec", "false"),
            ("notify", "false"),
            ("budgetPerDay", "0"),
            ("budgetPerBranch", "0"),
            ("passEnv", "NOTHING"),
            ("trailerEnv", "*"),
            ("requireSignature", "true"),
            ("worktreeDir", elsewhere.to_str().unwrap()),
        ] {
            world.git(&dir, &["config", &format!("aynig.{key}"), value]);
        }
        if by_git {
            world.set("GIT_CONFIG_PARAMETERS", "'user.name'='Ada'");
        }
        let said = world.aynig(&dir, &["tick"]).expect(0);
        assert!(said.out.contains("build -> review"), "{}", said.out);
        for key in [
            "branches",
            "budgetperbranch",
            "budgetperday",
            "exec",
            "notify",
            "passenv",
            "requiresignature",
            "trailerenv",
            "worktreedir",
        ] {
            assert!(said.err.contains(&format!("'aynig.{key}'")), "{key}: {}", said.err);
        }
        assert!(!elsewhere.exists());
    }
}

/// K33: per repository, by path or glob
#[test]
fn trust_may_name_one_repository_or_several() {
    let cases: &[(&str, bool)] = &[
        ("{}/repo/.git", true),
        ("{}/repo/.git/", true),
        ("{}/repo", true),
        ("{}/*", true),
        ("{}/r?po/.git", true),
        ("{}", false),
        ("{}/rep", false),
        ("{}/repo/.git/x", false),
        ("{}/Repo", false),
        ("*/other/*", false),
    ];
    for (place, counts) in cases {
        let world = World::any();
        let dir = asked(&world);
        let place = place.replace("{}", world.root().to_str().unwrap());
        global(&world, &[&format!("aynig.{place}.commandsFrom"), "branch"]);
        world.aynig(&dir, &["tick"]).expect(if *counts { 0 } else { 2 });
    }
}

/// K33: the path that `trust` writes is no glob
#[test]
fn trust_of_a_path_with_glob_characters_trusts_no_other() {
    let world = World::any();
    for name in ["r[ab]", "ra", "r*", "r?", "r\\a"] {
        let dir = world.init(name);
        Place::new(&world, &dir).seed();
        world.aynig(&dir, &["set-state", "build", "-b", "work"]).expect(0);
    }
    for name in ["r[ab]", "r*", "r?", "r\\a"] {
        let dir = world.root().join(name);
        world.aynig(&dir, &["tick"]).expect(2);
        world.aynig(&dir, &["trust"]).expect(0);
        world.aynig(&dir, &["tick"]).expect(0);
    }
    world.aynig(&world.root().join("ra"), &["tick"]).expect(2);
}

/// K33
#[test]
fn trust_is_listed_and_revoked() {
    let world = World::any();
    let dir = asked(&world);
    let git_dir = dir.join(".git").display().to_string();
    assert_eq!(world.aynig(&dir, &["trust", "--list"]).expect(0).out, "");
    world.aynig(&dir, &["trust"]).expect(0);
    let said = world.aynig(&dir, &["trust", "--list"]).expect(0);
    assert_eq!(said.out, format!("refs/heads/main {git_dir}\n"));
    world.aynig(&dir, &["trust", "--branches"]).expect(0);
    assert_eq!(world.aynig(&dir, &["trust", "--list"]).expect(0).out, format!("branch {git_dir}\n"));
    world.aynig(&dir, &["trust", "--ref", "refs/tags/v1"]).expect(0);
    assert_eq!(world.aynig(&dir, &["trust", "--list"]).expect(0).out, format!("refs/tags/v1 {git_dir}\n"));
    world.aynig(&dir, &["trust", "--revoke"]).expect(0);
    assert_eq!(world.aynig(&dir, &["trust", "--list"]).expect(0).out, "");
    world.aynig(&dir, &["tick"]).expect(2);
    world.aynig(&dir, &["trust", "--revoke"]).expect(0);
    // What still trusts it is said.
    global(&world, &["aynig.commandsFrom", "branch"]);
    let said = world.aynig(&dir, &["trust", "--revoke"]).expect(2);
    assert!(said.err.contains("still"), "{}", said.err);
    world.aynig(&dir, &["trust", "--ref", "a..b"]).expect(129);
}

/// K33: a key may name a repository by its working tree; it is for that one all the same.
#[test]
fn trust_by_the_working_tree_is_revoked_too() {
    let world = World::any();
    let dir = asked(&world);
    let place = dir.display().to_string();
    for key in [format!("aynig.{place}.commandsFrom"), format!("aynig.{place}/.commandsFrom")] {
        global(&world, &[&key, "branch"]);
    }
    world.aynig(&dir, &["trust"]).expect(0);
    world.aynig(&dir, &["trust", "--revoke"]).expect(0);
    assert_eq!(world.aynig(&dir, &["trust", "--list"]).expect(0).out, "");
    world.aynig(&dir, &["tick"]).expect(2);
    // A pattern is for others too, and so is a repository that is named beside it.
    let all = format!("{}/*", dir.parent().unwrap().display());
    global(&world, &[&format!("aynig.{all}.commandsFrom"), "branch"]);
    let other = world.init("other");
    global(&world, &[&format!("aynig.{}.commandsFrom", other.display()), "branch"]);
    assert!(world.aynig(&dir, &["trust", "--revoke"]).expect(2).err.contains("still trusted"));
    let listed = world.aynig(&dir, &["trust", "--list"]).expect(0).out;
    assert_eq!(listed, format!("branch {all}\nbranch {}\n", other.display()));
}

/// K33, S25: trust would change nothing where a conditional include takes it away; a hook says where that is.
#[test]
fn s25_a_hook_names_the_key_of_a_conditional_include_instead_of_trust() {
    let world = World::any();
    let dir = asked(&world);
    world.aynig(&dir, &["hooks", "install"]).expect(0);
    let (config, one) = (world.home().join(".gitconfig"), world.home().join("one"));
    std::fs::write(&one, "[aynig]\n\tcommandsFrom = main\n").unwrap();
    let clean = std::fs::read_to_string(&config).unwrap();
    let conditional = format!("{clean}[includeIf \"onbranch:main\"]\n\tpath = {}\n", one.display());
    let commit = || {
        let trailer = "dwp-state: build";
        let args = ["commit", "-q", "--allow-empty", "-m", "go", "--trailer", trailer];
        world.run("git", &dir, &args).expect(0).err
    };
    assert!(commit().contains("aynig: not trusted, nothing runs: git -C "));
    std::fs::write(&config, conditional).unwrap();
    let said = commit();
    assert!(said.contains("aynig: 'aynig.commandsfrom' is in a file that is included only for"), "{said}");
    assert!(said.contains("config --show-origin --get-regexp '^aynig\\.(.*\\.)?commandsfrom$'"), "{said}");
    assert!(!said.contains("aynig trust"), "{said}");
}

/// K33, S25: the account includes a file where the repository is on some branch, or has some remote. The repository
/// says then whether it holds: nothing may run by it, nor without what it asks for. Where the Git directory is, the
/// file system says. Git itself takes no `safe.directory` from any of them.
#[test]
fn s25_what_the_repository_has_git_include_decides_nothing_about_what_may_run() {
    for git in gits() {
        let world = World::new(&git);
        let dir = asked(&world);
        world.git(&dir, &["remote", "add", "far", "https://example.com/far"]);
        let config = world.home().join(".gitconfig");
        let clean = std::fs::read_to_string(&config).unwrap();
        let (one, two) = (world.home().join("one"), world.home().join("two"));
        let by_place = format!("includeIf \"gitdir:{}/\"", world.root().display());
        let on = "includeIf \"onbranch:main\"";
        let has = "includeIf \"hasconfig:remote.*.url:https://example.com/**\"";
        let trust = "[aynig]\n\tcommandsFrom = main\n";
        // (what the account says itself, how `one` is included, what is in it and in `two`, whether it runs)
        let cases = [
            ("", "include", trust, "", true),
            ("", &*by_place, trust, "", true),
            ("", on, trust, "", false),
            ("", has, trust, "", false),
            ("", on, "[include]\n\tpath = two\n", trust, false),
            ("", "include", "[includeIf \"onbranch:main\"]\n\tpath = two\n", trust, false),
            (
                "",
                "include",
                "[includeIf \"onbranch:main\"]\n\tpath = two\n[aynig]\n\tcommandsFrom = main\n",
                "",
                true,
            ),
            (trust, on, "[aynig]\n\texec = env\n", "", false),
            (trust, has, "[aynig]\n\tbranches = work\n", "", false),
            (trust, on, "[aynig]\n\tjobs = 2\n", "", true),
            // What does not hold says nothing, and what is behind it does.
            ("", "includeIf \"onbranch:other\"", "", "", false),
            (trust, "includeIf \"onbranch:other\"", trust, "", true),
        ];
        for (n, (own, how, first, second, runs)) in cases.iter().enumerate() {
            let branch = format!("b{n}");
            let before = format!("{clean}\n[{how}]\n\tpath = {}\n{own}", one.display());
            let after = format!("{clean}\n{own}[{how}]\n\tpath = {}\n[core]\n\tx = y\n", one.display());
            std::fs::write(&one, first).unwrap();
            std::fs::write(&two, second).unwrap();
            for text in [before, after] {
                std::fs::write(&config, &text).unwrap();
                let mut told = world.command("git-aynig", &dir);
                let by_git = text.contains("x = y");
                if by_git {
                    told.env("GIT_CONFIG_PARAMETERS", "'aynig.hops'='1'");
                }
                world.aynig(&dir, &["set-state", "build", "-b", &branch]).expect(0);
                let said = Said::from(told.args(["tick", &branch]).output().unwrap());
                let what = format!("{text}{first}{second}: {}{}", said.out, said.err);
                assert_eq!(said.out.contains("build -> review"), *runs, "{what}");
                assert_eq!(said.code, if *runs { 0 } else { 2 }, "{what}");
                let told = said.err.contains("only for this branch or remote");
                assert_eq!(told, !runs && how != &"includeIf \"onbranch:other\"", "{what}");
                let listed = world.aynig(&dir, &["trust", "--list"]).expect(0).out;
                let trusts = *runs || own == &trust;
                assert_eq!(listed.contains("main *"), trusts, "{what}: {listed}");
                let doctor = world.aynig(&dir, &["doctor"]).out;
                assert_eq!(doctor.contains("only for this branch or remote"), told, "{what}: {doctor}");
            }
        }
    }
}

/// K33: a path that a key can't hold is trusted by itself, and no other that looks like it.
#[test]
fn trust_in_a_path_that_is_no_text_is_in_that_path_alone() {
    use std::os::unix::ffi::OsStrExt;
    let world = World::any();
    let cases: [(&[u8], [&str; 2]); 3] =
        [(b"\xff\xff\xff\xff", ["evil", "????"]), (b"caf\xe9", ["cafe", "caf"]), (b"a\nb", ["aXb", "ab"])];
    for (odd, others) in cases {
        let odd = world.init(std::ffi::OsStr::from_bytes(odd));
        Place::new(&world, &odd).seed();
        let looked = |dir: &Path| {
            world.aynig(dir, &["set-state", "build", "-b", "work"]).expect(0);
            world.aynig(dir, &["tick", "-n"])
        };
        world.aynig(&odd, &["trust", "--branches"]).expect(0);
        looked(&odd).expect(0);
        for other in others {
            let other = world.init(other);
            Place::new(&world, &other).seed();
            let said = looked(&other);
            assert!(said.code == 2 && said.err.contains("not trusted"), "{odd:?} {other:?}: {said:?}");
        }
        // Nor one whose path reads as the key does.
        let key =
            world.git(&world.root(), &["config", "--global", "--name-only", "--get-regexp", "commandsfrom"]);
        let twin = key.trim().trim_start_matches("aynig.").rsplit_once('.').unwrap().0.replace('\\', "");
        std::fs::create_dir_all(Path::new(&twin).parent().unwrap()).unwrap();
        world.git(&odd, &["clone", "-q", "--bare", ".", &twin]);
        let twin = Path::new(&twin);
        let said = looked(twin);
        assert!(said.code == 2 && said.err.contains("not trusted"), "{odd:?} {twin:?}: {said:?}");
        world.aynig(twin, &["trust", "--branches"]).expect(0);
        looked(twin).expect(0);
        world.aynig(twin, &["trust", "--revoke"]).expect(0);
        world.aynig(&odd, &["trust", "--revoke"]).expect(0);
    }
    let config = std::fs::read_to_string(world.home().join(".gitconfig")).unwrap();
    assert!(!config.to_ascii_lowercase().contains("commandsfrom"), "{config}");
}

/// K33: what is no text is refused by name where it would count, and is nothing elsewhere: read as something else,
/// or left out, it could be what keeps commands in
#[test]
fn configuration_that_is_no_text_is_refused_by_name() {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    for by_git in [false, true] {
        let mut world = World::any();
        if by_git {
            world.set("GIT_CONFIG_PARAMETERS", "'aynig.hops'='1'");
        }
        let plain = asked(&world);
        let odd = world.init(std::ffi::OsString::from_vec(b"od\xffd".to_vec()));
        Place::new(&world, &odd).seed();
        world.aynig(&odd, &["set-state", "build", "-b", "work"]).expect(0);
        let config = world.home().join(".gitconfig");
        let clean = [&*std::fs::read(&config).unwrap(), b"[aynig]\n\tcommandsFrom = main\n"].concat();
        let own = [b"[aynig \"", odd.join(".git").as_os_str().as_bytes(), b"\"]\n\texec = env\n"].concat();
        let others = b"[aynig \"/nowhere\"]\n\texec = \xff\n[user]\n\tsigningKey = \xff\n".to_vec();
        // (what is said, of which repository, what the refusal names)
        let cases: [(&[u8], _, Option<&str>); 6] = [
            (&own, &odd, Some("od\\xffd/.git.exec' in the configuration is not UTF-8")),
            (&own, &plain, None),
            (&others, &plain, None),
            (
                b"[aynig]\n\texec = /opt/caf\xe9\n",
                &plain,
                Some("'aynig.exec' in the configuration is not UTF-8"),
            ),
            (b"[aynig]\n\tjobs = \xff\n", &plain, Some("'aynig.jobs' in the configuration is not UTF-8")),
            (b"[user]\n\tname = Jos\xe9\n", &plain, Some("'user.name' in the configuration is not UTF-8")),
        ];
        for (said, dir, refused) in cases {
            std::fs::write(&config, [&*clean, said].concat()).unwrap();
            let told = world.aynig(dir, &["tick", "--dry-run"]);
            let what = format!("{}, by git: {by_git}: {}{}", said.escape_ascii(), told.out, told.err);
            match refused {
                Some(words) => assert!(told.code == 128 && told.err.contains(words), "{what}"),
                None => assert_eq!(told.code, 0, "{what}"),
            }
        }
    }
}

/// K33: an annotated tag stands for the commit that it names.
#[test]
fn commands_come_from_an_annotated_tag() {
    let world = World::any();
    let dir = asked(&world);
    world.git(&dir, &["tag", "-a", "v1", "-m", "v1", "main"]);
    world.aynig(&dir, &["trust", "--ref", "refs/tags/v1"]).expect(0);
    world.aynig(&dir, &["status"]).expect(0);
    let found = world.aynig(&dir, &["doctor"]);
    assert!(!found.out.contains("it is a tag") && found.out.contains("command/build"), "{found:?}");
    let said = world.aynig(&dir, &["tick"]).expect(0);
    assert!(said.out.contains("build -> review"), "{said:?}");
    world.aynig(&dir, &["gc"]).expect(0);
}
