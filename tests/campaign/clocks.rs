//! Clocks.
use std::path::Path;

/// The library that gives a process another time, where it is installed.
pub fn faketime() -> Option<&'static str> {
    let places =
        ["/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1", "/usr/lib/faketime/libfaketime.so.1"];
    places.into_iter().find(|path| Path::new(path).exists())
}
