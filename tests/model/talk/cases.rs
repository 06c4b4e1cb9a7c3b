//! What is checked: who is there and what goes wrong, with every rule in place; and rules left out.
//!
//! With every rule in place only a delivery that was under way when a pause was made comes after that (P3): what it
//! writes is dispatched when the pause is over. On a remote a push that was not acknowledged may come later than what followed it
//! (A1, I1).

use super::commits::Start;
use super::promises::Promise;
use super::world::{A, A_BESIDE, B, Faults, Role, Rule, TWIN, Work, World};
use Promise::{A1, A2, D1, D2, D3, F1, F2, I1, P1, P3, R1, R2, S1, S2, T1, T2, W};
use Role::{Answerer, Beside, Collector, Resumer, Sender, Ticker};

/// A world, and what can't hold in it.
pub struct Case {
    pub name: &'static str,
    pub world: World,
    pub fails: &'static [Promise],
}

const NO: Faults = Faults { kill: 0, fail: 0, lost: 0, server: 0, user: 0, take: 0 };
const KILL: Faults = Faults { kill: 1, ..NO };
const PAUSER: Role = Role::Pauser { stop: false };
const STOPPER: Role = Role::Pauser { stop: true };

fn world(start: Start, roles: &[Role], faults: Faults) -> World {
    World {
        roles: roles.to_vec(),
        start,
        work: Work::Nothing,
        remote: false,
        line: 20,
        by_hooks: false,
        faults,
        last_tick: 0,
        runs: 2,
        without: None,
    }
}

fn idle(roles: &[Role], faults: Faults) -> World {
    world(Start::Idle, roles, faults)
}

/// A and B bring work.
fn working(work: Work, world: World) -> World {
    World { work, ..world }
}

fn remote(world: World) -> World {
    World { remote: true, ..world }
}

fn hooks(world: World) -> World {
    World { by_hooks: true, ..world }
}

fn ticks(last_tick: u8, world: World) -> World {
    World { last_tick, ..world }
}

/// So few commits are looked at that a run is longer.
fn short(world: World) -> World {
    World { line: 1, runs: 3, ..world }
}

/// Every rule in place.
pub fn cases() -> Vec<Case> {
    let case = |name, world, fails: &'static [Promise]| Case { name, world, fails };
    let two = [Ticker, Ticker, Sender(A), Sender(B)];
    let twice = [Ticker, Sender(A), Sender(A)];
    let failing = Faults { fail: 1, ..NO };
    let asked = [Ticker, Answerer, Answerer];
    vec![
        case("two messages, two ticks", idle(&two, NO), &[]),
        case("two messages, one is killed", idle(&[Ticker, Sender(A), Sender(B)], KILL), &[]),
        case(
            "a tick is killed, and what was brought lies deep",
            short(idle(&[Ticker, Sender(A)], KILL)),
            &[],
        ),
        case("one is sent twice, and one is killed", idle(&twice, KILL), &[]),
        case("two kinds under one id, one is killed", idle(&[Ticker, Sender(A), Sender(TWIN)], KILL), &[]),
        case("what is brought is asked for again", idle(&[Ticker, Sender(A)], failing), &[]),
        case("a command takes a message itself", takes(Faults { take: 1, fail: 1, kill: 1, ..NO }), &[]),
        case("a remote, an answer is lost", remote(idle(&two[1..], Faults { lost: 1, ..NO })), &[]),
        case("a remote, its server is killed", remote(idle(&two[1..], Faults { server: 1, ..NO })), &[]),
        case("two bring work, one is killed", joins(KILL), &[]),
        case("two bring work that conflicts, one is killed", conflicts(KILL), &[]),
        case(
            "two bring work that conflicts on a remote, its server is killed",
            remote(conflicts(Faults { server: 1, ..NO })),
            &[],
        ),
        case("two bring work that conflicts, and what was heard is collected", collects(), &[]),
        case(
            "a command takes a message that brings work",
            working(Work::Joins, takes(Faults { take: 1, fail: 1, kill: 1, ..NO })),
            &[],
        ),
        case("one id to two branches, one is killed", idle(&BOTH, KILL), &[]),
        case(
            "one id to two branches of a remote, an answer is lost",
            remote(idle(&BOTH, Faults { lost: 1, ..NO })),
            &[],
        ),
        case("two answer", world(Start::Ask, &asked, NO), &[]),
        case("two answer, one is killed", world(Start::Ask, &asked, KILL), &[]),
        case(
            "two answer on a remote, an answer to one is lost",
            remote(world(Start::Ask, &asked, Faults { lost: 1, ..NO })),
            &[A1],
        ),
        case("a person asks anew meanwhile", anew(), &[]),
        case("a pause, and a resume", world(Start::Build, &[Ticker, Ticker, PAUSER, Resumer], NO), &[]),
        case("a pause while a message comes", idle(&[Ticker, Sender(A), PAUSER, Resumer], NO), &[P3]),
        case("a pause that stops, and a resume", stopping(NO), &[]),
        case("the same, one is killed", ticks(1, stopping(KILL)), &[]),
        case("the same on a remote, an answer is lost", remote(stopping(Faults { lost: 1, ..NO })), &[I1]),
        case("an hour, a pause", ticks(2, world(Start::BuildLater, &[Ticker, PAUSER, Resumer], NO)), &[]),
        case("another branch, a pause", world(Start::BuildAfter, &[Ticker, PAUSER, Resumer], NO), &[]),
        case("by hooks alone: two messages", hooks(idle(&two, NO)), &[]),
        case("by hooks alone: two answer", hooks(world(Start::Ask, &asked, NO)), &[]),
        case(
            "by hooks alone: a pause and a message",
            hooks(idle(&[Ticker, Sender(A), PAUSER, Resumer], NO)),
            &[P3],
        ),
        case("by hooks alone: a pause that stops", hooks(stopping(NO)), &[]),
        case("by hooks alone: another branch", hooks(world(Start::BuildAfter, &[Ticker, Ticker], NO)), &[]),
        case("by hooks alone: an hour", hooks(ticks(2, world(Start::BuildLater, &[Ticker], NO))), &[]),
    ]
}

/// The same with more of everything, further than a test of each day goes.
pub fn larger() -> Vec<Case> {
    let case = |name, world: World, fails: &'static [Promise]| Case {
        name,
        world: World { runs: 4, ..world },
        fails,
    };
    let two = Faults { kill: 2, ..NO };
    let all = Faults { kill: 1, lost: 1, server: 1, ..NO };
    let one_id = [Ticker, Ticker, Sender(A), Sender(TWIN)];
    let asked = [Ticker, Ticker, Answerer, Answerer];
    let stopped = [Ticker, Ticker, Sender(A), STOPPER, Resumer];
    let marks = Faults { take: 1, fail: 1, kill: 1, ..NO };
    // What fails in the cases above (A1, I1, P3) lies deeper here than is visited.
    vec![
        case(
            "larger: three send, two ticks, two are killed",
            idle(&[Ticker, Ticker, Sender(A), Sender(A), Sender(B)], two),
            &[],
        ),
        case("larger: two kinds under one id, two are killed", idle(&one_id, two), &[]),
        case("larger: a remote, all that may go wrong", remote(idle(&one_id, all)), &[]),
        case(
            "larger: two answer, a person asks anew, two are killed",
            world(Start::Ask, &asked, Faults { user: 1, ..two }),
            &[],
        ),
        case(
            "larger: two answer on a remote, all that may go wrong",
            remote(world(Start::Ask, &asked, all)),
            &[],
        ),
        case("larger: a command takes a message, two ticks", world(Start::Build, &one_id, marks), &[]),
        case(
            "larger: a pause that stops, a message, two are killed",
            ticks(1, world(Start::Build, &stopped, two)),
            &[],
        ),
        case(
            "larger: the same on a remote, all that may go wrong",
            remote(ticks(1, world(Start::Build, &stopped, all))),
            &[],
        ),
    ]
}

/// A command that runs while a message comes, and may take it.
fn takes(faults: Faults) -> World {
    world(Start::Build, &[Ticker, Sender(A)], faults)
}

/// Each of two branches has one message, under one id.
const BOTH: [Role; 4] = [Ticker, Beside, Sender(A), Sender(A_BESIDE)];

fn joins(faults: Faults) -> World {
    working(Work::Joins, idle(&[Ticker, Sender(A), Sender(B)], faults))
}

fn conflicts(faults: Faults) -> World {
    working(Work::Conflicts, idle(&[Ticker, Sender(A), Sender(B)], faults))
}

fn collects() -> World {
    working(Work::Conflicts, idle(&[Ticker, Sender(A), Sender(B), Collector], NO))
}

fn stopping(faults: Faults) -> World {
    World { runs: 3, ..world(Start::Build, &[Ticker, STOPPER, Resumer], faults) }
}

/// The first question is answered, and a second one asked meanwhile.
fn anew() -> World {
    World { runs: 3, ..world(Start::Ask, &[Ticker, Answerer], Faults { user: 1, ..NO }) }
}

/// Each rule left out, alone; `fails` is what is named for it.
pub fn ablations() -> Vec<(Rule, Case)> {
    let without = |rule, name, world: World, fails| {
        (rule, Case { name, world: World { without: Some(rule), ..world }, fails })
    };
    let server = || remote(idle(&[Ticker, Sender(A)], Faults { server: 1, ..NO }));
    let twice = || idle(&[Ticker, Sender(A), Sender(A)], NO);
    let asked = [Ticker, Answerer, Answerer];
    let meanwhile = world(Start::Build, &[Ticker, Ticker, Sender(A)], NO);
    vec![
        without(Rule::BranchFirst, "one is killed", idle(&[Ticker, Sender(A)], KILL), &[D2]),
        without(Rule::TakenOffBefore, "a tick is killed", short(idle(&[Ticker, Sender(A)], KILL)), &[D1]),
        without(Rule::LineIsRead, "a server is killed", server(), &[D1]),
        without(Rule::HeardIsNoProof, "a server is killed", server(), &[D2]),
        without(Rule::HeardElsewhere, "one is sent twice", short(twice()), &[D1]),
        without(Rule::HeardByAnother, "one id to two branches", idle(&BOTH, NO), &[D2]),
        without(Rule::ConflictIsNoParent, "two bring work that conflicts", conflicts(NO), &[F1]),
        without(
            Rule::ConflictIsNamed,
            "a server is killed",
            remote(conflicts(Faults { server: 1, ..NO })),
            &[D1],
        ),
        without(Rule::IntoTheInterim, "two bring work", joins(NO), &[F1]),
        without(
            Rule::WorkIsIn,
            "a command takes a message",
            working(Work::Joins, takes(Faults { take: 1, ..NO })),
            &[F1],
        ),
        without(Rule::KeptWhileNotIn, "what was heard is collected", collects(), &[F2]),
        without(Rule::InboxBeforeHeard, "one is sent twice", twice(), &[S1]),
        without(Rule::OnlyWhereNoneIs, "one is sent twice", twice(), &[S2]),
        without(
            Rule::HeardAgain,
            "a command fails",
            idle(&[Ticker, Sender(A)], Faults { fail: 1, ..NO }),
            &[D3],
        ),
        without(
            Rule::TakenWithTheOutcome,
            "a command fails",
            takes(Faults { take: 1, fail: 1, ..NO }),
            &[D2],
        ),
        without(Rule::OneAnswer, "two answer", world(Start::Ask, &asked, NO), &[A1]),
        without(Rule::OwnQuestion, "a person asks anew", anew(), &[A2]),
        without(Rule::LooksAgain, "a pause", world(Start::Build, &[Ticker, PAUSER], NO), &[P1]),
        without(Rule::NotedFirst, "one is killed", stopping(KILL), &[R1]),
        without(Rule::AskedBeforeItLetsGo, "one is killed", stopping(KILL), &[R1]),
        without(Rule::OnlyWhatItEnded, "no fault", stopping(NO), &[R2]),
        without(Rule::SaidGoesFirst, "one is killed", stopping(KILL), &[I1]),
        without(Rule::NotBefore, "an hour", world(Start::BuildLater, &[Ticker], NO), &[T1]),
        without(Rule::After, "another branch", world(Start::BuildAfter, &[Ticker], NO), &[T2]),
        without(Rule::SenderStarts, "a message", hooks(idle(&[Ticker, Sender(A)], NO)), &[W]),
        without(Rule::LastLook, "a message comes meanwhile", hooks(meanwhile), &[W]),
        without(
            Rule::ResumeStarts,
            "a pause",
            hooks(world(Start::Build, &[Ticker, PAUSER, Resumer], NO)),
            &[W],
        ),
        without(Rule::AwaitedStarts, "another branch", hooks(world(Start::BuildAfter, &[Ticker], NO)), &[W]),
    ]
}

impl Rule {
    /// All of them.
    pub const ALL: [Rule; 28] = [
        Rule::BranchFirst,
        Rule::TakenOffBefore,
        Rule::LineIsRead,
        Rule::HeardIsNoProof,
        Rule::HeardElsewhere,
        Rule::HeardByAnother,
        Rule::ConflictIsNoParent,
        Rule::ConflictIsNamed,
        Rule::IntoTheInterim,
        Rule::WorkIsIn,
        Rule::KeptWhileNotIn,
        Rule::InboxBeforeHeard,
        Rule::OnlyWhereNoneIs,
        Rule::HeardAgain,
        Rule::TakenWithTheOutcome,
        Rule::OneAnswer,
        Rule::OwnQuestion,
        Rule::LooksAgain,
        Rule::NotedFirst,
        Rule::AskedBeforeItLetsGo,
        Rule::OnlyWhatItEnded,
        Rule::SaidGoesFirst,
        Rule::NotBefore,
        Rule::After,
        Rule::SenderStarts,
        Rule::LastLook,
        Rule::ResumeStarts,
        Rule::AwaitedStarts,
    ];

    /// The rule in words.
    pub fn says(self) -> &'static str {
        match self {
            Rule::BranchFirst => "K47a: a branch moves before the refs of what it takes",
            Rule::TakenOffBefore => "K47a: what a head brought is taken off before anything else is written",
            Rule::LineIsRead => "K47a: what the branch's own commits brought is not delivered again",
            Rule::HeardIsNoProof => "K47a: a ref under heard that holds the message itself proves nothing",
            Rule::HeardElsewhere => "K47a: a message whose id another commit has under heard is taken off",
            Rule::HeardByAnother => "K46a: what another branch has heard under the same id takes nothing off",
            Rule::ConflictIsNoParent => "K47: a message whose work conflicts is no parent of its delivery",
            Rule::ConflictIsNamed => {
                "K47: a message whose work conflicts is named by its delivery, and counts"
            }
            Rule::IntoTheInterim => {
                "K47: attached work is merged one after another, each into what was merged"
            }
            Rule::WorkIsIn => "K48: what a command marked goes with its outcome where that has its work",
            Rule::KeptWhileNotIn => "K46a: what was heard stays while no branch has the work that it brings",
            Rule::InboxBeforeHeard => "K46: who sends again asks the inbox before what was heard",
            Rule::OnlyWhereNoneIs => "K46: a message's ref is made where there is none",
            Rule::HeardAgain => "K47: what asks for a trigger again names what it heard",
            Rule::TakenWithTheOutcome => "K48: what a command marked goes with its outcome",
            Rule::OneAnswer => "K49a: an answer's id is its question's, and it goes with the question",
            Rule::OwnQuestion => "K49a: only the answer to the head's own question is delivered",
            Rule::LooksAgain => "K50: pauses are looked at again between claim and start",
            Rule::NotedFirst => "K50: what is stopped is named in the pause before it is ended",
            Rule::AskedBeforeItLetsGo => "K50: what was stopped is asked for again before the pause goes",
            Rule::OnlyWhatItEnded => "K50: only a head that this pause ended is asked for again",
            Rule::SaidGoesFirst => {
                "K50: what a pause said to a run is taken away before that is asked for again"
            }
            Rule::NotBefore => "K51: a head is not dispatched before its hour",
            Rule::After => "K52: a head waits for the branches that it names",
            Rule::SenderStarts => "K46: who sends or answers starts what the hook would have started",
            Rule::LastLook => "K47a: a run that has ended looks at its branch once more",
            Rule::ResumeStarts => "K50: a resume starts what the pause held",
            Rule::AwaitedStarts => "K52: a branch that others wait for starts them",
        }
    }
}
