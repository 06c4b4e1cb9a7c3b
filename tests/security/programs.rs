//! Every verb, and every key of a repository's configuration that starts a program: row S29.
//!
//! The verbs come from the definition of the command line: one that is not in [`VERBS`] fails the test. All keys
//! stand in one configuration, each with a program of its own that says its name; `AYNIG_CAMPAIGN=full` tries each
//! alone too.

use super::*;
use std::collections::BTreeSet;

/// Keys that make Git, or what Git starts, start a program; `@` is one that notes the key.
const KEYS: &[(&str, &str)] = &[
    ("alias.status", "!@"),
    ("alias.update-ref", "!@"),
    ("browser.x.cmd", "@"),
    ("core.alternateRefsCommand", "@"),
    ("core.askPass", "@"),
    ("core.editor", "@"),
    ("core.fsmonitor", "@"),
    ("core.gitProxy", "@"),
    ("core.hooksPath", "@-hooks"),
    ("core.pager", "@"),
    ("core.sshCommand", "@"),
    ("credential.helper", "!@"),
    ("credential.https://nowhere.invalid.helper", "!@"),
    ("diff.external", "@"),
    ("diff.x.command", "@"),
    ("diff.x.textconv", "@"),
    ("difftool.x.cmd", "@"),
    ("filter.x.clean", "@"),
    ("filter.x.smudge", "@"),
    ("filter.x.required", "true"),
    ("filter.y.process", "@"),
    ("filter.lfs.process", "@"),
    ("filter.lfs.clean", "@"),
    ("filter.lfs.smudge", "@"),
    ("gc.recentObjectsHook", "@"),
    ("gc.auto", "1"),
    ("gpg.program", "@"),
    ("gpg.openpgp.program", "@"),
    ("gpg.ssh.program", "@"),
    ("gpg.ssh.defaultKeyCommand", "@"),
    ("gpg.ssh.allowedSignersFile", "/dev/null"),
    ("gpg.x509.program", "@"),
    ("hook.x.command", "@"),
    ("hook.x.event", "reference-transaction"),
    ("hook.y.command", "@"),
    ("hook.y.event", "post-index-change"),
    ("interactive.diffFilter", "@"),
    ("lfs.customtransfer.x.path", "@"),
    ("lfs.standalonetransferagent", "x"),
    ("lfs.extension.x.clean", "@"),
    ("lfs.extension.x.smudge", "@"),
    ("log.showSignature", "true"),
    ("maintenance.auto", "true"),
    ("man.viewer", "x"),
    ("man.x.cmd", "@"),
    ("merge.x.driver", "@"),
    ("mergetool.x.cmd", "@"),
    ("pager.status", "@"),
    ("pager.log", "@"),
    ("protocol.allow", "always"),
    ("protocol.ext.allow", "always"),
    ("remote.ext.url", "ext::@"),
    ("remote.foreign.vcs", "ext"),
    ("remote.foreign.url", "@"),
    ("remote.git.url", "git://127.0.0.1:1/x"),
    ("remote.https.url", "https://127.0.0.1:1/x"),
    ("remote.instead.url", "insteadof:x"),
    ("remote.origin.url", "ssh://nowhere.invalid/x"),
    ("remote.path.url", "../other.git"),
    ("remote.packs.url", "../plain.git"),
    ("remote.packs.uploadpack", "@"),
    ("remote.packs.receivepack", "@"),
    ("url.ext::@ .insteadOf", "insteadof:"),
    ("sequence.editor", "@"),
    ("submodule.sub.update", "!@"),
    ("submodule.recurse", "true"),
    ("trailer.x.command", "@"),
    ("trailer.y.cmd", "@"),
    ("uploadpack.packObjectsHook", "@"),
    ("commit.gpgSign", "true"),
    ("user.signingKey", "x"),
    ("web.browser", "x"),
    ("new.unheardOfCommand", "@"),
    ("aynig.remote", "ext"),
    ("aynig.commandsFrom", "branch"),
    ("aynig.exec", "@"),
    ("aynig.notify", "@"),
    ("aynig.requireSignature", "true"),
];

/// Every remote that those name.
const REMOTES: &[&str] = &["ext", "foreign", "git", "https", "instead", "origin", "path", "packs"];

/// How each verb is called; `&` is any of those remotes.
const VERBS: &[(&str, &[&[&str]])] = &[
    ("init", &[&[]]),
    ("tick", &[&[], &["work"], &["-n"], &["--detach"], &["--remote", "&"], &["--remote", "&", "work"]]),
    ("run", &[&[], &["--remote", "&"]]),
    (
        "set-state",
        &[
            &["go"],
            &["go", "-b", "new"],
            &["go", "-b", "pushed", "--push"],
            &["go", "-b", "far", "--remote", "&"],
            &["go", "--emit"],
        ],
    ),
    ("set-working", &[&["-b", "work"], &["-b", "far", "--remote", "&"]]),
    (
        "status",
        &[
            &[],
            &["-v", "work"],
            &["--json"],
            &["--porcelain"],
            &["--waiting"],
            &["--remote", "&"],
            &["--remote", "&", "work"],
        ],
    ),
    ("events", &[&["work"], &["--all"], &["work", "--history"], &["work", "--remote", "&"]]),
    ("usage", &[&[], &["--remote", "&"]]),
    ("wait", &[&["work", "--timeout", "0"], &["work", "--remote", "&", "--timeout", "0"]]),
    (
        "diff",
        &[
            &["main"],
            &["main", "--", "--stat"],
            &["main", "--", "--ext-diff"],
            &["main", "--", "--textconv", "-p"],
            &["main", "--", "--submodule=diff"],
            &["main", "--remote", "&"],
        ],
    ),
    ("logs", &[&["work"], &["work", "--path"]]),
    (
        "send",
        &[
            &["work", "-m", "x"],
            &["work", "-m", "x", "--attach", "main"],
            &["far", "-m", "x", "--remote", "&"],
        ],
    ),
    ("inbox", &[&["work"], &["far", "--remote", "&"]]),
    ("ask", &[&["x"]]),
    ("answer", &[&["work", "yes"], &["far", "yes", "--remote", "&"]]),
    ("approve", &[&["work"], &["far", "--remote", "&"]]),
    ("reject", &[&["work"], &["far", "--remote", "&"]]),
    ("pause", &[&["none"], &["none", "--stop"], &["none", "--remote", "&"]]),
    ("resume", &[&[], &["--all"], &["--all", "--remote", "&"]]),
    // Not an address of this machine: it ends there. What it does over a repository is the verbs' own code.
    ("serve", &[&["--bind", "203.0.113.1", "--port", "0"]]),
    // No server listens there: it ends at that.
    ("mcp", &[&["--socket", "none"]]),
    ("fan", &[&["work", "-n", "2"], &["work", "-n", "2", "--no-tick"]]),
    ("choose", &[&["work"]]),
    ("compare", &[&["work", "stalled"], &["work", "stalled", "--json"]]),
    ("land", &[&["work"], &["work", "--linear", "--onto", "main"], &["work", "--no-tick"]]),
    ("shell", &[&["stalled"]]),
    ("flow init", &[&[]]),
    ("flow new", &[&["other"]]),
    ("flow list", &[&[], &["--json"], &["--remote", "&"]]),
    ("flow show", &[&["f"], &["f", "--json"], &["f", "--remote", "&"]]),
    (
        "flow node",
        &[
            &["add", "f", "--label", "New", "--role", "implementer", "--provider", "custom"],
            &["set", "f", "One", "--label", "Other"],
            &["remove", "f", "One"],
        ],
    ),
    ("flow edge", &[&["add", "f", "Two", "One"], &["remove", "f", "One"]]),
    ("flow send", &[&["f", "One", "-m", "x"], &["f", "One", "-m", "x", "--remote", "&"]]),
    ("flow interrupt", &[&["f", "One"], &["f", "One", "-m", "x"]]),
    ("flow reset", &[&["f", "One"]]),
    ("flow pause", &[&["f"]]),
    ("flow resume", &[&["f"]]),
    ("flow stop", &[&["f"], &["f", "One"]]),
    ("flow start", &[&["f", "One"]]),
    ("flow mode", &[&["f", "auto"]]),
    ("flow set", &[&["f", "--status", "completed"]]),
    ("flow rm", &[&["f", "One"], &["f"]]),
    ("flow approvals", &[&[], &["f"]]),
    ("flow approve", &[&["x"]]),
    ("flow deny", &[&["x"]]),
    ("flow modify", &[&["x", "{}"]]),
    ("flow template", &[&["list"], &["show", "planner"], &["rm", "planner"]]),
    ("flow events", &[&["f"], &["f", "--json"], &["f", "--remote", "&"]]),
    ("flow artifacts", &[&["f"]]),
    ("flow route", &[&[]]),
    ("flow turn", &[&[]]),
    ("cancel", &[&["leased"], &["--all"], &["leased", "--remote", "&"]]),
    ("retry", &[&["stalled"], &["sta*"], &["main"], &["stalled", "--remote", "&"]]),
    ("hooks", &[&["status"], &["install"], &["uninstall"]]),
    ("govern start", &[&[], &["-b", "work"], &["--remote", "&"], &["--root", "."]]),
    ("govern status", &[&[], &["-b", "work"], &["--remote", "&"], &["--root", "."]]),
    ("govern assign", &[&["dev"], &["dev", "-b", "work"], &["dev", "--root", "."]]),
    ("govern accept", &[&[], &["-b", "work"], &["--root", "."]]),
    ("govern reject", &[&["-m", "x"], &["-m", "x", "-b", "work"], &["-m", "x", "--root", "."]]),
    ("govern approve-phase", &[&[], &["-b", "work"], &["--root", "."]]),
    ("govern approve-completion", &[&[], &["-b", "work"], &["--root", "."]]),
    ("govern block", &[&["-m", "x"], &["-m", "x", "-b", "work"], &["-m", "x", "--root", "."]]),
    ("govern unblock", &[&["-m", "x"], &["-m", "x", "-b", "work"], &["-m", "x", "--root", "."]]),
    ("govern escalate", &[&["-m", "x"], &["-m", "x", "-b", "work"], &["-m", "x", "--root", "."]]),
    ("govern loop", &[&[], &["--root", ".", "--", "true"]]),
    ("govern turn", &[&["--role", "dev"], &["--role", "dev", "--", "true"]]),
    ("install", &[&["-n", "../pack"], &["../pack"], &["ext::../program"]]),
    ("gc", &[&["-n"], &[]]),
    ("uninstall", &[&["--dry-run"], &["--force"], &["--force", "--attempts", "--trust"]]),
    ("doctor", &[&[], &["--network"], &["--history"], &["--history", "work"]]),
    ("demo", &[&[]]),
    // What hooks call, which is in no page.
    ("hook", &[&["post-commit"], &["post-merge"], &["post-rewrite", "rebase"], &["post-receive"]]),
    ("chain", &[&["work"], &["--pushed", "work"]]),
    ("trust", &[&["--list"], &["--revoke"], &["--ref", "main"]]),
];

/// Hooks that what a verb does could fire.
const HOOKS: &[&str] = &["reference-transaction", "post-index-change", "post-checkout", "pre-push"];

/// Verbs that judge or make signatures, where those are asked for.
const SIGNING: &[&str] = &["tick", "set-state", "set-working", "status", "cancel", "retry", "doctor"];

/// The verbs that the command line has, those below others by both names.
fn verbs() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut command = aynig::cli::command();
    // Verbs' own arguments, and the verbs below them, are defined only now.
    command.build();
    for verb in command.get_subcommands() {
        let below = verb.get_subcommands().filter(|below| below.get_name() != "help");
        let below: Vec<_> = below.map(|v| format!("{} {}", verb.get_name(), v.get_name())).collect();
        found.extend(if below.is_empty() { vec![verb.get_name().to_owned()] } else { below });
    }
    found
}

struct Scene {
    world: World,
    fired: PathBuf,
    original: PathBuf,
}

impl Scene {
    /// A repository with everything for a verb to work on, made while it was trusted.
    fn new() -> Self {
        let world = World::any();
        // What the account says of transports is nothing at all.
        global(&world, &["--unset", "protocol.file.allow"]);
        let dir = world.init("original");
        let edit = format!("#!/bin/sh\necho edited >>a.x\necho edited >>a.y\necho edited >>a.bin\n{DONE}\n");
        let files = [
            (
                ".gitattributes",
                "*.x filter=x diff=x merge=x\n*.y filter=y\n*.bin filter=lfs diff=lfs -text\n",
            ),
            ("a.x", "one\n"),
            ("a.y", "one\n"),
            ("a.bin", "one\n"),
            (".aynig/command/go", &edit),
            (".aynig/command/turn", &edit),
            (".aynig/command/route", &edit),
            (".aynig/land", "check: go\n"),
        ];
        world.commit_files(&dir, "main", &files, "seed");
        world.git(&dir, &["reset", "-q", "--hard"]);
        world.aynig(&dir, &["trust", "--branches"]).expect(0);
        // An outcome that has not arrived: 'retry' lands it in the working tree.
        world.aynig(&dir, &["set-state", "go"]).expect(0);
        std::fs::write(dir.join("a.x"), "in the way\n").unwrap();
        world.aynig(&dir, &["tick", "main"]).expect(1);
        std::fs::write(dir.join("a.x"), "one\n").unwrap();
        world.raw_commit(&dir, "work", b"go\n\ndwp-state: go\ndwp-source: git:ext\n");
        world.raw_commit(&dir, "pushed", b"go\n");
        let trigger = world.raw_commit(&dir, "stalled", b"go\n\ndwp-state: go\n");
        let stalled = format!(
            "x\n\ndwp-state: stalled\ndwp-stalled-run: x\ndwp-origin-state: go\ndwp-trigger: {trigger}\n"
        );
        world.raw_commit(&dir, "stalled", stalled.as_bytes());
        world.raw_commit(
            &dir,
            "leased",
            b"x\n\ndwp-state: working\ndwp-run-id: x\ndwp-lease-seconds: 3000\n",
        );
        world.aynig(&dir, &["flow", "new", "f", "--mode", "interactive"]).expect(0);
        for label in ["One", "Two"] {
            let node = ["flow", "node", "add", "f", "--label", label, "--role", "implementer"];
            world.aynig(&dir, &[&node[..], &["--provider", "custom"]].concat()).expect(0);
        }
        world.aynig(&dir, &["flow", "edge", "add", "f", "One", "Two"]).expect(0);
        world.aynig(&dir, &["flow", "send", "f", "Two", "-m", "x"]).expect(0);
        world.aynig(&dir, &["trust", "--revoke"]).expect(0);
        let pack = world.init("pack");
        world.commit_files(&pack, "main", &[(".aynig/command/packed", "#!/bin/sh\n")], "pack");
        let fired = world.root().join("fired");
        let scene = Self { world, fired, original: dir };
        for name in ["other.git", "plain.git"] {
            let at = scene.world.root().join(name);
            scene.world.git(&scene.world.root(), &["clone", "-q", "--bare", "original", name]);
            if name == "other.git" {
                for hook in ["pre-receive", "update", "post-receive", "post-update", "reference-transaction"]
                {
                    executable(&at.join("hooks").join(hook), &scene.script("hooks of another path"));
                }
            }
        }
        for hook in HOOKS {
            let path = scene.world.root().join("programs/core-hooksPath-hooks").join(hook);
            executable(&path, &scene.script("core.hooksPath"));
        }
        // What a key falls back to is the account's own.
        for own in ["ssh", "git-lfs"] {
            let _ = std::fs::remove_file(scene.world.root().join("bin").join(own));
            executable(&scene.world.root().join("bin").join(own), "#!/bin/sh\nexit 255\n");
        }
        scene
    }

    fn script(&self, name: &str) -> String {
        format!("#!/bin/sh\necho '{name}' >>'{}'\nexit 1\n", self.fired.display())
    }

    /// A fresh copy of the repository with these keys.
    fn copy(&self, keys: &[(&str, &str)]) -> PathBuf {
        let dir = self.world.root().join("repo");
        let _ = std::fs::remove_dir_all(&dir);
        let _ = std::fs::remove_file(&self.fired);
        let copied =
            self.world.command("cp", &self.world.root()).arg("-r").args([&self.original, &dir]).status();
        assert!(copied.unwrap().success());
        let _ = std::fs::remove_dir_all(dir.join(".git/worktrees"));
        let mut config = std::fs::read_to_string(dir.join(".git/config")).unwrap();
        for hook in HOOKS {
            executable(&dir.join(".git/hooks").join(hook), &self.script("a hook"));
        }
        for (key, value) in keys {
            let name = key.replace(['/', '.', ':', '@', ' '], "-");
            let program = self.world.root().join("programs").join(&name);
            if !program.exists() {
                executable(&program, &self.script(key));
            }
            let (key, value) =
                (key.replace('@', program.to_str().unwrap()), value.replace('@', program.to_str().unwrap()));
            let (section, rest) = key.split_once('.').unwrap();
            config += &match rest.rsplit_once('.') {
                Some((sub, key)) => format!("[{section} \"{sub}\"]\n\t{key} = \"{value}\"\n"),
                None => format!("[{section}]\n\t{rest} = \"{value}\"\n"),
            };
        }
        std::fs::write(dir.join(".git/config"), config).unwrap();
        dir
    }

    fn fired(&self) -> String {
        std::fs::read_to_string(&self.fired).unwrap_or_default()
    }

    /// Calls a verb in each of its ways, on a fresh copy each time; what fired, with the call.
    fn call(&self, verb: &str, ways: &[&[&str]], keys: &[(&str, &str)]) -> Vec<String> {
        let mut all = Vec::new();
        for way in ways {
            let remotes = match way.contains(&"&") {
                false => &[""],
                true if times(1, 0) == 1 || matches!(verb, "set-state" | "status") => REMOTES,
                true => &["ext", "packs"],
            };
            for remote in remotes {
                let args: Vec<&str> =
                    verb.split(' ').chain(way.iter().map(|a| if *a == "&" { *remote } else { *a })).collect();
                let dir = self.copy(keys);
                let mut command = self.world.command(self.world.root().join("bin/git-aynig"), &dir);
                let said = Said::from(command.args(&args).output().unwrap());
                let fired = self.fired();
                if !fired.is_empty() {
                    all.push(format!("{args:?} started: {fired}{}{}", said.out, said.err));
                }
            }
        }
        all
    }
}

/// K34, S29: a new verb is in the table, or this fails
#[test]
fn s29_every_verb_is_tried() {
    let tried: BTreeSet<String> = VERBS.iter().map(|(verb, _)| (*verb).to_owned()).collect();
    let inner = ["hook".to_owned(), "chain".to_owned()];
    let missing: Vec<_> = verbs().into_iter().filter(|verb| !tried.contains(verb)).collect();
    let gone: Vec<_> =
        tried.iter().filter(|verb| !verbs().contains(*verb) && !inner.contains(verb)).collect();
    assert!(missing.is_empty() && gone.is_empty(), "not tried: {missing:?}; no verbs: {gone:?}");
}

/// What the account says, and which of the keys are left out: some keep a verb from reaching what others name.
const PASSES: &[(&[&str], &[&str])] = &[
    (&[], &[]),
    (&["aynig.requireSignature", "true"], &[]),
    // The hooks of the one path are to run then (K34).
    (&["protocol.allow", "always"], &["protocol.", "aynig.remote", "remote.path."]),
    (&["protocol.ext.allow", "always"], &["protocol.", "aynig.remote", "url."]),
    (&[], &["protocol.", "aynig.remote", "url.", "filter."]),
];

/// K34, S29: before trust no verb starts what the repository's configuration names, also where heads have to be
/// signed and what is written is, and where the account allows any transport.
#[test]
fn s29_before_trust_no_verb_starts_a_program_of_the_configuration() {
    let mut fired = Vec::new();
    for (account, left_out) in PASSES {
        let scene = Scene::new();
        if !account.is_empty() {
            global(&scene.world, account);
        }
        let is_in = |(key, _): &&(&str, &str)| !left_out.iter().any(|out| key.starts_with(out));
        let keys: Vec<_> = KEYS.iter().filter(is_in).copied().collect();
        for (verb, ways) in VERBS {
            let narrowed = match account {
                ["aynig.requireSignature", ..] => !SIGNING.contains(verb),
                [_, ..] => !ways.concat().iter().any(|arg| matches!(*arg, "&" | "--push")),
                [] => false,
            };
            if narrowed && times(1, 0) == 0 {
                continue;
            }
            fired.extend(scene.call(verb, ways, &keys));
            if times(1, 0) == 1 {
                for key in &keys {
                    fired.extend(scene.call(verb, ways, &[*key]));
                }
            }
        }
    }
    assert!(fired.is_empty(), "{} calls:\n{}", fired.len(), fired.join("\n"));
}

/// S29: the traps are real: the account's own configuration is obeyed, and so is a trusted repository's
#[test]
fn s29_once_trusted_the_same_verbs_start_them() {
    let scene = Scene::new();
    let dir = scene.world.root().join("repo");
    let keys: Vec<_> = KEYS.iter().filter(|(key, _)| !key.starts_with("aynig.")).copied().collect();
    global(&scene.world, &[&format!("aynig.{}.commandsFrom", dir.join(".git").display()), "branch"]);
    for (verb, way, started) in [
        ("retry", &["main"][..], "filter."),
        ("set-state", &["go", "-b", "pushed", "--push"], "core.sshCommand"),
        ("status", &["--remote", "ext"], "remote.ext.url"),
        ("status", &["--remote", "packs"], "remote.packs.uploadpack"),
        ("install", &["-n", "../pack"], ""),
    ] {
        let fired = scene.call(verb, &[way], &keys).concat();
        assert!(fired.contains(started), "{verb} {way:?}: {fired}");
    }
}
