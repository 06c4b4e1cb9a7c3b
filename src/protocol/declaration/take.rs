//! What an outcome takes from a slot, where the command says so: paths that are taken even if they are
//! ignored, and whether the rest is taken too. Implements K19, K25.

use super::Invalid;
use serde_json::{Map, Value};

/// What becomes of everything else in the slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rest {
    /// The setting `aynig.stage` decides.
    #[default]
    AsConfigured,
    /// Everything that is not ignored is taken.
    All,
    /// Nothing of it comes onto the branch, commits included: it is kept as an attempt.
    Kept,
}

/// What an outcome takes from its slot.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Take {
    /// Files and folders, relative to the slot, that are taken as they are, ignored or not.
    pub paths: Vec<String>,
    /// What becomes of everything else.
    pub rest: Rest,
}

const WANT: &str = "an object of 'paths', a list of paths in the worktree, and 'rest', 'all' or 'kept'";
/// Most paths that a declaration may name.
const PATHS_MAX: usize = 1000;

impl Take {
    pub(super) fn of(value: Option<&Value>) -> Result<Self, Invalid> {
        let wrong = || Invalid::Type { field: "take", want: WANT };
        let fields = match value {
            None | Some(Value::Null) => return Ok(Self::default()),
            Some(Value::Object(fields)) => fields,
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
                return Err(wrong());
            }
        };
        let rest = match fields.get("rest") {
            None | Some(Value::Null) => Rest::AsConfigured,
            Some(rest) if rest == "all" => Rest::All,
            Some(rest) if rest == "kept" => Rest::Kept,
            Some(_) => return Err(wrong()),
        };
        let paths = match fields.get("paths") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(paths)) if paths.len() <= PATHS_MAX => {
                let paths =
                    paths.iter().map(|path| path.as_str().filter(|p| is_inside(p)).map(str::to_owned));
                paths.collect::<Option<_>>().ok_or_else(wrong)?
            }
            Some(_) => return Err(wrong()),
        };
        Ok(Self { paths, rest })
    }

    pub(super) fn put(&self, fields: &mut Map<String, Value>) {
        if *self == Self::default() {
            return;
        }
        let mut take = Map::new();
        take.insert("paths".into(), self.paths.clone().into());
        match self.rest {
            Rest::AsConfigured => {}
            Rest::All => drop(take.insert("rest".into(), "all".into())),
            Rest::Kept => drop(take.insert("rest".into(), "kept".into())),
        }
        fields.insert("take".into(), take.into());
    }
}

/// True for a path that names something in the slot that Git could have in a tree, and nothing of Git's own.
pub(crate) fn is_inside(path: &str) -> bool {
    let is_name = |part: &str| !matches!(part, "" | "." | "..") && !part.eq_ignore_ascii_case(".git");
    !path.contains('\0') && path.split('/').all(is_name)
}
