//! libfaketime, which gives a process another time.

use std::path::Path;

/// Where Debian has it, and where others do.
const PLACES: [&str; 2] =
    ["/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1", "/usr/lib/faketime/libfaketime.so.1"];
/// How it names what a process shares with its children, each before the process's id.
const SHARED: [&str; 2] = ["faketime_shm_", "sem.faketime_sem_"];

/// The library, where it is installed. A process that was killed leaves its shared memory, and the next one that is given its
/// id would not start; so what is no living process's is taken away first.
pub fn faketime() -> Option<&'static str> {
    let library = PLACES.into_iter().find(|path| Path::new(path).exists())?;
    for entry in std::fs::read_dir("/dev/shm").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let id = name.to_str().and_then(|name| SHARED.iter().find_map(|shared| name.strip_prefix(shared)));
        if id.is_some_and(|id| !Path::new("/proc").join(id).exists()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
    Some(library)
}
