//! The files that a script says it depends on: lines `# depends: <path> ..`.
//!
//! Paths are relative to the top of the working tree, several with blanks between; a path that leads
//! elsewhere is left out.
//! Implements K58.

/// Most paths that are read from one script.
const PATHS_MAX: usize = 256;

/// Returns the paths, in the order of their lines.
pub fn of(script: &[u8]) -> Vec<String> {
    let lines = script.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
    let named = lines.filter_map(|line| line.trim().strip_prefix('#')?.trim_start().strip_prefix("depends:"));
    let paths = named.flat_map(str::split_whitespace);
    let inside = |path: &&str| path.split('/').all(|name| !matches!(name, "" | "." | ".."));
    paths.filter(inside).take(PATHS_MAX).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K58
    #[test]
    fn paths_are_read_from_comments_and_none_leads_elsewhere() {
        let script = b"#!/bin/sh\n# depends: package-lock.json web/package-lock.json\n\xff\n  #depends: Cargo.lock\r\n\
            echo '# depends: x'\n# depends: /etc/passwd ../up a//b ./c\n# depends:\n# depend: y\n";
        assert_eq!(of(script), ["package-lock.json", "web/package-lock.json", "Cargo.lock"]);
        assert_eq!(of("# depends: x\n".repeat(1000).as_bytes()).len(), PATHS_MAX);
    }
}
