//! Values in JSON, in the form that users are shown.

use crate::protocol::message::Trailer;
use crate::store::RefName;
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::fmt::Display;
use std::path::Path;

/// Serializes a value by its `Display`.
pub(super) struct Shown<T>(pub T);

impl<T: Display> Serialize for Shown<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// Serializes trailers in their order, each with its key and value.
pub(super) fn each_trailer<S: Serializer>(trailers: &&[Trailer], serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Pair<'a> {
        key: &'a str,
        value: Cow<'a, str>,
    }
    fn pair(trailer: &Trailer) -> Pair<'_> {
        Pair { key: &trailer.key, value: String::from_utf8_lossy(&trailer.value) }
    }
    serializer.collect_seq(trailers.iter().map(pair))
}

/// Returns a branch's name without `refs/heads/`.
pub(super) fn short(branch: &RefName) -> Cow<'_, str> {
    String::from_utf8_lossy(branch.short())
}

/// Returns a ref's whole name.
pub(super) fn full(name: &RefName) -> Cow<'_, str> {
    String::from_utf8_lossy(name.as_bytes())
}

pub(super) fn path(path: &Path) -> Cow<'_, str> {
    path.to_string_lossy()
}
