//! Secrets in what a command printed, taken out before it becomes part of a commit.
//!
//! Some are the values of environment variables whose names say so, as they are, in base64, in hex and
//! percent-encoded; others are known by their shape: tokens with the prefix of a well-known service, private
//! keys, the password in a URL. Masking lowers the odds, and is no promise: a secret that a program split,
//! shortened or encoded otherwise stays. Pure. Implements K23.

/// What stands in a secret's place.
const MASK: &[u8] = b"[masked]";
/// Shortest value that counts as a secret, in bytes: shorter ones are words that any text may hold.
const VALUE_MIN: usize = 6;
/// Parts of the names of variables that keep a secret.
const NAMES: [&str; 7] = ["TOKEN", "SECRET", "KEY", "PASS", "AUTH", "CRED", "PRIVATE"];
/// How tokens of well-known services begin, and how many characters follow at least.
const PREFIXES: [(&[u8], usize); 16] = [
    (b"ghp_", 20),
    (b"gho_", 20),
    (b"ghu_", 20),
    (b"ghs_", 20),
    (b"ghr_", 20),
    (b"github_pat_", 20),
    (b"glpat-", 16),
    (b"AKIA", 16),
    (b"ASIA", 16),
    (b"xoxb-", 10),
    (b"xoxp-", 10),
    (b"xoxa-", 10),
    (b"sk_live_", 10),
    (b"rk_live_", 10),
    (b"npm_", 30),
    (b"AIza", 30),
];
const KEY_BEGINS: &[u8] = b"-----BEGIN ";
const KEY_NAMES: &[u8] = b"PRIVATE KEY-----";
const KEY_ENDS: &[u8] = b"-----END ";

/// The secrets that must not get into a commit.
#[derive(Debug, Clone, Default)]
pub struct Secrets {
    /// The values of variables, longest first, so that no part of a secret stays that contains another one.
    known: Vec<Vec<u8>>,
}

impl Secrets {
    /// Collects the secrets of an environment, given as names and values.
    pub fn of(environment: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        let mut known: Vec<Vec<u8>> = Vec::new();
        for (name, value) in environment {
            let name = name.to_ascii_uppercase();
            // A path is where a secret is, not what it is.
            let path = name.ends_with("_FILE") || name.ends_with("_PATH") || name.ends_with("_SOCK");
            // `AUTHOR` is no secret, `AUTHORIZATION` is one.
            let says = name.replace("AUTHORIZ", "AUTH").replace("AUTHOR", "");
            let says_so = NAMES.iter().any(|n| says.contains(n));
            if value.len() >= VALUE_MIN && !path && says_so {
                known.extend(forms(&value));
            }
        }
        known.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        known.dedup();
        Self { known }
    }

    /// Returns the text with every secret masked.
    pub fn mask(&self, text: &[u8]) -> Vec<u8> {
        let mut masked = Vec::with_capacity(text.len());
        let mut rest = text;
        while !rest.is_empty() {
            match self.secret_at(rest, &masked) {
                0 => {
                    masked.push(rest[0]);
                    rest = &rest[1..];
                }
                length => {
                    masked.extend_from_slice(MASK);
                    rest = &rest[length..];
                }
            }
        }
        masked
    }

    /// Returns how many bytes long the secret is that `text` begins with, 0 for none; `behind` is what stands
    /// before it.
    fn secret_at(&self, text: &[u8], behind: &[u8]) -> usize {
        if let Some(known) = self.known.iter().find(|known| text.starts_with(known)) {
            return known.len();
        }
        if !behind.last().is_some_and(|b| is_word(*b))
            && let Some((prefix, least)) = PREFIXES.iter().find(|(prefix, _)| text.starts_with(prefix))
        {
            let more = text[prefix.len()..].iter().take_while(|b| is_word(**b) || **b == b'-').count();
            if more >= *least {
                return prefix.len() + more;
            }
        }
        if behind.ends_with(b"://") {
            return password(text);
        }
        private_key(text)
    }
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}

/// Returns the length of user and password before the `@` of a URL; 0 where there is no password. `://` went
/// before.
fn password(text: &[u8]) -> usize {
    let end = text.iter().position(|b| b"/?# \t\r\n\"'<>".contains(b)).unwrap_or(text.len());
    let Some(at) = text[..end].iter().rposition(|b| *b == b'@') else { return 0 };
    if text[..at].contains(&b':') { at } else { 0 }
}

/// Returns the length of a private key with its lines, to its end or to the end of the text; 0 where there is
/// none.
fn private_key(text: &[u8]) -> usize {
    let Some(rest) = text.strip_prefix(KEY_BEGINS) else { return 0 };
    let line = rest.split(|b| *b == b'\n').next().unwrap_or_default();
    if find(line, KEY_NAMES).is_none() {
        return 0;
    }
    match find(text, KEY_ENDS) {
        Some(at) => at + text[at..].iter().position(|b| *b == b'\n').unwrap_or(text.len() - at),
        None => text.len(),
    }
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|w| w == what)
}

/// Returns a value as it is, and in the encodings in which programs print it.
fn forms(value: &[u8]) -> Vec<Vec<u8>> {
    let hex = |digits: &[u8; 16]| -> Vec<u8> {
        value.iter().flat_map(|b| [digits[usize::from(b >> 4)], digits[usize::from(b & 15)]]).collect()
    };
    let percent = |digits: &[u8; 16]| -> Vec<u8> {
        let encode = |b: &u8| match b {
            b if is_word(*b) || b"-.~".contains(b) => vec![*b],
            b => vec![b'%', digits[usize::from(b >> 4)], digits[usize::from(b & 15)]],
        };
        value.iter().flat_map(encode).collect()
    };
    let (lower, upper) = (b"0123456789abcdef", b"0123456789ABCDEF");
    let mut all = vec![value.to_vec(), hex(lower), hex(upper), percent(lower), percent(upper)];
    // A secret may stand anywhere in what was encoded: for each of the three offsets, the characters of the
    // encoding that depend on the secret alone.
    for offset in 0..3 {
        for url in [false, true] {
            let core = base64(&[&vec![0; offset][..], value].concat(), url);
            let from = [0, 2, 3][offset];
            let to = core.len() - [0, 3, 2][(offset + value.len()) % 3];
            all.extend(core.get(from..to).filter(|c| c.len() >= VALUE_MIN).map(<[u8]>::to_vec));
        }
    }
    all
}

/// Encodes as base64, padded with `=`.
fn base64(bytes: &[u8], url: bool) -> Vec<u8> {
    let digit = |n: u32| match n & 63 {
        n @ 0..=25 => b'A' + n as u8,
        n @ 26..=51 => b'a' + (n - 26) as u8,
        n @ 52..=61 => b'0' + (n - 52) as u8,
        62 if url => b'-',
        62 => b'+',
        _ if url => b'_',
        _ => b'/',
    };
    let mut text = Vec::new();
    for chunk in bytes.chunks(3) {
        let n = chunk.iter().chain(&[0; 2]).take(3).fold(0, |n, b| n << 8 | u32::from(*b));
        let four = [digit(n >> 18), digit(n >> 12), digit(n >> 6), digit(n)];
        text.extend_from_slice(&four[..=chunk.len()]);
        text.extend(std::iter::repeat_n(b'=', 3 - chunk.len()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(text: &str) -> String {
        let secrets = Secrets::of([
            ("API_TOKEN".into(), b"s3cr3t/va+lue".to_vec()),
            ("PASSWORD".into(), b"short".to_vec()),
            ("SSH_AUTH_SOCK".into(), b"/run/agent".to_vec()),
            ("COLOR".into(), b"turquoise".to_vec()),
        ]);
        String::from_utf8(secrets.mask(text.as_bytes())).unwrap()
    }

    /// K23
    #[test]
    fn values_of_variables_are_masked_in_every_form() {
        for form in forms(b"s3cr3t/va+lue") {
            let text = format!("a {} b", String::from_utf8(form).unwrap());
            assert_eq!(masked(&text), "a [masked] b", "{text}");
        }
        assert_eq!(masked("short /run/agent turquoise"), "short /run/agent turquoise");
    }

    #[test]
    fn base64_is_base64() {
        for (raw, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(raw.as_bytes(), false), text.as_bytes());
        }
        assert_eq!(base64(&[0xfb, 0xff], true), b"-_8=");
    }

    #[test]
    fn shapes_are_known_and_prose_is_left_alone() {
        assert_eq!(masked("x=ghp_0123456789abcdefghijABCD."), "x=[masked].");
        assert_eq!(masked("https://ada:pw@example.com/x"), "https://[masked]@example.com/x");
        assert_eq!(
            masked("git@example.com:a/b http://x@y a/b:c@d"),
            "git@example.com:a/b http://x@y a/b:c@d"
        );
        let key = "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nrest";
        assert_eq!(masked(key), "[masked]\nrest");
        let plain = "a AKIA b ghp_short -----BEGIN CERTIFICATE-----\nabc https://example.com/a:b";
        assert_eq!(masked(plain), plain);
    }

    fn masked_of(name: &str, value: &str, text: &str) -> String {
        let secrets = Secrets::of([(name.to_owned(), value.into())]);
        String::from_utf8(secrets.mask(text.as_bytes())).unwrap()
    }

    /// K23: a secret as other programs encode it, not these functions.
    #[test]
    fn a_secret_is_known_in_hex_percent_encoded_and_anywhere_in_base64() {
        let (plain, odd) = ("s3cr3t/va+lue", "a-b.c~d_e/f\u{f6}");
        for (secret, text, left) in [
            (plain, "s3cr3t/va+lue", "[masked]"),
            (plain, "7333637233742f76612b6c7565", "[masked]"),
            (plain, "7333637233742F76612B6C7565", "[masked]"),
            (plain, "https://h/?q=s3cr3t%2Fva%2Blue&r", "https://h/?q=[masked]&r"),
            (plain, "s3cr3t%2fva%2blue", "[masked]"),
            (odd, "a-b.c~d_e%2Ff%C3%B6", "[masked]"),
            // The secret stands after nothing, `a` and `ab`, and before `!`.
            (plain, "czNjcjN0L3ZhK2x1ZSE=", "[masked]SE="),
            (plain, "YXMzY3IzdC92YStsdWUh", "YX[masked]Uh"),
            (plain, "YWJzM2NyM3QvdmErbHVlIQ==", "YWJ[masked]IQ=="),
            ("???>>>abc", "Pz8/Pj4+YWJj", "[masked]"),
            ("???>>>abc", "Pz8_Pj4-YWJj", "[masked]"),
        ] {
            assert_eq!(masked_of("API_TOKEN", secret, text), left, "{text}");
        }
    }

    /// K23: the name says what is a secret; a path only says where one is, and an author is no password.
    #[test]
    fn a_variables_name_says_whether_its_value_is_a_secret() {
        for name in [
            "API_TOKEN",
            "client_secret",
            "DEPLOY_KEY",
            "PGPASSWORD",
            "BASIC_AUTH",
            "HTTP_AUTHORIZATION",
            "MY_CREDENTIALS",
            "PRIVATE",
        ] {
            assert_eq!(masked_of(name, "value1", "a value1 b"), "a [masked] b", "{name}");
            assert_eq!(masked_of(name, "value", "a value b"), "a value b", "{name}: a word");
        }
        for name in ["KEY_FILE", "PRIVATE_KEY_PATH", "SSH_AUTH_SOCK", "GIT_AUTHOR_NAME", "COLOR"] {
            assert_eq!(masked_of(name, "value1", "a value1 b"), "a value1 b", "{name}");
        }
    }

    /// K23.
    #[test]
    fn a_secret_within_a_secret_hides_nothing_of_the_longer_one() {
        let of = |name: &str, value: &str| (name.to_owned(), value.as_bytes().to_vec());
        let secrets =
            Secrets::of([of("A_KEY", "secret"), of("B_KEY", "secret and more"), of("C_KEY", "secret")]);
        assert_eq!(secrets.mask(b"secret and more, secret"), b"[masked], [masked]");
    }

    /// K23: a token is known from as many characters on as the service gives its tokens, and never within a
    /// word.
    #[test]
    fn a_token_is_known_by_its_beginning_and_its_length() {
        let (short, whole) = (format!("ghp_{}", "a".repeat(19)), format!("ghp_{}", "a".repeat(20)));
        assert_eq!(masked(&short), short);
        assert_eq!(masked(&whole), "[masked]");
        assert_eq!(masked(&format!("({whole}-1, x{whole})")), format!("([masked], x{whole})"));
    }

    /// K23.
    #[test]
    fn a_private_key_is_masked_to_its_last_line_or_to_the_end() {
        let (begin, end) = ("-----BEGIN PRIVATE KEY-----\nabc\n", "-----END PRIVATE KEY-----");
        for (text, left) in [
            (format!("a\n{begin}{end}\nb"), "a\n[masked]\nb"),
            (format!("a\n{begin}{end}"), "a\n[masked]"),
            (format!("a\n{begin}"), "a\n[masked]"),
            (format!("a\n{end}\nb"), "a\n-----END PRIVATE KEY-----\nb"),
        ] {
            assert_eq!(masked(&text), left);
        }
    }
}
