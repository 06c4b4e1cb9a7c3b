//! Other bytes in the place of those that were looked at: rows S5 and S22, and what S4 has of it.

use super::*;
use std::sync::atomic::{AtomicBool, Ordering};

/// The copy of `main`'s commands.
fn copy(world: &World, dir: &Path) -> PathBuf {
    dir.join(".git/aynig/commands").join(world.git(dir, &["rev-parse", "main:.aynig"]))
}

/// K13, S5: commands run as the owner of the copy, so one can change it; the next run executes the commit's bytes
#[test]
fn s05_a_changed_copy_of_the_commands_is_never_executed() {
    let world = World::any();
    let evil = world.root().join("evil");
    let bad = format!("#!/bin/sh\ntouch '{}'\n{DONE}\n", evil.display());
    let dir = repo(&world, &[("go", DONE)]);
    tick(&world, &dir, "go", "first").expect(0);
    let (copy, bad_file) = (copy(&world, &dir), world.root().join("bad"));
    executable(&bad_file, &bad);
    let (bad, at) = (bad_file.to_str().unwrap(), copy.to_str().unwrap());
    let ways = [
        format!("chmod u+w {at}/command/go; cat {bad} >{at}/command/go; chmod 555 {at}/command/go"),
        format!("chmod u+w {at}/command; cp {bad} {at}/command/x; mv -f {at}/command/x {at}/command/go"),
        format!("chmod u+w {at}/command; rm -f {at}/command/go; ln -s {bad} {at}/command/go"),
        format!("chmod u+w {at}/command; rm -f {at}/command/go; ln {bad} {at}/command/go"),
        format!("chmod u+w {at}/command; rm -f {at}/command/go; mkfifo {at}/command/go"),
        format!(
            "mv {at} {at}.away; mkdir {at}; cp -r {at}.away/. {at}; chmod -R u+w {at}; cp {bad} {at}/command/go"
        ),
        format!(
            "mv {at} {at}.gone; ln -s {at}.gone {at}; chmod -R u+w {at}.gone; cp {bad} {at}.gone/command/go"
        ),
        format!("chmod u+w {at} {at}/command; echo : >{at}/command/extra; chmod u+x {at}/command/extra"),
        format!("chmod u+w {at}/command/go; truncate -s 0 {at}/command/go"),
        format!("chmod 000 {at}/command/go"),
    ];
    for (n, way) in ways.iter().enumerate() {
        world.run("/bin/sh", &dir, &["-c", way]).expect(0);
        let said = tick(&world, &dir, "go", &format!("again{n}")).expect(0);
        assert!(said.out.contains("go -> done"), "{way}: {}{}", said.out, said.err);
        // A link in the place of the folder is no copy at all.
        let told = said.err.contains("had been changed; it was written anew");
        assert!(told || way.contains("ln -s"), "{way}: {}", said.err);
        assert!(!evil.exists(), "{way}");
        let said = tick(&world, &dir, "go", &format!("more{n}")).expect(0);
        assert!(!said.err.contains("had been changed"), "{way}: {}", said.err);
    }
    let left = std::fs::read_dir(copy.parent().unwrap()).unwrap().flatten();
    let left: Vec<_> = left.map(|e| e.file_name()).filter(|n| n.to_string_lossy().starts_with('.')).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// K13, S5: a process that swaps files in checkout and slot between the look and the start changes nothing of what runs
#[test]
fn s05_files_that_are_swapped_under_a_tick_are_not_what_runs() {
    let world = World::any();
    let evil = world.root().join("evil");
    let dir = repo(&world, &[("go", DONE)]);
    global(&world, &["aynig.fsync", "false"]);
    tick(&world, &dir, "go", "warm").expect(0);
    let slots = world.home().join(".cache/aynig");
    let slot = std::fs::read_dir(slots).unwrap().next().unwrap().unwrap().path().join("0");
    let stop = AtomicBool::new(false);
    let wanted = times(10_000, 300);
    let swaps = std::thread::scope(|scope| {
        let swapper = scope.spawn(|| {
            let bad = format!("#!/bin/sh\ntouch '{}'\n{DONE}\n", evil.display());
            let good = format!("#!/bin/sh\n{DONE}\n");
            let mut swaps = 0;
            while swaps < wanted || !stop.load(Ordering::Relaxed) {
                for place in [&dir, &slot] {
                    let (path, aside) = (place.join(".aynig/command/go"), place.join(".aynig/swap"));
                    let text = if swaps % 2 == 0 { &bad } else { &good };
                    if std::fs::write(&aside, text).is_ok() {
                        let _ = std::fs::set_permissions(&aside, PermissionsExt::from_mode(0o755));
                        let _ = std::fs::rename(&aside, path);
                    }
                }
                swaps += 1;
            }
            swaps
        });
        let mut n = 0;
        while n < 8 || !swapper.is_finished() {
            let said = tick(&world, &dir, "go", &format!("b{n}"));
            // A file that goes while Git adds it ends the run `stalled`: that is no wrong execution.
            let ended = said.out.contains("go -> ") || said.out.contains("go stalled");
            assert!(ended, "{}{}", said.out, said.err);
            n += 1;
            if n >= 8 {
                stop.store(true, Ordering::Relaxed);
            }
        }
        swapper.join().unwrap()
    });
    assert!(!evil.exists(), "after {swaps} swaps");
}

/// K14, S22: what a run leaves in its slot, in plain sight or where Git keeps it, is gone for the next
#[test]
fn s22_a_run_finds_nothing_of_the_one_before() {
    let plant = r#"set -e
test ! -e planted -a ! -e ignored -a ! -d hooks -a ! -d nested
test -z "$(git --no-optional-locks status --porcelain --ignored)"
admin=$(git rev-parse --git-dir)
test ! -e "$admin/config.worktree" -a ! -e "$admin/hooks" -a ! -e "$admin/info" -a ! -e "$admin/MERGE_HEAD"
test "$(git rev-parse HEAD)" = "$AYNIG_LEASE_COMMIT" && ! git symbolic-ref -q HEAD
test "$(cat sub/other.txt)" = other && test ! -L sub
git ls-files -v | grep -q '^[a-zS]' && exit 9
git update-index --assume-unchanged file.txt; git update-index --skip-worktree sub/other.txt
echo x >planted; echo '*' >.gitignore; echo x >ignored; git init -q nested
mkdir -p "$admin/hooks" "$admin/info"; echo '* filter=x' >"$admin/info/attributes"
printf '[core]\n\thooksPath = %s\n' "$PWD/hooks" >"$admin/config.worktree"; git rev-parse HEAD >"$admin/MERGE_HEAD"
mkdir hooks; printf '#!/bin/sh\ntouch "$PROBE"\n' >hooks/post-checkout; chmod +x hooks/post-checkout
rm -r sub; ln -s / sub; chmod 500 .
git checkout -q -B mine 2>/dev/null || :
exit 3"#;
    let mut world = World::any();
    let probe = world.root().join("probe");
    world.set("PROBE", &probe);
    let dir = repo(&world, &[("plant", plant)]);
    global(&world, &["aynig.jobs", "1"]);
    for n in 0..times(100, 6) {
        let said = tick(&world, &dir, "plant", &format!("b{n}")).expect(1);
        assert!(said.out.contains("exit 3"), "run {n}: {}{}", said.out, said.err);
        assert!(!probe.exists(), "run {n}");
    }
    world.assert_sound(&dir);
}
