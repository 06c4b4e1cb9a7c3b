//! Templates of roles: the text that tells a node what it is, found by the name of its role.
//!
//! Five are this program's. The repository's own are files of `refs/aynig/templates`, one commit a change,
//! and take precedence over those. A prompt is made from the templates that exist when the turn begins. If
//! the ref can't be read, a turn goes on as if the repository had no templates, and the verb that lists or
//! changes them reports it. Implements N2a (templates).

use super::{FlowError, Flows};
use crate::contract::shown;
use crate::contract::words::TemplateSource;
use crate::protocol::dialect::{Dialect, FROM, RECOVERY_ID};
use crate::protocol::flow::TEMPLATES;
use crate::protocol::id::ObjectId;
use crate::protocol::message::Message;
use crate::protocol::pause::Holder;
use crate::store::files::{Bounds, Read, read_files, write_files};
use crate::store::{Expected, RefChange, RefName};
use std::collections::BTreeMap;

/// The most templates, the most bytes of one, and the most bytes of all.
const BOUNDS: Bounds = Bounds { files: 1000, file: 1 << 20, all: 64 << 20 };
/// How often a change is tried, if other processes are quicker each time.
const TRIES: usize = 500;

/// The templates of this program, by their names.
const OWN: [(&str, &str); 5] = [
    ("implementer", include_str!("templates/implementer.md")),
    ("investigator", include_str!("templates/investigator.md")),
    ("orchestrator", include_str!("templates/orchestrator.md")),
    ("planner", include_str!("templates/planner.md")),
    ("reviewer", include_str!("templates/reviewer.md")),
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// The role that it is for.
    pub name: String,
    /// Whether the template is this program's or the repository's own.
    pub source: TemplateSource,
    /// The text that tells a node of this role what it is.
    pub text: String,
}

/// Refuses a name that no template can have.
fn named(name: &str) -> Result<(), FlowError> {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    let ok = !name.is_empty() && name.len() <= 64 && name.bytes().all(fits);
    if ok { Ok(()) } else { Err(FlowError::NoTemplateName(shown::line(name.as_bytes()))) }
}

fn path(name: &str) -> String {
    format!("{name}.md")
}

/// Returns the repository's templates, and those of this program's whose names the repository does not use.
fn over_own(files: Read) -> Vec<Template> {
    let own = OWN.iter().map(|(name, text)| Template {
        name: (*name).to_owned(),
        source: TemplateSource::System,
        text: (*text).to_owned(),
    });
    let mut all: BTreeMap<String, Template> = own.map(|own| (own.name.clone(), own)).collect();
    for (path, content) in files.files {
        let Some(name) = path.strip_suffix(".md").filter(|name| named(name).is_ok()) else { continue };
        let Ok(text) = String::from_utf8(content) else { continue };
        let name = name.to_owned();
        all.insert(name.clone(), Template { name, source: TemplateSource::Repo, text });
    }
    all.into_values().collect()
}

impl Flows<'_, '_> {
    /// Returns all templates, sorted by their names.
    pub fn templates(&self) -> Result<Vec<Template>, FlowError> {
        Ok(over_own(self.template_files()?.1))
    }

    /// Returns the template of this name.
    ///
    /// # Errors
    /// [`FlowError::NoTemplate`], [`FlowError::NoTemplateName`].
    pub fn template(&self, name: &str) -> Result<Template, FlowError> {
        named(name)?;
        let found = self.templates()?.into_iter().find(|template| template.name == name);
        found.ok_or_else(|| FlowError::NoTemplate(name.to_owned()))
    }

    /// Returns the text that tells a node of this role what it is: the template of that name in any case, or
    /// a sentence with the name where there is none.
    pub fn role_text(&self, role: &str) -> Result<String, FlowError> {
        // Nothing that a pusher put there keeps a node from its turn.
        let own = match self.template_files() {
            Err(FlowError::Unreadable { .. }) => Read::default(),
            read => read?.1,
        };
        let all = over_own(own);
        let exact = all.iter().find(|template| template.name == role.trim());
        let found = exact.or_else(|| all.iter().find(|t| t.name.eq_ignore_ascii_case(role.trim())));
        Ok(match found {
            Some(template) => template.text.clone(),
            None => format!("You are the {} of this flow.", shown::line(role.trim().as_bytes())),
        })
    }

    /// Writes one of the repository's own templates.
    pub fn set_template(&self, name: &str, text: &str, by: &Holder) -> Result<(), FlowError> {
        named(name)?;
        if text.len() as u64 > BOUNDS.file {
            let (bytes, most) = (text.len(), 1 << 20);
            let what = "the template";
            return Err(crate::contract::flow::Refused::TooLong { what, bytes, most }.into());
        }
        self.change_templates(name, Some(text), by)
    }

    /// Removes one of the repository's own templates.
    ///
    /// # Errors
    /// [`FlowError::NotOwnTemplate`].
    pub fn remove_template(&self, name: &str, by: &Holder) -> Result<(), FlowError> {
        named(name)?;
        self.change_templates(name, None, by)
    }

    fn change_templates(&self, name: &str, text: Option<&str>, by: &Holder) -> Result<(), FlowError> {
        for _ in 0..TRIES {
            let (at, before) = self.template_files()?;
            let mut files = before.files.clone();
            let changed = match text {
                Some(text) => {
                    files.insert(path(name), text.as_bytes().to_vec()).as_deref() != Some(text.as_bytes())
                }
                None if files.remove(&path(name)).is_none() => {
                    return Err(FlowError::NotOwnTemplate(name.to_owned()));
                }
                None => true,
            };
            if !changed {
                return Ok(());
            }
            let tree = write_files(&*self.runner.store, &files, &before)?;
            let subject =
                format!("flow: {} template '{name}'", if text.is_some() { "set" } else { "remove" });
            let trailers =
                vec![Dialect::Dwp.trailer(FROM, by), Dialect::Dwp.trailer(RECOVERY_ID, uuid::Uuid::new_v4())];
            let message = Message::new(subject, "", trailers);
            let ref_name = RefName::new(TEMPLATES);
            let commit = self.runner.write_said(&ref_name, tree, at.into_iter().collect(), message)?;
            let expected = at.map_or(Expected::Missing, Expected::At);
            if self.swap(RefChange { name: ref_name, expected, new: Some(commit) }, &[])? {
                return Ok(());
            }
        }
        Err(FlowError::Raced("templates".to_owned()))
    }

    /// Reads the repository's own template files, and the commit that has them; `None` where there is no such
    /// commit.
    fn template_files(&self) -> Result<(Option<ObjectId>, Read), FlowError> {
        let name = RefName::new(TEMPLATES);
        let Some(at) = self.runner.store.tip(&name)? else { return Ok((None, Read::default())) };
        let commit = self.runner.store.read_commit(at)?;
        if !self.runner.is_vouched(&name, at, &Message::parse(&commit.message))? {
            return Err(FlowError::bad(&name, "it is not signed"));
        }
        let files = read_files(&*self.runner.store, commit.tree, BOUNDS);
        Ok((Some(at), files.map_err(|why| FlowError::tree(&name, why))?))
    }
}
