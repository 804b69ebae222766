//! Decodes arbitrary bytes as the stored values of a chunk.
//!
//! A decoder runs only after several checksums have matched, so random files would not reach it.
//! This target puts the input into a file that is otherwise intact: two chunks of one column with
//! the given encoding, and all checksums correct, also in block indexes. The first bytes of an
//! input choose element type, shape and form; see [`Parts`].
//!
//! Refusing the bytes is fine. If they decode, the values must not depend on the call that reads
//! them (single, gathered, as a range, by block), on the chunk that was decoded before into the
//! same memory, or on the kernel. `verify` must find damage if and only if a chunk does not decode.

use super::blocked;
#[cfg(fuzzing)]
use super::kernels;
use super::regions::{
    BLOCKS, CONTENT_ID_BYTES, ENTRY_BYTES, FILE_HEADER, FOOTER, FOOTER_SCHEMA_OFFSET, HEADER_BYTES, PAGE, TABLE, body,
    headers, number, put, put_content_id, seal, tables,
};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;
use tensilo::sink::Stream;
use tensilo::source::InMemory;
use tensilo::verify::{VerifyOptions, verify};
use tensilo::{
    Column, ColumnBuffer, ColumnSchema, DType, Profile, Reader, Schema, Shape, Value, Writer, WriterOptions,
};

/// The maximum number of decoded bytes. More would only cost time.
const RAW_BYTES: usize = 1 << 14;
/// The offset of the dtype in a schema with one column, whose name has one letter.
const DTYPE_OFFSET: usize = 13;
/// The offset of the element size in the same schema.
const ELEMENT_BYTES: usize = 16;
/// The offset of the extent in the same schema.
const EXTENT_OFFSET: usize = 17;
/// The encoding whose parts are never in blocks.
const CONSTANT: u16 = 1;
/// The encoding that may name a table.
const ZSTD: u16 = 2;
#[cfg(fuzzing)]
const BINS: u16 = 6;
/// The bit of the first byte of an input for parts in blocks. The bits below it choose the dtype.
const IN_BLOCKS: u8 = 0x40;
/// The bit of the first byte of an input for files that are also verified.
const VERIFIED: u8 = 0x80;
/// The size of an encoding entry, which follows the facts of a column in a footer.
const ENCODING_BYTES: usize = 16;
/// The size of an index run, which follows the encodings of a column in a footer.
const RUN_BYTES: usize = 40;

/// The parts of a file of two chunks with the same encoding.
pub struct Parts<'a> {
    /// The id of the encoding, and the bit of blocks.
    encoding: u16,
    dtype: DType,
    /// Samples per chunk.
    samples: usize,
    sample_elements: usize,
    stored: [Cow<'a, [u8]>; 2],
    /// The body of the only table, if there is one.
    table: Option<&'a [u8]>,
    /// Whether the file is also verified, which takes as long as everything else.
    verified: bool,
}

/// The outcome of checking an input.
pub struct Outcome {
    /// The number of chunks that decode.
    pub sound_chunks: usize,
    /// Whether the parts are in blocks.
    pub in_blocks: bool,
    /// The stored bytes of the first chunk.
    pub stored_bytes: usize,
}

pub fn run(id: u16, input: &[u8]) {
    check(id, input);
}

/// Checks an input for the encoding with this id. Returns `None` if the input is too short, or its
/// parts would be empty or too long.
pub fn check(id: u16, input: &[u8]) -> Option<Outcome> {
    let dice = crc32fast::hash(input);
    let parts = Parts::sealed(id, input, dice)?;
    let sound_chunks = parts.check(dice);
    #[cfg(fuzzing)]
    if id == BINS {
        let elements = parts.samples * parts.sample_elements;
        for stored in &parts.stored {
            kernels::check_bins(stored, parts.encoding, elements, parts.dtype.element_bytes(), sound_chunks == 2);
        }
    }
    Some(Outcome { sound_chunks, in_blocks: parts.are_in_blocks(), stored_bytes: parts.stored[0].len() })
}

/// The values that each call returns, or the rule that they violate.
pub type Results = Vec<Result<Vec<u8>, Option<&'static str>>>;

/// Reads both chunks of an input as a whole, and some samples individually. Each call has a new
/// cursor, so results do not depend on earlier calls. Returns `None` as [`check`] does.
pub fn results(id: u16, input: &[u8]) -> Option<Results> {
    let parts = Parts::sealed(id, input, crc32fast::hash(input))?;
    let column = Reader::from_bytes(parts.file()).unwrap().column_at(0).unwrap();
    let mut buffer = ColumnBuffer::new();
    let mut results = Vec::new();
    for chunk in [0, 1] {
        let whole = column.cursor().range_into(parts.chunk(chunk), &mut buffer);
        results.push(whole.map(|()| buffer.bytes().to_vec()).map_err(|error| error.rule()));
        let read = |i| column.cursor().read(i).map(|sample| sample.bytes().to_vec());
        results.extend(parts.some(chunk, 3).map(|i| read(i).map_err(|error| error.rule())));
    }
    Some(results)
}

impl<'a> Parts<'a> {
    /// Parses an input. Its first six bytes are the form, the number of samples, the elements of a
    /// sample (2 bytes), and the length of the first part (2 bytes). For `zstd`, the length of the
    /// table (2 bytes, 0 for none) and the table follow. `seed.py` writes this layout.
    fn new(id: u16, input: &'a [u8]) -> Option<Self> {
        // no strings, which need a shape, and no bools: readers refuse some of the bools and texts
        // that an encoding can express
        const NUMBERS: [DType; 12] = [
            DType::Bf16,
            DType::F16,
            DType::F32,
            DType::F64,
            DType::I8,
            DType::I16,
            DType::I32,
            DType::I64,
            DType::U8,
            DType::U16,
            DType::U32,
            DType::U64,
        ];
        let (&[form, samples, elements @ .., a, b], mut stored) = input.split_first_chunk::<6>()?;
        let mut table = None;
        if id == ZSTD {
            let (&length, rest) = stored.split_first_chunk()?;
            let (body, rest) = rest.split_at_checked(u16::from_le_bytes(length).into())?;
            (table, stored) = (Some(body).filter(|body| !body.is_empty()), rest);
        }
        let (first, second) = stored.split_at_checked(u16::from_le_bytes([a, b]).into())?;
        let in_blocks = form & IN_BLOCKS != 0 && id != CONSTANT;
        let parts = Self {
            encoding: if in_blocks { id | BLOCKS } else { id },
            dtype: NUMBERS[usize::from(form & (IN_BLOCKS - 1)) % NUMBERS.len()],
            samples: 1 + usize::from(samples),
            sample_elements: u16::from_le_bytes(elements).into(),
            stored: [first.into(), second.into()],
            table,
            verified: form & VERIFIED != 0,
        };
        (1..=RAW_BYTES).contains(&parts.raw_bytes()).then_some(parts)
    }

    /// Does the same, and corrects the checksums of block indexes.
    fn sealed(id: u16, input: &'a [u8], dice: u32) -> Option<Self> {
        let mut parts = Self::new(id, input)?;
        if parts.are_in_blocks() {
            parts.seal_block_indexes(dice);
        }
        Some(parts)
    }

    fn are_in_blocks(&self) -> bool {
        self.encoding & BLOCKS != 0
    }

    /// Corrects the checksums of block indexes and blocks, and in most inputs the end of the last
    /// block. In one of sixteen inputs, repeats the blocks until they are read individually.
    fn seal_block_indexes(&mut self, dice: u32) {
        let elements = self.samples * self.sample_elements;
        if !(dice / 16).is_multiple_of(8) {
            for stored in &mut self.stored {
                blocked::put_last_end(stored.to_mut(), self.encoding, elements);
            }
        }
        let times = match dice.is_multiple_of(16) {
            true => blocked::repetitions(&self.stored[0], self.encoding, self.raw_bytes()).unwrap_or(1),
            false => 1,
        };
        self.samples *= times;
        for stored in &mut self.stored {
            *stored = blocked::repeated(stored, self.encoding, times).into();
        }
    }

    fn sample_bytes(&self) -> usize {
        self.sample_elements * self.dtype.element_bytes()
    }

    /// The decoded bytes of each chunk.
    fn raw_bytes(&self) -> usize {
        self.samples * self.sample_bytes()
    }

    /// The samples of a chunk.
    pub fn chunk(&self, chunk: usize) -> Range<u64> {
        let samples = self.samples as u64;
        samples * chunk as u64..samples * (chunk as u64 + 1)
    }

    /// Builds the file: [`PLAIN`] with this column and these parts.
    fn file(&self) -> Vec<u8> {
        let [_, chunk, _, old_page, old_footer, old_trailer] = PLAIN.regions;
        let plain = &PLAIN.file;
        let mut file = plain[..chunk].to_vec();
        self.put_schema(&mut file, HEADER_BYTES);
        let mut previous = 0;
        seal(&mut file, 0, &mut previous);
        let table = self.push_table(&mut file, &mut previous);
        let mut chunks = [0; 2];
        for (i, at) in (0..).zip(&mut chunks) {
            *at = file.len();
            file.extend(&plain[chunk..chunk + HEADER_BYTES]);
            file.extend(&*self.stored[i]);
            put(&mut file, *at + 32, 8, self.chunk(i).start);
            put(&mut file, *at + 40, 4, self.samples as u64);
            put(&mut file, *at + 44, 4, self.stored[i].len() as u64);
            put(&mut file, *at + 48, 4, self.raw_bytes() as u64);
            put(&mut file, *at + 52, 2, self.encoding.into());
            seal(&mut file, *at, &mut previous);
            file.resize(file.len().next_multiple_of(HEADER_BYTES), 0);
        }
        let page = file.len();
        file.extend(&plain[old_page..old_footer]);
        for (i, chunk) in chunks.into_iter().enumerate() {
            self.put_entry(&mut file, page + HEADER_BYTES + ENTRY_BYTES * i, chunk);
        }
        seal(&mut file, page, &mut previous);
        let footer = self.push_footer(&mut file, page, table);
        seal(&mut file, footer, &mut previous);
        let trailer = file.len();
        file.extend(&plain[old_trailer..]);
        put(&mut file, trailer + 32, 8, footer as u64);
        seal(&mut file, trailer, &mut previous);
        file
    }

    fn put_schema(&self, file: &mut [u8], at: usize) {
        let dtype = DType::ALL.iter().position(|&dtype| dtype == self.dtype).map_or(0, |at| at + 1);
        put(file, at + DTYPE_OFFSET, 1, dtype as u64);
        put(file, at + ELEMENT_BYTES, 1, self.dtype.element_bytes() as u64);
        put(file, at + EXTENT_OFFSET, 4, self.sample_elements as u64);
    }

    /// Fills the index entry at `entry` from the header of the chunk at `chunk`.
    fn put_entry(&self, file: &mut [u8], entry: usize, chunk: usize) {
        put(file, entry, 8, chunk as u64);
        for (from, to, bytes) in [(32, 8, 8), (44, 16, 4), (40, 20, 4), (56, 24, 4), (52, 28, 2)] {
            file.copy_within(chunk + from..chunk + from + bytes, entry + to);
        }
    }

    /// Appends the table, if there is one, and returns its offset.
    fn push_table(&self, file: &mut Vec<u8>, previous: &mut u32) -> Option<usize> {
        let body = self.table?;
        let at = file.len();
        file.extend(&PLAIN.file[..HEADER_BYTES]);
        file[at..at + 8].fill(0);
        file[at + 32..at + HEADER_BYTES].fill(0);
        file[at..at + 4].copy_from_slice(&TABLE);
        put(file, at + 44, 4, body.len() as u64);
        file.extend(body);
        seal(file, at, previous);
        file.resize(file.len().next_multiple_of(HEADER_BYTES), 0);
        Some(at)
    }

    /// Appends a footer that points to the index page and the table, and returns its offset.
    fn push_footer(&self, file: &mut Vec<u8>, page: usize, table: Option<usize>) -> usize {
        let at = file.len();
        let plain = PLAIN.footer();
        file.extend(plain);
        if let Some(table) = table {
            let count = tables(plain, 0).start - 4;
            put(file, at + count, 4, 1);
            let mut entry = [0; 24];
            put(&mut entry, 8, 8, table as u64);
            entry[16..20].copy_from_slice(&file[table + 44..table + 48]);
            entry[20..].copy_from_slice(&file[table + 56..table + 60]);
            file.splice(at + count + 4..at + count + 4, entry);
            let body_bytes = file.len() - at - HEADER_BYTES;
            put(file, at + 44, 4, body_bytes as u64);
        }
        self.put_facts(file, at, page);
        file.resize(file.len().next_multiple_of(HEADER_BYTES), 0);
        at
    }

    fn put_facts(&self, file: &mut [u8], at: usize, page: usize) {
        let samples = self.chunk(1).end;
        let stored_bytes = self.stored.iter().map(|stored| stored.len() as u64).sum();
        put(file, at + 48, 8, samples);
        self.put_schema(file, at + FOOTER_SCHEMA_OFFSET);
        let run = at + HEADER_BYTES + number(file, at + 44, 4) as usize - RUN_BYTES;
        put(file, run, 8, page as u64);
        put(file, run + 16, 8, samples);
        put(file, run + 32, 4, self.samples as u64);
        let facts = run - ENCODING_BYTES - 40;
        put(file, facts, 8, 2 * self.raw_bytes() as u64);
        put(file, facts + 8, 8, stored_bytes);
        put(file, facts + 40, 2, self.encoding.into());
        let before = [&[0; CONTENT_ID_BYTES], body(file, page).unwrap_or(&[])].concat();
        put_content_id(file, at, &before);
    }

    /// Reads the file in every way. Returns the number of chunks that decode.
    fn check(&self, dice: u32) -> usize {
        let file = self.file();
        let reader = Reader::from_bytes(file.clone()).unwrap();
        let column = reader.column_at(0).unwrap();
        let mut buffer = ColumnBuffer::new();
        let expected = [0, 1].map(|chunk| {
            let result = column.cursor().range_into(self.chunk(chunk), &mut buffer);
            result.ok().map(|()| buffer.bytes().to_vec())
        });
        if self.verified {
            let findings = verify(&InMemory(&file), VerifyOptions::new().deep(true)).unwrap().findings;
            // damage elsewhere would mean that the file was built wrong, and tests nothing
            let of_encoding = |rule: &str| rule.starts_with("R-5.");
            assert!(findings.iter().all(|damage| damage.error.rule().is_some_and(of_encoding)), "{findings:?}");
            assert_eq!(expected.iter().all(Option::is_some), findings.is_empty(), "{findings:?}");
        }
        if self.are_in_blocks() {
            blocked::check(self, &file, &expected, dice);
        }
        // a cursor whose memory has held the other chunk
        let mut cursor = column.cursor();
        for chunk in [1, 0, 1] {
            match &expected[chunk] {
                Some(expected) => self.check_sound(&mut cursor, chunk, expected, &mut buffer),
                None => self.check_broken(&column, &mut cursor, chunk),
            }
        }
        expected.iter().flatten().count()
    }

    /// Checks that samples of a chunk that decodes are the expected ones.
    pub fn check_sound(&self, cursor: &mut tensilo::Cursor, chunk: usize, expected: &[u8], buffer: &mut ColumnBuffer) {
        let sample = |i: u64| self.slice(chunk, expected, &(i..i + 1));
        for i in self.some(chunk, 3) {
            assert_eq!(cursor.read(i).unwrap().bytes(), sample(i), "sample {i}");
        }
        let some: Vec<u64> = self.some(chunk, 20).collect();
        cursor.gather_into(&some, buffer).unwrap();
        assert!(some.iter().flat_map(|&i| sample(i)).eq(buffer.bytes()), "gathered");
        cursor.range_into(self.chunk(chunk), buffer).unwrap();
        assert_eq!(buffer.bytes(), expected);
    }

    /// Checks a chunk that does not decode. Some of its samples may still be readable, and must
    /// then be the same each time.
    pub fn check_broken(&self, column: &Column, cursor: &mut tensilo::Cursor, chunk: usize) {
        for i in self.some(chunk, 2) {
            let Ok(read) = cursor.read(i).map(|read| read.bytes().to_vec()) else { continue };
            if let Ok(fresh) = column.cursor().read(i) {
                assert_eq!(fresh.bytes(), read, "sample {i}");
            }
        }
    }

    /// Returns the values of these samples, given the `expected` values of their chunk.
    pub fn slice<'d>(&self, chunk: usize, expected: &'d [u8], samples: &Range<u64>) -> &'d [u8] {
        let at = |i: u64| (i - self.chunk(chunk).start) as usize * self.sample_bytes();
        &expected[at(samples.start)..at(samples.end)]
    }

    /// Returns about `count` samples of a chunk, evenly spaced, the last one first.
    fn some(&self, chunk: usize, count: usize) -> impl Iterator<Item = u64> + use<> {
        self.chunk(chunk).rev().step_by(1 + self.samples / count)
    }
}

/// A template from the writer: one column with two samples, each in its own chunk.
struct Plain {
    file: Vec<u8>,
    /// The offsets of the file header, both chunks, the index page, the footer and the trailer.
    regions: [usize; 6],
}

impl Plain {
    /// Returns the footer without its padding.
    fn footer(&self) -> &[u8] {
        let at = self.regions[4];
        &self.file[at..at + HEADER_BYTES + number(&self.file, at + 44, 4) as usize]
    }
}

static PLAIN: LazyLock<Plain> = LazyLock::new(|| {
    let column = ColumnSchema::tensor("x", DType::U8, Shape::fixed(&[1]));
    let options = WriterOptions::new().profile(Profile::Raw).chunk_bytes(1);
    let mut writer = Writer::new(Stream(Vec::new()), Schema::new([column]), &options).unwrap();
    (0..2).for_each(|_| writer.push(&[Value::tensor(&[1_u8])]).unwrap());
    let file = writer.into_bytes().unwrap();
    let headers: Vec<(usize, [u8; 4])> = headers(&file).collect();
    let [(header, FILE_HEADER), (chunk, _), (second, _), (page, PAGE), (footer, FOOTER), (trailer, _)] = headers[..]
    else {
        panic!("unexpected regions in the template: {headers:?}")
    };
    Plain { regions: [header, chunk, second, page, footer, trailer], file }
});
