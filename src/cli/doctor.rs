//! `doctor`: what would stop a tick here, one line a finding, each with the command that mends it.

use super::args::Doctor;
use super::fail::Failure;
use super::session::Global;
use super::{mend, output};
use crate::app::doctor::{DoctorLine, Finding, Questions, examine};
use crate::runner::checkup::Level;

/// Runs `git aynig doctor`.
pub fn run(global: &Global, args: &Doctor) -> Result<i32, Failure> {
    let questions = Questions { network: args.network, history: args.history.clone() };
    let found = examine(|| global.open(), &questions);
    let mut lines = output::Lines::begin();
    for finding in &found {
        let hint = finding.remedy.as_ref().map(mend::remedy);
        if args.json {
            lines.offer_json(&DoctorLine::new(finding, hint));
        } else if !global.quiet || finding.level != Level::Ok {
            lines.offer(&text(finding, hint));
        }
    }
    drop(lines);
    Ok(i32::from(found.iter().any(|f| f.level == Level::Error)))
}

fn text(finding: &Finding, hint: Option<String>) -> String {
    let mut text = format!("{:<7}  {:<13}  {}", finding.level.name(), finding.subject, finding.text);
    if let Some(hint) = hint {
        text += &format!("\n         hint: {hint}");
    }
    text
}
