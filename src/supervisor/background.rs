//! How a process leaves whoever started it: no terminal, no signal meant for others, no descriptor of theirs.
//!
//! Git's hooks, make and terminals leave pipes open in their children, and somebody waits for the end of each.
//! [`leave_caller`] is called before this process opens anything of its own. Implements K18, K40.

/// Leaves the caller's session, and closes every descriptor but the three standard ones.
pub fn leave_caller() {
    // Fails only where this process leads a group already, and then that is its own anyway.
    let _ = nix::unistd::setsid();
    let Ok(entries) = std::fs::read_dir("/dev/fd") else { return };
    let numbers: Vec<i32> =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for fd in numbers.into_iter().filter(|fd| *fd > 2) {
        // The listing's own descriptor is among them, closed already.
        let _ = nix::unistd::close(fd);
    }
}
