use crate::support::world::World;

#[test]
fn the_demo_plays_and_leaves_nothing_behind() {
    let mut world = World::any();
    let elsewhere = world.root().join("no repository");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::write(world.home().join(".gitconfig"), "[aynig]\n\tjobs = nonsense\n").unwrap();
    for (name, value) in [
        ("GIT_DIR", "/nonexistent"),
        ("GIT_INDEX_FILE", "x"),
        ("AYNIG", "0"),
        ("AYNIG_RUN_ID", "x"),
        ("ROLE", "../x"),
    ] {
        world.set(name, value);
    }
    let before: Vec<_> = std::fs::read_dir(world.root()).unwrap().map(|e| e.unwrap().file_name()).collect();
    let said = world.aynig(&elsewhere, &["demo"]).expect(0);
    for line in [
        "$ git aynig tick",
        "greet: build stalled: exit 1",
        "fetching greetings: mirror did not answer",
        "$ git aynig retry greet",
        "greet: build -> review",
        "greet: review -> done",
        "looks fine: Hello, world!",
        "| dwp-ticket: 7",
        "| Reviewed-by: demo",
        "greeting.txt",
        "  git aynig init --trust",
    ] {
        assert!(said.out.contains(line), "'{line}' is missing:\n{}", said.out);
    }
    assert!(said.err.is_empty(), "{}", said.err);
    let after: Vec<_> = std::fs::read_dir(world.root()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(before.len(), after.len(), "{after:?}");
    let config = std::fs::read_to_string(world.home().join(".gitconfig")).unwrap();
    assert_eq!(config, "[aynig]\n\tjobs = nonsense\n");
    assert!(!world.home().join(".cache").exists());
}

#[test]
fn a_kept_demo_is_a_sound_repository() {
    let world = World::any();
    let root = world.root();
    let said = world.aynig(&root, &["demo", "--keep", "kept"]).expect(0);
    let kept = root.join("kept");
    assert!(said.out.contains(&format!("Kept: {}", kept.display())), "{}", said.out);
    assert_eq!(world.git(&kept, &["show", "greet:greeting.txt"]), "Hello, world!");
    assert_eq!(world.git(&kept, &["worktree", "list"]).lines().count(), 1);
    world.assert_sound(&kept);
    let again = world.aynig(&root, &["demo", "--keep", "kept"]).expect(128);
    assert!(again.err.contains("not empty"), "{}", again.err);
}
