//! Budgets: what was spent holds back what would spend more.

use crate::support::life::Life;

const NEXT: &str = "echo 'SET_STATE {\"state\":\"review\",\"usage\":{\"cost_usd\":0.1}}'";

/// K54: a head beyond a budget is not dispatched, with the figures and the command that raises it; that command does.
#[test]
fn what_is_spent_is_spent_until_somebody_raises_it() {
    for key in ["budgetPerDay", "budgetPerBranch"] {
        let life = Life::new(&[("build", NEXT)]);
        life.config(&format!("aynig.{key}"), "0.3");
        for _ in 0..3 {
            life.event("work", "build", "");
            life.tick(&["work"]).expect(0);
            assert_eq!(life.state("work"), "review", "{key}");
        }
        let head = life.event("work", "build", "");
        let held = life.tick(&["work"]);
        let said = format!("{}{}", held.stdout, held.stderr);
        assert!(
            said.contains("0.30 USD were spent") && said.contains("the budget is 0.30 USD"),
            "{key}: {said}"
        );
        assert_eq!(life.rev("work"), head, "{key}");
        assert!(life.run(&["status", "work"]).stdout.contains("the budget is 0.30 USD"), "{key}");
        // Another branch: of the day there is nothing left for it either.
        life.event("other", "build", "");
        life.tick(&["other"]);
        assert_eq!(life.state("other") == "review", key == "budgetPerBranch", "{key}");
        let hint = said.lines().find_map(|line| line.split_once("git config ")).unwrap().1;
        life.git(&[&["config"], &hint.split(' ').collect::<Vec<_>>()[..]].concat());
        life.tick(&["work"]).expect(0);
        assert_eq!(life.state("work"), "review", "{key}");
    }
}

/// K54: yesterday's is not today's, several runs at a time share a budget, and what is no amount is an error that names its key.
#[test]
fn a_day_begins_anew() {
    let life = Life::new(&[("build", NEXT)]);
    life.config("aynig.budgetPerDay", "1");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let spent = "x\n\ndwp-state: done\ndwp-run-id: r1\ndwp-usage: input=0 output=0 cost-usd=5\n";
    life.event_at("old", spent, Some(now - 24 * 3600));
    life.event("work", "build", "");
    life.tick(&["work"]).expect(0);
    assert_eq!(life.state("work"), "review");
    life.event_at("new", spent, Some(now));
    life.event("work", "build", "");
    life.tick(&["work"]);
    assert_eq!(life.state("work"), "build");
    life.config("aynig.budgetPerDay", "much");
    let said = life.tick(&["work"]).expect(128);
    assert!(said.stderr.contains("budgetPerDay") && said.stderr.contains("12.50"), "{}", said.stderr);
}

/// K54: clocks differ, and one commit with an old date hides nothing of what was spent below it.
#[test]
fn an_old_date_hides_no_spending_below_it() {
    let life = Life::new(&[("build", NEXT)]);
    life.config("aynig.budgetPerDay", "1");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let spent = |run: &str| {
        format!("x\n\ndwp-state: done\ndwp-run-id: {run}\ndwp-usage: input=0 output=0 cost-usd=5\n")
    };
    life.event_at("other", &spent("r1"), Some(now));
    life.event_at("other", &spent("r2"), Some(1));
    life.event("work", "build", "");
    life.tick(&["work"]);
    assert_eq!(life.state("work"), "build");
    let used =
        |args: &[&str]| life.run(&[&["usage", "--json"], args].concat()).expect(0).json()["runs"].clone();
    assert_eq!((used(&["--since", "1d"]), used(&[])), (1.into(), 2.into()));
}

/// K54: what a branch says that `aynig.branches` leaves out holds nothing up.
#[test]
fn a_branch_that_is_left_out_spends_nothing() {
    let life = Life::new(&[("build", NEXT)]);
    life.config("aynig.budgetPerDay", "1");
    life.config("aynig.branches", "work");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let spent = "x\n\ndwp-state: done\ndwp-run-id: r1\ndwp-usage: input=0 output=0 cost-usd=5\n";
    life.event_at("elsewhere", spent, Some(now));
    life.event("work", "build", "");
    life.tick(&["work"]).expect(0);
    assert_eq!(life.state("work"), "review");
}
