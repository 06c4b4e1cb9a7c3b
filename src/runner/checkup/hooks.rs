//! Which hooks Git really runs in this repository, and whether the program that they call exists.

use super::Level::{Ok as Fine, Warning};
use super::{Finding, Findings, Mend, shown};
use crate::runner::{Runner, RunnerError};
use crate::store::hooks::{Hooks, Standing};

impl Runner<'_> {
    pub(super) fn check_hooks(&self, found: &mut Findings) -> Result<(), RunnerError> {
        let hooks = Hooks::of(self.repo)?;
        if !Hooks::any_installed(self.repo) {
            let text = "none installed: nothing starts by itself";
            found.push(Finding::new(Fine, "hooks", text));
            return Ok(());
        }
        if self.settings.hooks_off {
            found.push(Finding::new(Fine, "hooks", "off ('aynig.hooks'): nothing starts by itself"));
        }
        let mut names = Vec::new();
        for event in hooks.events() {
            match hooks.standing(*event)? {
                Standing::Block(_) | Standing::Configured(_) | Standing::ByHand(..) => {
                    names.push(event.name())
                }
                Standing::Absent => found.push(
                    Finding::new(Warning, "hooks", format!("{} was taken away", event.name()))
                        .mend(Mend::InstallHooks),
                ),
                Standing::LeftAlone(path, why) => found.push(
                    Finding::new(Warning, "hooks", format!("'{}' is left alone: {why}", shown(&path)))
                        .mend(Mend::InstallHooks),
                ),
            }
        }
        if let Some(program) = hooks.missing_program()? {
            let text = format!("they call '{}', which is not there", shown(&program));
            found.push(Finding::new(Warning, "hooks", text).mend(Mend::ReplaceProgram(program)));
        }
        if !names.is_empty() {
            found.push(Finding::new(
                Fine,
                "hooks",
                format!("{} in '{}'", names.join(", "), shown(hooks.dir())),
            ));
        }
        Ok(())
    }
}
