//! Texts of roles.

use super::review;

/// N2a: five are the program's, and the repository's own stand over them.
#[test]
fn a_template_of_the_repository_stands_over_the_programs() {
    let life = review();
    let names = |life: &crate::support::life::Life| life.flow(&["template", "list"]).expect(0).stdout;
    assert_eq!(
        names(&life),
        "implementer (system)\ninvestigator (system)\norchestrator (system)\nplanner (system)\nreviewer (system)\n"
    );
    let own = life.flow(&["template", "show", "reviewer"]).expect(0).stdout;
    assert!(own.starts_with("You review"), "{own}");
    life.flow(&["template", "set", "reviewer", "-m", "Say no."]).expect(0);
    life.flow(&["template", "set", "poet", "-m", "Rhyme."]).expect(0);
    assert_eq!(life.flow(&["template", "show", "reviewer"]).expect(0).stdout, "Say no.\n");
    assert!(names(&life).contains("poet (repo)\nreviewer (repo)\n"));
    assert_eq!(life.git(&["show", "refs/aynig/templates:poet.md"]), "Rhyme.");
    assert_eq!(life.git(&["log", "--format=%s", "refs/aynig/templates"]).lines().count(), 2);
    life.flow(&["template", "rm", "reviewer"]).expect(0);
    assert_eq!(life.flow(&["template", "show", "reviewer"]).expect(0).stdout, own);
    for (args, words) in [
        (&["template", "rm", "reviewer"][..], "is not the repository's own"),
        (&["template", "show", "nobody"], "there is no template 'nobody'"),
        (&["template", "set", "../x", "-m", "y"], "'../x' is no name of a template"),
        (&["template", "show", ""], "is no name of a template"),
    ] {
        let said = life.flow(args).expect(2).stderr;
        assert!(said.contains(words), "{said}");
    }
    life.repo.assert_sound();
}
