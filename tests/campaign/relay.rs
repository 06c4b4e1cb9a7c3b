//! A relay between `git push` and the remote's `receive-pack` that breaks the connection at one place.

use super::scene::World;
use std::path::PathBuf;

/// How a connection breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The remote hears only so many bytes.
    Up,
    /// We hear only so many bytes.
    Down,
    /// The same, and the remote moves only after we know that the connection is gone.
    Late,
    /// The remote hears only so many bytes, and nothing is closed.
    Hang,
}

pub struct Relay<'w> {
    world: &'w World,
    script: PathBuf,
    shared: PathBuf,
}

impl<'w> Relay<'w> {
    pub fn new(world: &'w World) -> Self {
        let shared = world.life().shared();
        let script = shared.join("relay");
        let quoted = format!("'{}'", script.display());
        let set = world.git_at(&world.git_dir(), &["config", "remote.origin.receivepack", &quoted]);
        assert!(set.status.success(), "{set:?}");
        Self { world, script, shared }
    }

    /// The connection is whole again.
    pub fn remove(&self) {
        self.world.git_at(&self.world.git_dir(), &["config", "--unset", "remote.origin.receivepack"]);
        let _ = std::fs::remove_file(self.world.branch_dir().join("hooks/pre-receive"));
    }

    fn write(&self, text: &str) {
        executable(&self.script, text);
    }

    /// How many bytes each direction of a push has.
    pub fn lengths(&self, push: impl FnOnce()) -> [usize; 2] {
        let t = self.shared.display();
        self.write(&format!("tee '{t}/up' | git-receive-pack \"$@\" | tee '{t}/down'\n"));
        push();
        ["up", "down"].map(|name| std::fs::metadata(self.shared.join(name)).map_or(0, |m| m.len() as usize))
    }

    /// From now on the `nth` push breaks, and no other.
    pub fn cut(&self, way: Way, at: usize, nth: usize) {
        let t = self.shared.display();
        let _ = std::fs::remove_file(self.shared.join("pushes"));
        let some = format!("dd bs=1 count={at} 2>/dev/null");
        let breaks = match way {
            Way::Up => format!("{some} | git-receive-pack \"$@\""),
            Way::Hang => format!("{{ {some}; exec sleep 100; }} | git-receive-pack \"$@\""),
            Way::Down | Way::Late => {
                // The remote's end: a moment later, if it has not come by then, or at once.
                let then =
                    if way == Way::Down { "; exec timeout 0.25 cat >/dev/null" } else { "; exec true" };
                format!(
                    "rm -f '{t}/fifo'; mkfifo '{t}/fifo'; exec 3<&0\n\
                     git-receive-pack \"$@\" <&3 3<&- >'{t}/fifo' 2>/dev/null &\n\
                     exec 3<&- <'{t}/fifo'; {some}{then}"
                )
            }
        };
        if way == Way::Late {
            executable(&self.world.branch_dir().join("hooks/pre-receive"), "sleep 0.3\n");
        }
        self.write(&format!(
            "n=$(($(cat '{t}/pushes' 2>/dev/null || echo 0) + 1)); echo $n >'{t}/pushes'\n\
             [ $n = {nth} ] || exec git-receive-pack \"$@\"\n{breaks}\n"
        ));
    }
}

fn executable(path: &std::path::Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    crate::support::write_program(path, &format!("#!/bin/sh\n{text}"));
}
