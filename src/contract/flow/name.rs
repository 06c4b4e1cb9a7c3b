//! Names of flows' branches.

use crate::contract::id::NodeId;

/// Most characters of a slug.
const SLUG_MAX: usize = 40;

/// Turns a text into part of a branch's name: lower-case letters, digits and single hyphens. The result is
/// never empty, as `otherwise` stands in, and has nothing that Git refuses: no dot, no `@{`, no `.lock`.
pub fn slug(text: &str, otherwise: &str) -> String {
    let mut slug = String::new();
    for c in text.chars().flat_map(char::to_lowercase) {
        if slug.len() == SLUG_MAX {
            break;
        }
        if c.is_ascii_alphanumeric() {
            slug.push(c);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { otherwise.to_owned() } else { slug.to_owned() }
}

/// Returns the branch of a node: `flow/<slug of the flow>/<slug of its alias or label>`, followed by the
/// first eight digits of its id if that name is taken. Names that differ only in case count as one (`taken`
/// sees to that), as some file systems do not tell upper case from lower.
pub fn branch_of(flow: &str, name: &str, id: NodeId, taken: impl Fn(&str) -> bool) -> String {
    let plain = format!("flow/{flow}/{}", slug(name, "node"));
    if taken(&plain) { format!("{plain}-{}", id.short()) } else { plain }
}
