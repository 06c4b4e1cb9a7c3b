//! The sandbox of gitaynig-server(7), as it is printed there, with a hostile command in it. Rows S19, S22, S26.

use super::*;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;

const PAGE: &str = include_str!("../../man/gitaynig-server.7");

/// The first example of the page that is a script.
fn recipe() -> String {
    let block = PAGE.split(".EX\n").find(|block| block.starts_with("#!/bin/sh\n")).unwrap();
    let block = block.split(".EE\n").next().unwrap();
    // What `man` would show of it.
    let lines = block.lines().map(|line| line.strip_prefix("\\&").unwrap_or(line));
    lines.map(|line| line.replace("\\-", "-").replace("\\\\", "\\").replace("\\e", "\\") + "\n").collect()
}

/// What a command tries. Whatever works says so: `BREACH`.
const ATTACK: &str = r#"
breach() { echo "BREACH: $*"; }
for file in "$HOME/secret" "$HOME/.gitconfig" @root@/secret @repo@/aynig/runs/other/body @repo@/aynig/logs/other.stdout.log \
    @repo@/aynig/worktrees/*/9/work @repo@/aynig/slots/0.json "$STDOUT_LOG_PATH"; do
    cat "$file" 2>/dev/null && breach "read $file"
done
[ -S "$SSH_AUTH_SOCK" ] && breach "agent's socket"
for file in @repo@/config @repo@/HEAD @repo@/hooks/post-receive @repo@/refs/heads/evil @repo@/packed-refs @repo@/objects/evil \
    @repo@/aynig/hooks.gitconfig "$AYNIG_DIR/command/next" "$(git rev-parse --git-dir)/HEAD" .git /etc/evil /usr/evil \
    /proc/sys/kernel/core_pattern /proc/sysrq-trigger; do
    (: >>"$file") 2>/dev/null && case $file in @repo@/aynig/hooks.gitconfig) ;; *) breach "write $file";; esac
done
git config evil.key x 2>/dev/null && breach "git config"
git update-ref refs/heads/evil HEAD 2>/dev/null && breach "git update-ref"
for where in @repo@ "$AYNIG_DIR" /usr; do
    mount -o remount,bind,rw "$where" 2>/dev/null && breach "remount $where"
    unshare -rm mount -o remount,bind,rw "$where" 2>/dev/null && breach "remount $where in a namespace of its own"
    unshare -rm umount "$where" 2>/dev/null && breach "umount $where"
done
rm -f .git 2>/dev/null; mv .git git 2>/dev/null && breach "its worktree's .git"
mknod disk b 8 0 2>/dev/null && breach "a device"
for process in /proc/[0-9]*; do
    grep -aq -e guardian -e git-aynig "$process/cmdline" 2>/dev/null && [ "${process#/proc/}" -gt 2 ] && breach "sees $process"
done
kill -STOP "$PPID" 2>/dev/null; kill -STOP 1 2>/dev/null; kill -KILL 1 2>/dev/null
(exec 3<>/dev/tty) 2>/dev/null && breach "a terminal"
perl -e 'for (0..2) { open(F, "<&=", $_) && ioctl(F, 0x5412, "x") && exit 0 } exit 1' 2>/dev/null && breach "TIOCSTI"
bash -c 'exec 3<>/dev/tcp/127.0.0.1/@port@' 2>/dev/null && breach "a connection"
(setsid sleep @sleep@ >/dev/null 2>&1 &)
(sleep @sleep@ &)
echo work >made-in-the-sandbox
echo 'SET_STATE {"state":"done"}'
"#;

/// Files of the run's folder, each in the place of something that is read when it is over.
const FILES: &str = r#"
cd "$AYNIG_RUN_DIR" && rm -rf -- * .[a-z]*
mkfifo result; mkdir body; ln -s @root@/secret told
echo "@repo@/../evil refs/heads/x" >wake
ln -s @root@/secret log
echo 'SET_STATE {"state":"done"}'
"#;

fn filled(script: &str, world: &World, repo: &Path, port: u16, sleep: &str) -> String {
    let (root, repo) = (world.root().display().to_string(), repo.display().to_string());
    let script = script.replace("@root@", &root).replace("@repo@", &repo);
    format!("#!/bin/sh\n{}", script.replace("@port@", &port.to_string()).replace("@sleep@", sleep))
}

fn lives(argument: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|p| std::fs::read(p.path().join("cmdline")).ok())
        .any(|line| line.split(|b| *b == 0).any(|word| word == argument.as_bytes()))
}

/// S19, S22, K35: what the page promises of its sandbox holds, also where its command is root
#[test]
fn s22_the_sandbox_of_the_manual_holds_what_the_manual_says() {
    let mut world = World::any();
    let bwrap = ["--unshare-all", "--ro-bind", "/", "/", "true"];
    if !world.command("bwrap", &world.root()).args(bwrap).status().is_ok_and(|status| status.success()) {
        return support::skipped("S22: no bwrap here, or no namespaces for it");
    }
    let (root, listener) = (world.root(), TcpListener::bind("127.0.0.1:0").unwrap());
    listener.set_nonblocking(true).unwrap();
    let _agent = UnixListener::bind(root.join("agent")).unwrap();
    world.set("SSH_AUTH_SOCK", root.join("agent"));
    let dir = root.join("project.git");
    world.git(&root, &["init", "-q", "--bare", "-b", "main", dir.to_str().unwrap()]);
    let sleep = format!("98{}", std::process::id());
    let port = listener.local_addr().unwrap().port();
    let attack = filled(ATTACK, &world, &dir, port, &sleep);
    let files = filled(FILES, &world, &dir, port, &sleep);
    world.commit_files(
        &dir,
        "main",
        &[(".aynig/command/attack", &attack), (".aynig/command/files", &files)],
        "commands",
    );
    let sandbox = root.join("aynig-sandbox");
    executable(&sandbox, &recipe());
    global(&world, &["aynig.commandsFrom", "refs/heads/main"]);
    global(&world, &["aynig.exec", sandbox.to_str().unwrap()]);
    let secrets = ["aynig/runs/other/body", "aynig/logs/other.stdout.log", "aynig/worktrees/x/9/work"];
    for secret in
        [root.join("secret"), world.home().join("secret")].into_iter().chain(secrets.map(|s| dir.join(s)))
    {
        std::fs::create_dir_all(secret.parent().unwrap()).unwrap();
        std::fs::write(secret, "do-not-read-this\n").unwrap();
    }
    let config = std::fs::read(dir.join("config")).unwrap();
    for (branch, state) in [("first", "attack"), ("second", "attack"), ("third", "files")] {
        world.raw_commit(&dir, branch, format!("go\n\ndwp-state: {state}\ndwp-ticket: 7\n").as_bytes());
        let trigger = head(&world, &dir, branch);
        // A terminal to type into, where there is a program that makes one.
        let tick = format!("git aynig tick {branch}");
        let script = "command -v script >/dev/null && exec script -qec \"$0\" /dev/null; exec $0";
        let said = world.run("/bin/sh", &dir, &["-c", script, &tick]);
        let log = std::fs::read_to_string(dir.join(format!("aynig/logs/{trigger}.stdout.log"))).unwrap();
        let complaints =
            std::fs::read_to_string(dir.join(format!("aynig/logs/{trigger}.stderr.log"))).unwrap();
        assert!(!log.contains("BREACH") && !log.contains("do-not-read-this"), "{branch}: {log}{complaints}");
        let commit = world.git(&dir, &["show", "--format=%B", branch]);
        assert!(!commit.contains("do-not-read-this"), "{commit}");
        match state {
            "attack" => {
                assert!(
                    said.out.contains("attack -> done"),
                    "{branch}: {}{}{complaints}",
                    said.out,
                    said.err
                );
                assert_eq!(world.git(&dir, &["show", &format!("{branch}:made-in-the-sandbox")]), "work");
            }
            // A result that is no file is no declaration, and is not waited for.
            _ => assert!(said.out.contains("stalled"), "{}{}{complaints}", said.out, said.err),
        }
        assert!(!lives(&sleep), "{branch} left a process");
        assert_eq!(std::fs::read(dir.join("config")).unwrap(), config);
        assert!(listener.accept().is_err(), "{branch} reached the network");
        assert_eq!(world.try_git(&dir, &["rev-parse", "-q", "--verify", "refs/heads/evil"]).code, 1);
    }
    world.assert_sound(&dir);
}
