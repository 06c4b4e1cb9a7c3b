//! Whole-process costs beside a yardstick of Git's in the same run, printed as ratios.
//!
//! Usage: `benches/run [folder]`, which builds the binary as it is installed and calls this with
//! `AYNIG_BIN`. Each row alternates subject and yardstick, so that a noisy machine disturbs both alike,
//! and compares medians. Nothing is measured that is not a whole process, from spawn to exit.
//! `AYNIG_BENCH_ROUNDS` (default 40) and `AYNIG_BENCH_ROWS` (a substring, or `profile`) narrow a run.

mod flows;
mod landing;
mod looks;
mod machines;
mod many;
mod original;
mod profile;
mod talk;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// One row of the table.
struct Row {
    name: String,
    yardstick: String,
    limit: Limit,
    subject: Vec<Duration>,
    other: Vec<Duration>,
}

/// What a row may come to.
#[derive(Clone, Copy)]
enum Limit {
    /// So many times the yardstick.
    Ratio(f64),
    /// So many milliseconds more than the yardstick.
    More(f64),
    /// Shown, and not judged.
    None,
}

impl Limit {
    /// What it is measured by, what that may be, and whether it is.
    fn judge(self, a: f64, b: f64) -> (String, String, &'static str) {
        let verdict = |met| if met { "met" } else { "**missed**" };
        match self {
            Self::Ratio(most) => (format!("{:.2}x", a / b), format!("{most}x"), verdict(a / b <= most)),
            Self::More(most) => (format!("{:+.2} ms", a - b), format!("{most:+} ms"), verdict(a - b <= most)),
            Self::None => (format!("{:.2}x", a / b), "-".to_owned(), ""),
        }
    }
}

impl Row {
    fn medians(&self) -> (f64, f64) {
        (median(&self.subject), median(&self.other))
    }
}

fn median(all: &[Duration]) -> f64 {
    let mut all: Vec<f64> = all.iter().map(|d| d.as_secs_f64() * 1000.0).collect();
    all.sort_by(f64::total_cmp);
    if all.is_empty() { f64::NAN } else { all[all.len() / 2] }
}

/// A throwaway place with an environment of its own.
struct Place {
    root: PathBuf,
    bin: PathBuf,
}

impl Place {
    fn command(&self, program: &Path, dir: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().current_dir(dir).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", &self.root).env("GIT_CONFIG_NOSYSTEM", "1");
        command
    }

    fn git(&self, dir: &Path, args: &[&str]) {
        let status = self.command(Path::new("git"), dir).args(args).status().expect("git runs");
        assert!(status.success(), "git {args:?} failed in {}", dir.display());
    }

    fn git_says(&self, dir: &Path, args: &[&str], input: &[u8]) -> String {
        let mut command = self.command(Path::new("git"), dir);
        let mut child =
            command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("git runs");
        let mut stdin = child.stdin.take().expect("piped");
        let input = input.to_vec();
        let writer = std::thread::spawn(move || stdin.write_all(&input));
        let output = child.wait_with_output().expect("git ends");
        writer.join().expect("no panic").expect("git reads");
        assert!(output.status.success(), "git {args:?} failed");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Times one whole process; it must end with this status.
    fn time(&self, dir: &Path, program: &Path, args: &[&str], want: i32) -> Duration {
        let mut command = self.command(program, dir);
        command.args(args);
        let started = Instant::now();
        let status = command.status().expect("it runs");
        let took = started.elapsed();
        assert_eq!(status.code(), Some(want), "{} {args:?}", program.display());
        took
    }

    /// A repository with `files` files, the trivial command, and the branch `work`.
    fn repository(&self, name: &str, files: usize) -> PathBuf {
        let dir = self.root.join(name);
        std::fs::create_dir_all(dir.join(".aynig/command")).expect("folder");
        self.git(&dir, &["init", "-q", "-b", "main"]);
        self.git(&dir, &["config", "user.name", "bench"]);
        self.git(&dir, &["config", "user.email", "bench@example.com"]);
        self.git(&dir, &["config", "gc.auto", "0"]);
        let script = "#!/bin/sh\necho one\necho two\necho 'SET_STATE {\"state\":\"done\"}'\n";
        let command = dir.join(".aynig/command/build");
        std::fs::write(&command, script).expect("command");
        std::fs::set_permissions(&command, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .expect("mode");
        for i in 0..files.saturating_sub(1) {
            let folder = dir.join(format!("d{}/e{}", i / 2500, i / 50 % 50));
            if i % 50 == 0 {
                std::fs::create_dir_all(&folder).expect("folder");
            }
            let text = format!("file {i}\n").repeat(30 + i % 300);
            std::fs::write(folder.join(format!("f{i}.txt")), text).expect("file");
        }
        self.git(&dir, &["add", "-A"]);
        self.git(&dir, &["commit", "-q", "-m", "first"]);
        self.git(&dir, &["repack", "-adq"]);
        self.git(&dir, &["branch", "work"]);
        dir
    }

    /// Puts a trigger of its own on `work`.
    fn trigger(&self, dir: &Path, n: usize) {
        let message = format!("build {n}\n\ndwp-state: build\n");
        let id = self.git_says(dir, &["commit-tree", "main^{tree}", "-p", "main"], message.as_bytes());
        self.git(dir, &["update-ref", "refs/heads/work", &id]);
    }

    /// Removes every slot, as if none had ever been.
    fn forget_slots(&self, dir: &Path) {
        let _ = std::fs::remove_dir_all(dir.join(".git/worktrees"));
        let _ = std::fs::remove_dir_all(dir.join(".git/aynig/slots"));
        let _ = std::fs::remove_dir_all(self.root.join(".cache"));
    }
}

fn rounds() -> usize {
    std::env::var("AYNIG_BENCH_ROUNDS").ok().and_then(|r| r.parse().ok()).unwrap_or(40)
}

fn wanted(name: &str) -> bool {
    std::env::var("AYNIG_BENCH_ROWS").map_or(true, |part| name.contains(&part))
}

/// Alternates the two, three warm-ups first.
fn measure(
    name: &str,
    yardstick: &str,
    limit: Limit,
    rounds: usize,
    mut subject: impl FnMut(usize) -> Duration,
    mut other: impl FnMut(usize) -> Duration,
) -> Option<Row> {
    if !wanted(name) {
        return None;
    }
    let warm = if rounds > 10 { 3 } else { 1 };
    let mut row =
        Row { name: name.into(), yardstick: yardstick.into(), limit, subject: vec![], other: vec![] };
    for n in 0..rounds + warm {
        let (a, b) = (subject(n), other(n));
        if n >= warm {
            row.subject.push(a);
            row.other.push(b);
        }
    }
    let (a, b) = row.medians();
    let (found, most, verdict) = limit.judge(a, b);
    eprintln!("{name}: {a:.2} ms / {b:.2} ms: {found} (at most {most}) {verdict}");
    Some(row)
}

fn idle(place: &Place, rows: &mut Vec<Row>) {
    let dir = place.repository("idle", 10);
    rows.extend(measure(
        "idle tick of one branch",
        "git rev-parse HEAD",
        Limit::Ratio(1.5),
        rounds() * 5,
        |_| place.time(&dir, &place.bin, &["tick", "work"], 0),
        |_| place.time(&dir, Path::new("git"), &["rev-parse", "HEAD"], 0),
    ));
    rows.extend(measure(
        "the same by `git aynig tick`",
        "git rev-parse HEAD",
        Limit::Ratio(3.0),
        rounds() * 5,
        |_| place.time(&dir, Path::new("git"), &["aynig", "tick", "work"], 0),
        |_| place.time(&dir, Path::new("git"), &["rev-parse", "HEAD"], 0),
    ));
}

fn ticks(place: &Place, files: usize, rows: &mut Vec<Row>) {
    let dir = place.repository(&format!("tick{files}"), files);
    let mut count = 0;
    for durable in [false, true] {
        place.git(&dir, &["config", "aynig.fsync", if durable { "true" } else { "false" }]);
        let yardstick: &[&str] = if durable {
            &["-c", "core.fsync=committed", "commit", "-q", "--allow-empty", "-m", "x"]
        } else {
            &["commit", "-q", "--allow-empty", "-m", "x"]
        };
        let kind = if durable { "durable" } else { "aynig.fsync=false" };
        let named = format!("git {}", yardstick[..yardstick.len() - 2].join(" "));
        for fresh in [true, false] {
            let limit = match (fresh, durable) {
                (true, _) => 2.5,
                (false, false) => 1.5,
                (false, true) => 1.7,
            };
            let slot = if fresh { "fresh" } else { "reused" };
            // The limits are for 10 files; with more the yardstick's own work differs in kind.
            let limit = if files == 10 { Limit::Ratio(limit) } else { Limit::None };
            rows.extend(measure(
                &format!("tick, {files} files, {slot} slot, {kind}"),
                &named,
                limit,
                if files > 10_000 { 10 } else { rounds() },
                |_| {
                    count += 1;
                    place.trigger(&dir, count);
                    if fresh {
                        place.forget_slots(&dir);
                    }
                    place.time(&dir, &place.bin, &["tick", "work"], 0)
                },
                |_| place.time(&dir, Path::new("git"), yardstick, 0),
            ));
        }
    }
}

const LARGE_ROWS: [&str; 2] = ["50,000 files, reused slot, every file verified", "50,000 files, fresh slot"];

fn large(place: &Place, rows: &mut Vec<Row>) {
    let files = 50_000;
    let dir = place.repository("large", files);
    place.git(&dir, &["config", "aynig.fsync", "false"]);
    let mut count = 0;
    // Past the second in which the index was written, or status reads every file.
    std::thread::sleep(Duration::from_millis(1500));
    place.git(&dir, &["update-index", "--force-write-index"]);
    rows.extend(measure(
        LARGE_ROWS[0],
        "git status",
        Limit::Ratio(1.5),
        rounds().min(30),
        |_| {
            count += 1;
            place.trigger(&dir, count);
            place.time(&dir, &place.bin, &["tick", "work"], 0)
        },
        |_| place.time(&dir, Path::new("git"), &["status"], 0),
    ));
    let aside = place.root.join("aside");
    rows.extend(measure(
        LARGE_ROWS[1],
        "git worktree add --detach",
        Limit::Ratio(1.0),
        rounds().min(30),
        |_| {
            count += 1;
            place.trigger(&dir, count);
            place.forget_slots(&dir);
            place.time(&dir, &place.bin, &["tick", "work"], 0)
        },
        |_| {
            let _ = std::fs::remove_dir_all(&aside);
            place.git(&dir, &["worktree", "prune"]);
            let to = aside.to_string_lossy().into_owned();
            place.time(&dir, Path::new("git"), &["worktree", "add", "-q", "--detach", &to, "main"], 0)
        },
    ));
}

/// What heads of a scan say: nothing of ours, or something that nothing is to be done about.
const HEADS: [(&str, &[&str]); 6] = [
    ("without events", &["Reviewed-by: someone <s@example.com>\nticket: 7"]),
    ("that are finished", &["dwp-state: done\ndwp-origin-state: build\ndwp-run-id: r\ndwp-hop: 1"]),
    ("that wait, by 50 states", &["dwp-state: wait"]),
    ("that are leased", &[LEASED]),
    ("of unusable states", &["dwp-state: ../x"]),
    ("of all these kinds", &["ticket: 7", "dwp-state: done", "dwp-state: wait", LEASED, "dwp-state: ../x"]),
];
const LEASED: &str = "dwp-state: working\ndwp-origin-state: build\ndwp-run-id: r\ndwp-runner-id: elsewhere-1\n\
                      dwp-lease-seconds: 2000000";

/// A repository with so many branches, whose heads are of this kind.
fn heads_of(place: &Place, name: &str, branches: usize, heads: usize) -> PathBuf {
    let (_, texts) = HEADS[heads];
    let dir = place.repository(name, 10);
    let mut import = String::new();
    let head = place.git_says(&dir, &["rev-parse", "main"], b"");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock").as_secs();
    for i in 0..branches {
        let text = texts[i % texts.len()].replace("wait", &format!("wait{}", i % 50));
        let message = format!("change {i}\n\nbody\n\n{text}\n");
        let _ = write!(
            import,
            "commit refs/heads/topic/b{i:06}\ncommitter b <b@example.com> {now} +0000\ndata {}\n{message}\nfrom {head}\n\n",
            message.len()
        );
    }
    place.git_says(&dir, &["fast-import", "--quiet", "--force"], import.as_bytes());
    dir
}

fn scans(place: &Place, branches: usize, heads: usize, rows: &mut Vec<Row>) {
    let (kind, _) = HEADS[heads];
    let name = |how: &str| format!("scan of {branches} branches {kind}, {how}");
    if !["all loose", "after git gc"].iter().any(|how| wanted(&name(how))) {
        return;
    }
    let dir = heads_of(place, &format!("scan{branches}-{heads}"), branches, heads);
    let format = "--format=%(refname) %(trailers)";
    let scan = |how: &str| {
        measure(
            &name(how),
            "git for-each-ref --format='%(refname) %(trailers)'",
            Limit::Ratio(1.0),
            if branches > 10_000 { rounds().min(10) } else { rounds() },
            |_| place.time(&dir, &place.bin, &["tick"], 0),
            |_| place.time(&dir, Path::new("git"), &["for-each-ref", format, "refs/heads"], 0),
        )
    };
    // No repository has that many loose refs.
    if heads == 0 && branches <= 10_000 {
        rows.extend(scan("all loose"));
    }
    place.git(&dir, &["gc", "-q", "--prune=now"]);
    rows.extend(scan("after git gc"));
}

fn main() {
    let bin = std::env::var_os("AYNIG_BIN").map(PathBuf::from);
    let Some(bin) = bin else {
        eprintln!("AYNIG_BIN is not set: run benches/run");
        return;
    };
    let root = std::env::var_os("AYNIG_BENCH_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    let root = root.join(format!("aynig-bench-{}", std::process::id()));
    std::fs::create_dir_all(&root).expect("folder");
    let place = Place { root: root.clone(), bin };
    std::fs::write(root.join(".gitconfig"), "[aynig]\n\tcommandsFrom = branch\n\tjobs = 1\n")
        .expect("config");
    if !machines::alone() {
        print_table(&all(&place));
    }
    machines::print(&place);
    if std::env::var("AYNIG_BENCH_ROWS").map_or(true, |rows| rows == "profile") {
        profile::print(&place);
    }
    let _ = std::fs::remove_dir_all(&root);
}

fn all(place: &Place) -> Vec<Row> {
    let mut rows = Vec::new();
    idle(place, &mut rows);
    ticks(place, 10, &mut rows);
    ticks(place, 1000, &mut rows);
    original::ticks(place, &mut rows);
    for branches in [1000, 10_000, 100_000] {
        (0..HEADS.len()).for_each(|heads| scans(place, branches, heads, &mut rows));
    }
    if wanted(many::HISTORY_ROW) {
        many::history(place, &mut rows);
    }
    many::branches(place, &mut rows);
    if LARGE_ROWS.iter().any(|name| wanted(name)) {
        large(place, &mut rows);
    }
    landing::commits(place, &mut rows);
    landing::remotes(place, &mut rows);
    if wanted(landing::PUSH_ROW) {
        landing::pushes(place, &mut rows);
    }
    landing::hooks_of_pushes(place, &mut rows);
    talk::all(place, &mut rows);
    looks::status(place, &mut rows);
    looks::events(place, &mut rows);
    flows::turns(place, &mut rows);
    flows::looks(place, &mut rows);
    rows
}

fn print_table(rows: &[Row]) {
    println!("| work | ms | yardstick | ms | ratio | at most | |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for row in rows {
        let (a, b) = row.medians();
        let (found, limit, verdict) = row.limit.judge(a, b);
        println!("| {} | {a:.2} | `{}` | {b:.2} | {found} | {limit} | {verdict} |", row.name, row.yardstick);
    }
}
