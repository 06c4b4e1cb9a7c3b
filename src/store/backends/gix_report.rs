//! Turns what gix reports into errors for people, in the system's words where the system was the reason.

use crate::store::{StoreError, disk, io_error};
use std::error::Error;
use std::path::Path;

/// Wraps gix's report in one line.
pub(crate) fn gix_error(what: &'static str) -> impl FnOnce(gix::Error) -> StoreError {
    move |error| StoreError::Gix { what, message: words(&error) }
}

/// Wraps gix's report of a failed write at or below `place`. The error names that place where the system
/// failed, and a full disk is an error of its own.
pub(crate) fn gix_write_error(what: &'static str, place: &Path) -> impl FnOnce(gix::Error) -> StoreError {
    move |error| {
        if let Some(code) = error.iter_errors().find_map(errno) {
            return io_error(what, place)(std::io::Error::from_raw_os_error(code));
        }
        let message = words(&error);
        disk::full(what, place, &message)
            .unwrap_or_else(|| StoreError::Gix { what, message: format!("'{}': {message}", place.display()) })
    }
}

/// Returns the report and its causes in one line, outermost first, without wrappers that only repeat a text.
fn words(error: &gix::Error) -> String {
    let mut words: Vec<String> = Vec::new();
    for cause in error.iter_errors() {
        let code = errno(cause).map(|code| std::io::Error::from_raw_os_error(code).to_string());
        let said = code.unwrap_or_else(|| cause.to_string());
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        if !words.contains(&said) {
            words.push(said);
        }
    }
    words.join(": ")
}

/// Returns the number of the system error that one of gix's errors is about, if any. The tempfile library
/// does not expose the system error that it wraps, so that the number is then taken from the `Debug` text.
fn errno(error: &(dyn Error + 'static)) -> Option<i32> {
    let mut cause = Some(error);
    while let Some(this) = cause {
        if let Some(code) = this.downcast_ref::<std::io::Error>().and_then(std::io::Error::raw_os_error) {
            return Some(code);
        }
        cause = this.source();
    }
    format!("{error:?}").split_once("Os { code: ")?.1.split(',').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    fn nested() -> io::Error {
        let folder = tempfile::tempdir().unwrap();
        // tempfile puts its path between the system's error and ours.
        tempfile::NamedTempFile::new_in(folder.path().join("gone")).unwrap_err()
    }

    #[test]
    fn the_systems_number_is_found_below_what_wraps_it() {
        assert_eq!(errno(&io::Error::from_raw_os_error(5)), Some(5));
        assert_eq!(errno(&nested()), Some(2));
        assert_eq!(errno(&io::Error::other("a word")), None);
    }

    #[test]
    fn a_failed_write_names_its_place_and_a_full_disk_is_one() {
        let failed = |code| -> StoreError {
            let source = io::Error::from_raw_os_error(code);
            gix_write_error("write to", Path::new("/place"))(gix::Error::from_error(source))
        };
        assert_eq!(failed(5).to_string(), "cannot write to '/place'");
        let StoreError::Io { source, .. } = failed(28) else { panic!() };
        assert_eq!(source.kind(), io::ErrorKind::StorageFull);
    }
}
