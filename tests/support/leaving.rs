//! Ways in which what a command starts leaves its process group, and the script of such a command.

/// Name, how it starts its processes, how many say that they are up.
pub type Way = (&'static str, &'static str, usize);

/// What everyone tries who looks for survivors.
pub const WAYS: [Way; 4] = [
    ("plain child", "sh -c \"$LEAF; :\" &", 1),
    ("setsid", "setsid sh -c \"$LEAF\" &", 1),
    ("double fork", "(sh -c \"$LEAF\" & exit 0) &", 1),
    ("nohup", "nohup sh -c \"$LEAF\" >/dev/null 2>&1 &", 1),
];

/// Starts its processes so, each of which sleeps once it has said in the file `$U` that it is up, and goes on once all are.
pub fn script(file: &str, start: &str, up: usize, then: &str) -> String {
    format!(
        "export U=\"{file}\"; export LEAF='echo up >>\"$U\"; exec sleep 300'\n{start}\n\
         until [ -e \"$U\" ] && [ $(wc -l <\"$U\") -ge {up} ]; do sleep 0.01; done\n{then}"
    )
}
