//! `flow template`: the texts of roles. Implements N2a (templates).

use crate::app::AppError;
use crate::app::change::Change;
pub use crate::flow::templates::Template;

/// Returns all templates.
pub fn list(change: &Change<'_>) -> Result<Vec<Template>, AppError> {
    change.flows(|flows, _| flows.templates())
}

/// Returns the template of this name.
pub fn show(change: &Change<'_>, name: &str) -> Result<Template, AppError> {
    change.flows(|flows, _| flows.template(name))
}

/// Writes one of the repository's own templates.
pub fn set(change: &Change<'_>, name: &str, text: &str) -> Result<(), AppError> {
    change.flows(|flows, by| flows.set_template(name, text, by))
}

/// Removes one of the repository's own templates.
pub fn remove(change: &Change<'_>, name: &str) -> Result<(), AppError> {
    change.flows(|flows, by| flows.remove_template(name, by))
}
