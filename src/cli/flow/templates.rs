//! `flow template`.

use super::super::args_flow::TemplateVerb;
use super::super::fail::Failure;
use super::super::session::Global;
use super::super::{change, output};
use super::changing;
use crate::app::flow::lines::TemplateLine;
use crate::app::flow::templates::{list, remove, set, show};
use crate::protocol::text::{escape, escape_block};

/// Runs `git aynig flow template`.
pub fn run(global: &Global, verb: &TemplateVerb) -> Result<i32, Failure> {
    match verb {
        TemplateVerb::List(args) => changing(global, &args.place, |change| {
            for template in list(change)? {
                match args.place.json {
                    true => output::line(&output::json(&TemplateLine::of(&template))),
                    false => {
                        output::line(&format!("{} ({})", escape(template.name.as_bytes()), template.source))
                    }
                }
            }
            Ok(0)
        }),
        TemplateVerb::Show(args) => changing(global, &args.place, |change| {
            let template = show(change, &args.name)?;
            match args.place.json {
                true => output::line(&output::json(&TemplateLine::of(&template))),
                false => output::line(escape_block(template.text.as_bytes()).trim_end_matches('\n')),
            }
            Ok(0)
        }),
        TemplateVerb::Set(args) => {
            let text = change::text(&args.message, args.file.as_deref())?;
            changing(global, &args.place, |change| {
                set(change, &args.name, &text)?;
                done(args.place.json, change, &args.name, "written")
            })
        }
        TemplateVerb::Rm(args) => changing(global, &args.place, |change| {
            remove(change, &args.name)?;
            match args.place.json {
                // No object is printed: by now the name stands for a built-in template, or for none.
                true => Ok(0),
                false => done(false, change, &args.name, "removed"),
            }
        }),
    }
}

fn done(json: bool, change: &crate::app::change::Change<'_>, name: &str, what: &str) -> Result<i32, Failure> {
    match json {
        true => output::line(&output::json(&TemplateLine::of(&show(change, name)?))),
        false => output::line(&format!("{}: {what}", escape(name.as_bytes()))),
    }
    Ok(0)
}
