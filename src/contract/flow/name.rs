//! Names of flows' branches.

use crate::contract::id::NodeId;

/// Most characters of a slug.
const SLUG_MAX: usize = 40;

/// A text as part of a branch's name: lower-case letters, digits and single hyphens. Never empty, and nothing that Git
/// refuses: no dot, no `@{`, no `.lock`.
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

/// The branch of a node: `flow/<slug of the flow>/<slug of its alias or label>`, with eight digits of its id where that is
/// taken, in any case: a file system may not know upper case from lower.
pub fn branch_of(flow: &str, name: &str, id: NodeId, taken: impl Fn(&str) -> bool) -> String {
    let plain = format!("flow/{flow}/{}", slug(name, "node"));
    if taken(&plain) { format!("{plain}-{}", id.short()) } else { plain }
}
