//! What runs use, from the command that says it to the commit that keeps it.

use crate::support::life::{Done, Life};

/// All values of a trailer, in order.
fn all(life: &Life, commit: &str, key: &str) -> Vec<String> {
    let said = life.git(&["log", "-1", &format!("--format=%(trailers:key={key},valueonly)"), commit]);
    said.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

fn run(script: &str) -> (Life, Done) {
    let life = Life::new(&[("build", script)]);
    life.event("work", "build", "");
    let done = life.tick(&["work"]);
    (life, done)
}

/// K54: what is declared and what is told add up, one trailer a model, and dollars are exact.
#[test]
fn what_is_declared_and_what_is_told_add_up() {
    let line = |cost: &str, model: &str| {
        format!(
            "echo '{{\"type\":\"usage\",\"input_tokens\":10,\"output_tokens\":1,\"cost_usd\":{cost},\"model\":\"{model}\"}}' \
             >>\"$AYNIG_EVENTS\"\n"
        )
    };
    let declared =
        "{\"state\":\"next\",\"usage\":{\"input_tokens\":5,\"cost_usd\":\"0.1\",\"model\":\"big\"}}";
    let script = [
        line("0.1", "big"),
        line("0.1", "big"),
        line("1e-6", "small"),
        "echo torn >>\"$AYNIG_EVENTS\"\n".into(),
        line("-1", "big"),
        format!("echo 'SET_STATE {declared}'"),
    ]
    .concat();
    let (life, done) = run(&script);
    done.expect(0);
    let usage = all(&life, "work", "dwp-usage");
    assert_eq!(
        usage,
        ["input=25 output=2 cost-usd=0.30 model=big", "input=10 output=1 cost-usd=0.000001 model=small"]
    );
    assert_eq!(life.state("work"), "next");
}

/// K54: a run that failed has cost what it told.
#[test]
fn a_run_that_stalled_says_what_it_used() {
    let told = "echo '{\"type\":\"usage\",\"input_tokens\":7}' >>\"$AYNIG_EVENTS\"";
    let (life, done) = run(&format!("{told}; exit 3"));
    done.expect(1);
    assert_eq!(all(&life, "work", "dwp-usage"), ["input=7 output=0"]);
    let (life, done) = run(&format!("{told}; git aynig set-state next; exit 3"));
    done.expect(0);
    assert_eq!(
        (life.state("work").as_str(), all(&life, "work", "dwp-usage")),
        ("next", vec!["input=7 output=0".into()])
    );
}

/// K8, K54: who recovers a run on its own machine says what it had told.
#[test]
fn a_recovery_says_what_the_dead_run_had_used() {
    let told = "echo '{\"type\":\"usage\",\"input_tokens\":9}' >>\"$AYNIG_EVENTS\"";
    let life = Life::new(&[("build", &format!("{told}; exit 0"))]);
    life.event("work", "build", "");
    life.tick(&["work", "--lease", "4s"]).expect(0);
    assert_eq!(life.state("work"), "working");
    assert_eq!(all(&life, "work", "dwp-usage"), [""; 0]);
    crate::support::life::eventually("the recovery", || {
        life.tick(&["work"]);
        (life.state("work") == "stalled").then_some(())
    });
    assert_eq!(all(&life, "work", "dwp-usage"), ["input=9 output=0"]);
}

/// K54, K19: usage of another shape is no declaration, and no trailer of that name is a command's.
#[test]
fn usage_that_cannot_be_counted_is_no_declaration() {
    for usage in
        ["7", "[]", "{\"input_tokens\":-1}", "{\"cost_usd\":\"free\"}", "{\"cost_usd\":-1}", "{\"model\":7}"]
    {
        let (life, done) = run(&format!("echo 'SET_STATE {{\"state\":\"next\",\"usage\":{usage}}}'"));
        done.expect(1);
        assert_eq!(life.state("work"), "stalled", "{usage}");
    }
    let (life, done) = run("echo 'SET_STATE {\"state\":\"next\",\"trailers\":[\"dwp-usage: input=1\"]}'");
    done.expect(1);
    assert_eq!(life.state("work"), "stalled");
}

/// K51: a wait from now on becomes a moment; one that can't be read is no declaration.
#[test]
fn a_declared_wait_becomes_a_moment() {
    for (said, wait) in [("\"+15m\"", 900), ("\"+90\"", 90), ("\"+1h 30m\"", 5400), ("\"+0\"", 0)] {
        let (life, done) = run(&format!("echo 'SET_STATE {{\"state\":\"next\",\"not_before\":{said}}}'"));
        done.expect(0);
        let at = life.trailer("work", "dwp-not-before").unwrap();
        let at =
            humantime::parse_rfc3339(&at).unwrap().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        let written: u64 = life.git(&["log", "-1", "--format=%ct", "work"]).parse().unwrap();
        assert!((written + wait).abs_diff(at) <= 3, "{said}: {at} {written}");
    }
    for (said, kept) in
        [("1900000000", "2030-03-17T17:46:40Z"), ("\"2030-03-17T18:46:40+01:00\"", "2030-03-17T17:46:40Z")]
    {
        let (life, done) = run(&format!("echo 'SET_STATE {{\"state\":\"next\",\"not_before\":{said}}}'"));
        done.expect(0);
        assert_eq!(life.trailer("work", "dwp-not-before").unwrap(), kept, "{said}");
    }
    for said in ["\"soon\"", "\"+\"", "\"+x\"", "-5", "1.5", "true", "\"+999999999999999999\"", "\"+11y\""] {
        let (life, done) = run(&format!("echo 'SET_STATE {{\"state\":\"next\",\"not_before\":{said}}}'"));
        done.expect(1);
        assert_eq!(life.state("work"), "stalled", "{said}");
    }
}
