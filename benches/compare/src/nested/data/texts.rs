//! Cuts texts, from files or generated, into samples: chats, captions and pages.

use super::chain::Chain;
use crate::measure::Random;
use crate::nested::columns::{Columns, Element};
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::vec::IntoIter;

/// The minimum and maximum bytes of a text of `web`.
const PAGE_BYTES: [usize; 2] = [200, 8000];
/// The minimum and maximum bytes of a caption.
const CAPTION_BYTES: [usize; 2] = [20, 300];
/// The number of captions in a sample.
const CAPTIONS: usize = 5;
/// The maximum number of questions in a chat. Each has an answer.
const MAX_QUESTIONS: usize = 3;

/// A source of samples of one kind.
pub struct Samples {
    kind: Kind,
    paragraphs: Paragraphs,
    random: Random,
    /// Text of earlier paragraphs that no sample has used yet.
    rest: Vec<String>,
}

#[derive(Clone, Copy)]
enum Kind {
    Chat,
    Captions,
    Web,
}

impl Samples {
    /// Uses the texts of this folder, or of its subfolder with the name of the data set. Without a
    /// folder, texts are generated and never end.
    pub fn new(name: &str, folder: Option<&Path>) -> Result<Self> {
        let kind = match name {
            "chat" => Kind::Chat,
            "captions" => Kind::Captions,
            "web" => Kind::Web,
            _ => bail!("{name} is not a data set of texts"),
        };
        let paragraphs = match folder {
            Some(folder) => Paragraphs::Files(Files::new(name, folder)?),
            None => Paragraphs::Generated(Chain::new(kind as u64)?),
        };
        Ok(Self { kind, paragraphs, random: Random::new(5), rest: Vec::new() })
    }

    pub fn origin(&self) -> String {
        let of = match self.kind {
            Kind::Chat => "paragraphs in turn as question and answer",
            Kind::Captions => "five consecutive sentences for each sample",
            Kind::Web => "consecutive paragraphs, joined",
        };
        match &self.paragraphs {
            Paragraphs::Files(_) => format!("texts of files (`--texts`), {of}"),
            Paragraphs::Generated(_) => {
                format!("generated: a Markov chain of order 2 over words of this project's documentation, {of}")
            }
        }
    }

    /// Starts with the first file again. Generated texts just continue.
    pub fn rewind(&mut self) {
        if let Paragraphs::Files(files) = &mut self.paragraphs {
            (files.next, files.open) = (0, Vec::new().into_iter());
        }
    }

    /// Appends the next sample. Returns whether there was one.
    pub fn append(&mut self, out: &mut Columns) -> Result<bool> {
        match self.kind {
            Kind::Chat => self.append_chat(out),
            Kind::Captions => self.append_captions(out),
            Kind::Web => self.append_page(out),
        }
    }

    fn append_chat(&mut self, out: &mut Columns) -> Result<bool> {
        let mut pairs = Vec::new();
        for _ in 0..=self.random.below(MAX_QUESTIONS) {
            match (self.paragraphs.next()?, self.paragraphs.next()?) {
                (Some(question), Some(answer)) => pairs.push([("user", question), ("assistant", answer)]),
                _ => break,
            }
        }
        if pairs.is_empty() {
            return Ok(false);
        }
        out.lists.push(2 * pairs.len() as u32); // at most `2 * MAX_QUESTIONS`
        for (role, content) in pairs.iter().flatten() {
            out.fields[0].push(role.as_bytes(), Element::Text);
            out.fields[1].push(content.as_bytes(), Element::Text);
        }
        Ok(true)
    }

    fn append_captions(&mut self, out: &mut Columns) -> Result<bool> {
        while self.rest.len() < CAPTIONS {
            let Some(paragraph) = self.paragraphs.next()? else { return Ok(false) };
            self.rest.extend(sentences(&paragraph));
        }
        out.lists.push(CAPTIONS as u32);
        self.rest.drain(..CAPTIONS).for_each(|caption| out.fields[0].push(caption.as_bytes(), Element::Text));
        Ok(true)
    }

    fn append_page(&mut self, out: &mut Columns) -> Result<bool> {
        let [min_bytes, max_bytes] = PAGE_BYTES;
        // the logarithms of the lengths are uniform
        let target_bytes = min_bytes as f32 * (max_bytes as f32 / min_bytes as f32).powf(self.random.uniform());
        let mut page = self.rest.pop().unwrap_or_default();
        while page.len() < target_bytes as usize {
            let Some(paragraph) = self.paragraphs.next()? else { break };
            if !page.is_empty() {
                page.push_str("\n\n");
            }
            page.push_str(&paragraph);
        }
        if page.len() < min_bytes {
            return Ok(false);
        }
        if page.len() > max_bytes {
            // one of four consecutive offsets is a boundary: a character has at most 4 bytes
            let end = (max_bytes - 3..=max_bytes).rev().find(|&end| page.is_char_boundary(end));
            self.rest.push(page.split_off(end.unwrap_or(max_bytes)));
        }
        out.fields[0].push(page.as_bytes(), Element::Text);
        Ok(true)
    }
}

/// Returns the sentences of a paragraph that are suitable as captions, each in one line.
fn sentences(paragraph: &str) -> Vec<String> {
    let mut sentences = vec![String::new()];
    for word in paragraph.split_whitespace() {
        if let Some(sentence) = sentences.last_mut() {
            if !sentence.is_empty() {
                sentence.push(' ');
            }
            sentence.push_str(word);
        }
        if word.ends_with(['.', '!', '?']) {
            sentences.push(String::new());
        }
    }
    let [min_bytes, max_bytes] = CAPTION_BYTES;
    sentences.retain(|sentence| (min_bytes..=max_bytes).contains(&sentence.len()));
    sentences
}

enum Paragraphs {
    Files(Files),
    Generated(Chain),
}

impl Paragraphs {
    fn next(&mut self) -> Result<Option<String>> {
        match self {
            Self::Files(files) => files.next(),
            Self::Generated(chain) => Ok(Some(chain.paragraph())),
        }
    }
}

/// The paragraphs of all files of a folder, one file in memory at a time.
struct Files {
    paths: Vec<PathBuf>,
    /// The index of the next file.
    next: usize,
    /// The remaining paragraphs of the current file.
    open: IntoIter<String>,
}

impl Files {
    fn new(name: &str, folder: &Path) -> Result<Self> {
        let own = folder.join(name);
        let folder = if own.is_dir() { &own } else { folder };
        let mut paths = Vec::new();
        for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
            paths.push(entry?.path());
        }
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
        ensure!(!paths.is_empty(), "there is no file *.txt in {}", folder.display());
        paths.sort();
        // shuffled, so that the first texts represent all files
        let mut random = Random::new(6);
        for i in (1..paths.len()).rev() {
            paths.swap(i, random.below(i + 1));
        }
        Ok(Self { paths, next: 0, open: Vec::new().into_iter() })
    }

    fn next(&mut self) -> Result<Option<String>> {
        loop {
            if let Some(paragraph) = self.open.next() {
                return Ok(Some(paragraph));
            }
            let Some(path) = self.paths.get(self.next) else { return Ok(None) };
            let text = fs::read(path).with_context(|| path.display().to_string())?;
            self.open = paragraphs(&String::from_utf8_lossy(&text)).into_iter();
            self.next += 1;
        }
    }
}

/// Returns the paragraphs of a text, which are separated by blank lines.
pub fn paragraphs(text: &str) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    for line in text.lines() {
        match paragraphs.last_mut() {
            Some(paragraph) if !line.trim().is_empty() => {
                if !paragraph.is_empty() {
                    paragraph.push('\n');
                }
                paragraph.push_str(line.trim_end());
            }
            _ => paragraphs.push(String::new()),
        }
    }
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    paragraphs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_between_blank_lines() {
        assert_eq!(paragraphs("a\n b \n\n \nc"), ["a\n b", "c"]);
    }

    #[test]
    fn sentences_of_other_lengths_are_not_captions() {
        let long = "long ".repeat(60);
        let text = format!("Short. A dog runs\nover  the grass. {long}. Is this one a caption?");
        assert_eq!(sentences(&text), ["A dog runs over the grass.", "Is this one a caption?"]);
    }

    #[test]
    fn generated_samples_are_as_described() {
        let mut columns = Columns { fields: vec![Default::default(); 2], ..Columns::default() };
        let mut chats = Samples::new("chat", None).unwrap();
        (0..100).for_each(|_| assert!(chats.append(&mut columns).unwrap()));
        assert!(columns.lists.iter().all(|count| [2, 4, 6].contains(count)));
        assert_eq!(columns.fields[0].lengths.len(), columns.lists.iter().sum::<u32>() as usize);
        let mut columns = Columns { fields: vec![Default::default()], ..Columns::default() };
        let mut pages = Samples::new("web", None).unwrap();
        (0..100).for_each(|_| assert!(pages.append(&mut columns).unwrap()));
        assert!(columns.fields[0].lengths.iter().all(|length| (200..=8000).contains(length)));
    }
}
