//! Values in JSON as users are shown them.

use crate::store::RefName;
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::fmt::Display;
use std::path::Path;

/// A value by its `Display`.
pub(super) struct Shown<T>(pub T);

impl<T: Display> Serialize for Shown<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// A branch without `refs/heads/`.
pub(super) fn short(branch: &RefName) -> Cow<'_, str> {
    String::from_utf8_lossy(branch.short())
}

/// A ref with its whole name.
pub(super) fn full(name: &RefName) -> Cow<'_, str> {
    String::from_utf8_lossy(name.as_bytes())
}

pub(super) fn path(path: &Path) -> Cow<'_, str> {
    path.to_string_lossy()
}
