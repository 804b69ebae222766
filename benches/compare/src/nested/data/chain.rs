//! Generates paragraphs with a Markov chain of order 2 over the words of this documentation.
//!
//! The chain learns from all paragraphs that are prose: tables, headings and code are skipped. Each
//! paragraph is a sequence of words between two edges, and so is a generated one. Generated texts
//! repeat phrases of the documentation, so they compress better than texts that people write.

use super::texts;
use crate::measure::Random;
use anyhow::{Context, Result};
use std::collections::HashMap;
use std::fs;
use std::path::Path;

const FILES: [&str; 8] = [
    "README.md",
    "RELIABILITY.md",
    "format-spec/RATIONALE.md",
    "format-spec/SPEC.md",
    "docs/src/converting.md",
    "docs/src/damage.md",
    "docs/src/reading.md",
    "docs/src/start.md",
];
/// The maximum number of words in a paragraph.
const MAX_WORDS: usize = 400;
/// The number of the word before and after every paragraph.
const EDGE: u32 = 0;

pub struct Chain {
    words: Vec<String>,
    /// The words that follow each pair of words, as often as they do.
    next: HashMap<[u32; 2], Vec<u32>>,
    random: Random,
}

impl Chain {
    pub fn new(seed: u64) -> Result<Self> {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut chain = Self { words: vec![String::new()], next: HashMap::new(), random: Random::new(seed) };
        let mut numbers = HashMap::new();
        for file in FILES {
            let text = fs::read_to_string(repository.join(file)).with_context(|| file.to_owned())?;
            for paragraph in prose(&text) {
                chain.learn(&paragraph, &mut numbers);
            }
        }
        Ok(chain)
    }

    fn learn(&mut self, paragraph: &str, numbers: &mut HashMap<String, u32>) {
        let mut before = [EDGE; 2];
        for word in paragraph.split_whitespace() {
            let number = *numbers.entry(word.to_owned()).or_insert_with(|| {
                self.words.push(word.to_owned());
                self.words.len() as u32 - 1 // the documentation has far fewer words than 2^32
            });
            self.next.entry(before).or_default().push(number);
            before = [before[1], number];
        }
        self.next.entry(before).or_default().push(EDGE);
    }

    pub fn paragraph(&mut self) -> String {
        let mut out = String::new();
        let mut before = [EDGE; 2];
        for _ in 0..MAX_WORDS {
            // learning added a successor to every pair
            let choices = &self.next[&before];
            let number = choices[self.random.below(choices.len())];
            if number == EDGE {
                break;
            }
            if !out.is_empty() {
                out.push(' ');
            }
            out.push_str(&self.words[number as usize]);
            before = [before[1], number];
        }
        out
    }
}

/// Returns the paragraphs of a Markdown file that are prose.
fn prose(text: &str) -> Vec<String> {
    let mut is_code = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
            lines.push("");
        } else if !is_code && !line.starts_with(['|', '#', '<', '!']) {
            lines.push(line);
        }
    }
    texts::paragraphs(&lines.join("\n"))
}
