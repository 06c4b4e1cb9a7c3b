//! Inboxes as others may leave them: what cannot be delivered, in whatever number, and what is delivered all the same.

use super::deliver::{heard, id, send};
use crate::support::Repo;
use crate::support::life::{BIN, Life};
use aynig::protocol::inbox::{MESSAGES_MAX, MessageId};

const REVIEW: &str = "dwp-accepts: message=rework\n";

/// Refs of the inbox of `work` that hold no message, older than any other.
fn junk(life: &Life, many: u64) -> Vec<String> {
    let (main, id) = (life.rev("main"), |n: u64| MessageId::v7(n, 0, [1; 8]));
    let names = (1..=many).map(|n| format!("refs/aynig/inbox/work/message/{}", id(n)));
    let names: Vec<String> = names.collect();
    let lines: String = names.iter().map(|name| format!("create {name} {main}\n")).collect();
    let file = life.shared().join("refs");
    std::fs::write(&file, lines).unwrap();
    let mut update = life.repo.command("git");
    let input = std::fs::File::open(&file).unwrap();
    assert!(update.args(["update-ref", "--stdin"]).stdin(input).status().unwrap().success());
    names
}

/// K47a: what cannot be delivered is read so many at a time, and ends no other message's way.
#[test]
fn what_cannot_be_delivered_is_read_a_part_at_each_look_and_hides_nothing() {
    let life = Life::new(&[]);
    life.event("work", "review", REVIEW);
    let junk = junk(&life, 1000);
    let named = |report: &serde_json::Value| report["notes"].as_array().unwrap().len();
    let (_, report) = life.report(&["work"]);
    assert_eq!(named(&report), MESSAGES_MAX);
    let message = id(1);
    let good = send(&life, "work", "message", message, "Read me.", None);
    let mut looks = 0;
    while life.state("work") == "review" {
        let (_, report) = life.report(&["work"]);
        // Who only looks reads on from the same place, and leaves it.
        life.run(&["status", "work"]).expect(0);
        assert!(named(&report) <= MESSAGES_MAX + 1, "{report}");
        looks += 1;
        assert!(looks <= junk.len() / MESSAGES_MAX + 1, "{looks} looks");
    }
    assert_eq!((life.state("work").as_str(), life.try_rev(&good)), ("rework", None));
    assert!(heard(&life, message).is_some());
    let left = life.git(&["for-each-ref", "refs/aynig/inbox/"]);
    assert_eq!(left.lines().count(), junk.len());
    // What is mended behind the place where the last look ended is found when the looks begin again.
    let fixed = junk[10].rsplit('/').next().unwrap();
    life.git(&["update-ref", "-d", &junk[10]]);
    send(&life, "work", "message", fixed.parse().unwrap(), "Me too.", None);
    life.event("work", "review", REVIEW);
    for _ in 0..=junk.len() / MESSAGES_MAX {
        life.tick(&["work"]);
    }
    assert_eq!(life.state("work"), "rework");
    assert!(heard(&life, fixed.parse().unwrap()).is_some());
}

/// K47a: a ref below a message's place under `heard` keeps that message, and no other.
#[test]
fn a_ref_in_the_way_of_one_message_keeps_no_other() {
    let life = Life::new(&[]);
    life.event("work", "review", REVIEW);
    let all = [1, 2, 3].map(id);
    let [first, second, stale] = [("message", all[0]), ("message", all[1]), ("answer", all[2])]
        .map(|(kind, id)| send(&life, "work", kind, id, "Read me.", None));
    let obstacles = [all[0], all[2]].map(|id| format!("refs/aynig/heard/{id}/x"));
    for obstacle in &obstacles {
        life.git(&["update-ref", obstacle, "main"]);
    }
    let (_, report) = life.report(&["work"]);
    assert_eq!(life.state("work"), "rework", "{report}");
    assert_eq!([&first, &second, &stale].map(|name| life.try_rev(name).is_some()), [true, false, true]);
    let said = report.to_string();
    assert!(obstacles.iter().all(|obstacle| said.contains(obstacle)), "{said}");
}

/// K47a: nor does it keep a branch from going on that brought the message before the process that
/// brought it was killed.
#[test]
fn a_ref_in_the_way_of_what_a_head_brought_keeps_no_branch_from_going_on() {
    let next = "echo \"$BODY\" >>\"$T/heard\"\necho 'SET_STATE {\"state\":\"review\",\"trailers\":[\"dwp-accepts: message=rework\"]}'";
    let life = Life::new(&[("rework", next)]);
    life.event("work", "review", REVIEW);
    let all = [1, 2].map(id);
    let names = all.map(|id| send(&life, "work", "message", id, "Once.", None));
    let messages = names.clone().map(|name| life.rev(&name));
    life.tick(&["work"]).expect(0);
    // As it is where the branch alone was moved.
    life.git(&["update-ref", "refs/heads/work", "work~2"]);
    for (name, message) in names.iter().zip(&messages) {
        life.git(&["update-ref", name, message]);
    }
    all.iter().for_each(|id| drop(life.git(&["update-ref", "-d", &format!("refs/aynig/heard/{id}")])));
    let obstacle = format!("refs/aynig/heard/{}/x", all[0]);
    life.git(&["update-ref", &obstacle, "main"]);
    life.tick(&["work"]).expect(0);
    assert_eq!(life.states("work")[..3], ["review", "working", "rework"]);
    assert_eq!(
        (life.try_rev(&names[0]).is_some(), life.try_rev(&names[1]), heard(&life, all[1])),
        (true, None, Some(messages[1].clone()))
    );
    // What stays is said, and is not brought again; once nothing is in the way it is taken off.
    let (_, report) = life.report(&["work"]);
    assert!(report.to_string().contains(&obstacle), "{report}");
    assert_eq!(life.states("work")[..3], ["review", "working", "rework"]);
    life.git(&["update-ref", "-d", &obstacle]);
    life.tick(&["work"]).expect(0);
    assert_eq!((life.try_rev(&names[0]), heard(&life, all[0])), (None, Some(messages[0].clone())));
    assert_eq!(life.states("work")[..3], ["review", "working", "rework"]);
}

/// Puts so many commits that say nothing on a branch, each an object of its own.
fn lengthen(life: &Life, branch: &str, many: usize) {
    let mut import = String::new();
    for n in 0..many {
        let from = if n == 0 { format!("from refs/heads/{branch}^0\n") } else { String::new() };
        let head =
            format!("commit refs/heads/{branch}\ncommitter b <b@example.com> {} +0000", 1_600_000_000 + n);
        import += &format!("{head}\ndata 5\nmore\n\n{from}\n");
    }
    let file = life.shared().join("import");
    std::fs::write(&file, import).unwrap();
    let mut git = life.repo.command("git");
    git.args(["-c", "fastimport.unpackLimit=1000", "fast-import", "--quiet"]);
    assert!(git.stdin(std::fs::File::open(&file).unwrap()).status().unwrap().success());
}

/// K47a: what one process walked of a branch no later one walks; what was brought there stays brought, and a note that was
/// changed says nothing.
#[test]
#[cfg(target_os = "linux")]
fn a_branch_is_walked_once_by_all_processes_together() {
    let next = "echo 'SET_STATE {\"state\":\"review\",\"trailers\":[\"dwp-accepts: message=rework\"]}'";
    let life = Life::new(&[("rework", next)]);
    lengthen(&life, "main", 100);
    let old = life.rev("main~50");
    life.event("work", "review", REVIEW);
    let file = format!("objects/{}/{}", &old[..2], &old[2..]);
    let reads = || {
        let log = life.traced_tick("openat", &["work"])?;
        Some(log.lines().filter(|line| line.contains(&file) && !line.contains("ENOENT")).count())
    };
    let all = [1, 2, 3, 4].map(id);
    let first = send(&life, "work", "message", all[0], "Once.", None);
    let message = life.rev(&first);
    let Some(read) = reads() else { return };
    assert!(read > 0);
    send(&life, "work", "message", all[1], "Twice.", None);
    assert_eq!(reads(), Some(0), "{file}");
    // Those of the branch itself are noted as well, with what they brought.
    lengthen(&life, "work", 70);
    life.event("work", "review", REVIEW);
    send(&life, "work", "message", all[2], "Again.", None);
    life.tick(&["work"]).expect(0);
    let states = life.states("work");
    assert_eq!(states[..3], ["review", "working", "rework"]);
    life.git(&["update-ref", "-d", &format!("refs/aynig/heard/{}", all[0])]);
    life.git(&["update-ref", &first, &message]);
    life.tick(&["work"]);
    assert_eq!((life.states("work"), life.try_rev(&first)), (states, None), "it was brought before");
    let notes = std::fs::read_dir(life.repo.git_dir().join("aynig/seen")).unwrap().flatten();
    let note =
        notes.map(|note| note.path()).find(|path| path.extension().is_some_and(|end| end == "brought"));
    let note = note.unwrap();
    let said = std::fs::read_to_string(&note).unwrap();
    assert!(said.contains(&all[0].to_string()), "{said}");
    std::fs::write(&note, said.replace(&all[0].to_string(), &all[3].to_string())).unwrap();
    send(&life, "work", "message", all[3], "Not lost.", None);
    life.tick(&["work"]).expect(0);
    assert!(heard(&life, all[3]).is_some());
    assert!(life.body("work~2").contains("Not lost."));
}

/// K35, K47b: where signatures are asked for a message that is signed for its branch is delivered, from behind those that are not.
#[test]
fn a_signed_message_is_delivered_where_a_signature_is_asked_for() {
    let life = Life::new(&[]);
    let unsigned = send(&life, "work", "message", MessageId::v7(1, 0, [1; 8]), "Trust me.", None);
    if !life.sign() {
        return;
    }
    life.run(&["set-state", "review", "-b", "work", "--trailer", REVIEW.trim(), "--no-tick"]).expect(0);
    life.run(&["set-state", "review", "-b", "other", "--trailer", REVIEW.trim(), "--no-tick"]).expect(0);
    life.run(&["send", "work", "-m", "Believe me.", "--no-tick"]).expect(0);
    let all = life.git(&["for-each-ref", "--format=%(refname)", "refs/aynig/inbox/work/"]);
    let signed = all.lines().find(|name| *name != unsigned).unwrap();
    // What is signed for one branch is none of another's.
    let moved = signed.replace("inbox/work", "inbox/other");
    life.git(&["update-ref", &moved, signed]);
    life.tick(&["other"]);
    assert_eq!((life.state("other").as_str(), life.try_rev(&moved).is_some()), ("review", true));
    life.tick(&["work"]);
    assert_eq!(life.state("work"), "rework");
    assert!(life.body("refs/heads/work").contains("Believe me."));
    assert_eq!((life.try_rev(&unsigned).is_some(), life.try_rev(signed)), (true, None));
}

/// K37, K47: a bare repository delivers as any other.
#[test]
fn a_message_is_delivered_in_a_bare_repository() {
    let life =
        Life::new(&[("rework", "cat \"$AYNIG_MESSAGES\" >heard; echo 'SET_STATE {\"state\":\"done\"}'")]);
    life.event("work", "review", REVIEW);
    let server = Repo::build().bare().create().unwrap();
    life.git(&["push", "-q", &format!("file://{}", server.path().display()), "main", "work"]);
    server.git(&["config", "--global", "aynig.commandsFrom", "refs/heads/main"]);
    for args in [&["send", "work", "-m", "Read me."][..], &["tick", "work"]] {
        let ended = server.command(BIN).args(args).output().unwrap();
        assert!(ended.status.success(), "{ended:?}");
    }
    assert!(server.git(&["show", "work:heard"]).contains("\"text\":\"Read me.\""));
    assert_eq!(server.git(&["for-each-ref", "refs/aynig/inbox/"]), "");
    assert_eq!(server.git(&["for-each-ref", "refs/aynig/heard/"]).lines().count(), 1);
    server.assert_sound();
}
