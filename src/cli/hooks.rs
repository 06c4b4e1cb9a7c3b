//! `hooks`: installs, removes and shows the hooks of this repository. Implements K41.

use super::args::HooksVerb;
use super::fail::Failure;
use super::output;
use super::session::Global;
use crate::app::mend;
use crate::protocol::text::escape;
use crate::store::hooks::{HookEvent, Hooks, Standing};
use std::path::Path;

/// Runs `git aynig hooks`.
pub fn run(global: &Global, what: HooksVerb) -> Result<i32, Failure> {
    let session = global.open()?;
    mend::all(&session);
    let hooks = Hooks::of(&session.repo)?;
    let program = std::env::current_exe()
        .and_then(std::fs::canonicalize)
        .map_err(|e| Failure::fatal(format!("cannot find the program: {e}")))?;
    match what {
        HooksVerb::Install => {
            let all = hooks.install(&program)?;
            let left = all.iter().any(|(_, standing)| !standing.is_installed());
            all.iter().for_each(|(event, standing)| show(*event, standing, global.quiet));
            for (event, _) in all.iter().filter(|(_, standing)| !standing.is_installed()) {
                output::note(&format!("hint: add these lines to that {} hook yourself:", event.name()));
                output::note(hooks.lines(*event, &program).trim_end());
            }
            // Git would start such a hook twice.
            let twice = all.iter().any(|(_, standing)| matches!(standing, Standing::Configured(_)));
            let by_hand = if twice { by_hand(&hooks)? } else { 0 };
            Ok(if left { 1 } else { by_hand })
        }
        HooksVerb::Uninstall => {
            let touched = hooks.uninstall()?;
            if !global.quiet {
                for path in &touched {
                    output::line(&format!("removed from {}", place(path)));
                }
                if touched.is_empty() {
                    output::line("Nothing to do: no hook of git-aynig is installed");
                }
            }
            by_hand(&hooks)
        }
        HooksVerb::Status => {
            let mut all = true;
            for event in hooks.events() {
                let standing = hooks.standing(*event)?;
                all &= standing.is_installed();
                show(*event, &standing, false);
            }
            Ok(if all { 0 } else { 1 })
        }
    }
}

/// Says which lines the user has to take out; the exit code is 1 where there are some.
fn by_hand(hooks: &Hooks<'_>) -> Result<i32, Failure> {
    let left = hooks.by_hand()?;
    for (path, why) in &left {
        output::note(&format!("{} is left alone: {why}", place(path)));
        output::note("hint: take out the lines from '# >>> aynig' to '# <<< aynig' yourself");
    }
    Ok(if left.is_empty() { 0 } else { 1 })
}

fn show(event: HookEvent, standing: &Standing, quiet: bool) {
    let text = match standing {
        Standing::Block(path) => format!("installed in {}", place(path)),
        Standing::Configured(path) => format!("installed by {}", place(path)),
        Standing::ByHand(path, why) => format!("installed in {} by hand: {why}", place(path)),
        Standing::Absent => "not installed".to_owned(),
        Standing::LeftAlone(path, why) => format!("not installed: {} is left alone: {why}", place(path)),
    };
    if !quiet {
        output::line(&format!("{:<13} {text}", event.name()));
    }
}

fn place(path: &Path) -> String {
    format!("'{}'", escape(path.as_os_str().as_encoded_bytes()))
}
