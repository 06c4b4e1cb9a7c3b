//! Hard messages from a seed: the same seed gives the same messages on every machine.

use aynig::protocol::message::{Message, Trailer};

use super::words::*;

/// A splitmix64 generator of messages.
pub struct Generator(u64);

impl Generator {
    /// The generator of one seed; each test has its own stream.
    pub fn new(seed: u64, test: &str) -> Self {
        let stream = test.bytes().fold(0u64, |sum, b| sum.wrapping_mul(31).wrapping_add(u64::from(b)));
        Self(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ stream)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<'a>(&mut self, from: &[&'a [u8]]) -> &'a [u8] {
        from[self.below(from.len())]
    }

    /// A raw message, of a shape that is hard to read.
    pub fn message(&mut self) -> Vec<u8> {
        let mut lines = Lines::default();
        match self.below(20) {
            0 => self.soup(&mut lines),
            1 => self.paragraph(&mut lines),
            2 => self.quarter(&mut lines),
            3 => self.conflicts_first(&mut lines),
            _ => {
                self.title(&mut lines);
                self.blank(&mut lines);
                for _ in 0..self.below(4) {
                    self.paragraph(&mut lines);
                    self.blank(&mut lines);
                }
                match self.below(4) {
                    0 => self.quarter(&mut lines),
                    1 | 2 => self.block(&mut lines),
                    _ => self.paragraph(&mut lines),
                }
                self.tail(&mut lines);
            }
        }
        self.join(lines)
    }

    fn title(&mut self, lines: &mut Lines) {
        for _ in 0..if self.one_in(8) { self.below(3) } else { 0 } {
            lines.push(self.pick(BLANKS));
        }
        for _ in 0..if self.one_in(5) { 1 + self.below(3) } else { 1 } {
            let line = self.any(false);
            lines.push(line);
        }
    }

    fn blank(&mut self, lines: &mut Lines) {
        for _ in 0..match self.below(12) {
            0 => 0,
            1 | 2 => 2,
            3 => 3,
            _ => 1,
        } {
            lines.push(self.pick(BLANKS));
        }
    }

    /// A message that starts with what Git ignores at its end.
    fn conflicts_first(&mut self, lines: &mut Lines) {
        lines.push(if self.one_in(3) { self.pick(COMMENTS) } else { self.pick(CONFLICTS) });
        if self.one_in(2) {
            lines.push(self.any(true));
        }
        for _ in 0..1 + self.below(3) {
            lines.push(if self.one_in(2) { b" " } else { b"" });
            self.block(lines);
        }
        self.blank(lines);
        lines.push(if self.one_in(2) { b"\tpath" } else { self.any(true) });
    }

    /// Lines of every kind, blank ones too.
    fn soup(&mut self, lines: &mut Lines) {
        for _ in 0..self.below(12) {
            let line = if self.one_in(3) { self.pick(BLANKS) } else { self.any(true) };
            lines.push(line);
        }
    }

    fn paragraph(&mut self, lines: &mut Lines) {
        for _ in 0..1 + self.below(5) {
            let line = self.any(true);
            lines.push(line);
        }
    }

    /// Mostly trailers, continued and commented.
    fn block(&mut self, lines: &mut Lines) {
        for _ in 0..1 + self.below(5) {
            let line = match self.below(24) {
                0..12 => self.pick(TRAILERS),
                12..17 => self.pick(INDENTED),
                17..20 => self.pick(COMMENTS),
                20 | 21 => self.pick(GENERATED),
                22 => self.pick(NEARLY),
                _ => self.any(true),
            };
            lines.push(line);
        }
        if self.one_in(200) {
            let long = vec![b'x'; 1 + self.below(70_000)];
            lines.push(&[b"long: ", &long[..]].concat());
        }
    }

    /// Trailers and prose near one to three, with or without a line of Git's.
    fn quarter(&mut self, lines: &mut Lines) {
        let trailers = 1 + self.below(4);
        let prose = (trailers * 3 + 2).saturating_sub(self.below(5));
        let mut block: Vec<&[u8]> = (0..trailers).map(|_| self.pick(TRAILERS)).collect();
        if !self.one_in(4) {
            block[0] = self.pick(GENERATED);
        }
        for _ in 0..prose {
            let line = if self.one_in(5) { self.pick(INDENTED) } else { self.pick(PROSE) };
            block.push(line);
        }
        for at in (1..block.len()).rev() {
            block.swap(at, self.below(at + 1));
        }
        for line in block {
            lines.push(line);
            if self.one_in(12) {
                lines.push(self.pick(COMMENTS));
            }
        }
    }

    /// What may follow the block: comments, conflicts, a scissors line, blanks.
    fn tail(&mut self, lines: &mut Lines) {
        while self.one_in(2) {
            match self.below(6) {
                0 => lines.push(self.pick(COMMENTS)),
                1 => {
                    lines.push(self.pick(CONFLICTS));
                    for _ in 0..self.below(3) {
                        lines.push(self.pick(INDENTED));
                    }
                }
                2 => {
                    lines.push(SCISSORS);
                    self.soup(lines);
                }
                3 => self.soup(lines),
                _ => lines.push(self.pick(BLANKS)),
            }
        }
    }

    fn any(&mut self, scissors: bool) -> &'static [u8] {
        match self.below(40) {
            0..8 => self.pick(TRAILERS),
            8..12 => self.pick(GENERATED),
            12..16 => self.pick(NEARLY),
            16..27 => self.pick(PROSE),
            27..32 => self.pick(INDENTED),
            32..36 => self.pick(COMMENTS),
            36..38 => self.pick(CONFLICTS),
            38 if scissors || self.one_in(4) => SCISSORS,
            _ => b"subject",
        }
    }

    fn join(&mut self, lines: Lines) -> Vec<u8> {
        let crlf = self.one_in(8);
        let mut raw = Vec::new();
        for line in &lines.0 {
            raw.extend_from_slice(line);
            raw.extend_from_slice(if crlf && !self.one_in(10) { b"\r\n" } else { b"\n" });
        }
        if self.one_in(4) {
            raw.pop();
        }
        if self.one_in(20) && !raw.is_empty() {
            let (at, byte) =
                (self.below(raw.len()), self.pick(&[b"\n", b" ", b"#", b":", b"\t", b"\r", b"\0", b"\xff"]));
            raw[at] = byte[0];
        }
        raw
    }

    /// Parts to be written, some of which must be refused.
    pub fn parts(&mut self) -> Message {
        let subject = match self.below(16) {
            0 => self.any(true).to_vec(),
            1 => self.pick(TRAILERS).to_vec(),
            2 => self.pick(COMMENTS).to_vec(),
            _ => self.word(),
        };
        let mut body = Lines::default();
        for _ in 0..self.below(4) {
            match self.below(5) {
                0 => self.block(&mut body),
                1 => self.quarter(&mut body),
                2 => self.soup(&mut body),
                _ => body.push(b"Plain text."),
            }
            self.blank(&mut body);
        }
        let mut body = self.join(body);
        // The lists are full of bytes that are no UTF-8; mostly they are not the question here.
        if !self.one_in(20) {
            body = String::from_utf8_lossy(&body).replace('\0', "").into_bytes();
        }
        let trailers = (0..self.below(5)).map(|_| self.trailer()).collect();
        if self.one_in(30) {
            Message { subject, body, trailers }
        } else {
            Message::new(subject, body, trailers)
        }
    }

    fn trailer(&mut self) -> Trailer {
        let key = if self.one_in(100) { self.pick(BAD_KEYS) } else { self.pick(KEYS) };
        let value = match self.below(60) {
            0 => b"two\nlines".to_vec(),
            1 => self.any(true).to_vec(),
            2 => self.pick(TRAILERS).to_vec(),
            3..8 => String::from_utf8_lossy(self.any(true)).replace('\r', "").into_bytes(),
            8..12 => String::from_utf8_lossy(self.pick(COMMENTS)).replace('\r', "").into_bytes(),
            12..16 => vec![],
            16..20 => b"\xc2\xa0 \x0b x \x0c \xe3\x80\x80".to_vec(),
            _ => self.word(),
        };
        Trailer::new(String::from_utf8_lossy(key), value)
    }

    fn word(&mut self) -> Vec<u8> {
        self.pick(WORDS).to_vec()
    }

    /// What people and commands write: words, paragraphs of prose, at least one trailer.
    pub fn plain(&mut self) -> Message {
        let subject = self.word();
        let body: Vec<&[u8]> = (0..self.below(10)).map(|_| self.pick(PLAIN)).collect();
        let count = 1 + self.below(5);
        let trailers = (0..count).map(|i| Trailer::new(format!("dwp-k{i}"), self.word())).collect();
        Message::new(subject, body.join(&b'\n'), trailers)
    }
}

#[derive(Default)]
struct Lines(Vec<Vec<u8>>);

impl Lines {
    fn push(&mut self, line: &[u8]) {
        self.0.push(line.to_vec());
    }
}
