//! How a command behind `aynig.exec` learns of its commit, while the program in front of it does not.
//!
//! The prefix program runs outside of whatever it sets up, so nothing that a pusher wrote may be in its
//! environment or among its arguments: some programs hand those to a shell (`ssh`, `sh -c "$*"`), and others
//! keep them in a journal. The prefix program starts [`argv`]: a shell whose text is fixed, which reads the
//! variables from its standard input, as [`script`] writes them, and becomes the command. Standard input is
//! what such programs pass on, whatever they hide of files, programs and variables. A shell that never sees
//! the end of the script starts nothing. Implements K15.

use std::collections::BTreeMap;

/// The message of the launcher if its script did not arrive; it then exits with 126.
const LOST: &str = "aynig: 'aynig.exec' did not hand on its standard input: command not started";

/// Returns the arguments that stand between the prefix program's own and the command.
pub fn argv() -> [String; 4] {
    let text = format!(r#"AYNIG_LAUNCH=$(cat) && eval "$AYNIG_LAUNCH"; echo "{LOST}" >&2; exit 126"#);
    ["/bin/sh".into(), "-c".into(), text, "aynig".into()]
}

/// Returns the script that sets these variables and becomes the command. A name that is none to a shell is
/// left out. Variables for which `ours` is true are always set; any other one is not set where it already
/// exists in the command's environment, or where the shell keeps it for itself.
pub fn script(variables: &BTreeMap<String, Vec<u8>>, ours: &dyn Fn(&str) -> bool) -> Vec<u8> {
    let mut script = b"unset AYNIG_LAUNCH\n".to_vec();
    let is_name = |name: &str| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    for (name, value) in variables.iter().filter(|(name, _)| is_name(name)) {
        if !ours(name) {
            script.extend(format!("[ -n \"${{{name}+x}}\" ] || ").bytes());
        }
        script.extend(format!("export {name}=").bytes());
        quote(value, &mut script);
        script.push(b'\n');
    }
    script.extend(b"if [ -e /dev/null ]; then exec \"$@\" </dev/null; else exec \"$@\"; fi\n");
    script
}

fn quote(value: &[u8], script: &mut Vec<u8>) {
    script.push(b'\'');
    for byte in value {
        match byte {
            b'\'' => script.extend(br"'\''"),
            other => script.push(*other),
        }
    }
    script.push(b'\'');
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K15
    #[test]
    fn values_are_one_word_to_a_shell_and_existing_variables_stay() {
        let variables = [("AYNIG_BODY", &b"it's $(x)\n"[..]), ("TICKET", b"7"), ("X}$(x)", b"8")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_vec())).into();
        let script = String::from_utf8(script(&variables, &|name| name.starts_with("AYNIG_"))).unwrap();
        let (first, rest) = script.split_once("export AYNIG_BODY='it'\\''s $(x)\n'\n").unwrap();
        assert_eq!(first, "unset AYNIG_LAUNCH\n");
        let rest = rest.strip_prefix("[ -n \"${TICKET+x}\" ] || export TICKET='7'\n").unwrap();
        assert!(rest.starts_with("if [ -e /dev/null ]"), "{rest}");
    }
}
