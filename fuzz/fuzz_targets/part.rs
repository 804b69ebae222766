//! Any bytes as what is stored of parts, in a file in which all else is right, checksums included.

use tensilo::{
    ColumnBatch, ColumnBuffer, ColumnSchema, DType, InMemory, Profile, Reader, Schema, Shape, Stream, VerifyOptions,
    Writer, WriterOptions, verify,
};

const HEAD: usize = 64;
/// Larger parts would only cost time.
const RAW_BYTES: usize = 1 << 20;

/// Two chunks of a column, both of this encoding.
pub struct Parts<'a> {
    encoding: u16,
    dtype: DType,
    /// Of each chunk.
    samples: usize,
    sample_elements: u32,
    stored: [&'a [u8]; 2],
}

impl<'a> Parts<'a> {
    /// Six bytes say what the column is and where the second part begins; seed.py knows them.
    pub fn new(encoding: u16, input: &'a [u8]) -> Option<Self> {
        let ([dtype, samples, rest @ ..], stored) = input.split_first_chunk::<6>()?;
        let [elements, first] = [[rest[0], rest[1]], [rest[2], rest[3]]].map(u16::from_le_bytes);
        // strings have shapes as well, and values of bools and texts are refused that the encoding allows
        let numbers: Vec<DType> = DType::ALL.into_iter().filter(|d| !d.is_string() && *d != DType::Bool).collect();
        let (first, second) = stored.split_at_checked(first.into())?;
        let parts = Self {
            encoding,
            dtype: numbers[usize::from(*dtype) % numbers.len()],
            samples: 1 + usize::from(*samples),
            sample_elements: elements.into(),
            stored: [first, second],
        };
        (1..=RAW_BYTES).contains(&parts.raw_bytes()).then_some(parts)
    }

    fn sample_bytes(&self) -> usize {
        self.sample_elements as usize * self.dtype.element_bytes()
    }

    /// Decoded bytes of each chunk.
    fn raw_bytes(&self) -> usize {
        self.samples * self.sample_bytes()
    }

    /// The file: that of a writer which stores zeros as they are, with other bytes and another encoding in the place of the zeros.
    fn file(&self) -> Vec<u8> {
        let plain = self.plain_file();
        let [chunk, page, footer] = [b"TSLC", b"TSLI", b"TSLF"].map(|magic| find(&plain, magic));
        let chunk_bytes = (page - chunk) / 2;
        let mut file = plain[..chunk].to_vec();
        let mut chunks = Vec::new();
        for (stored, head) in self.stored.iter().zip([chunk, chunk + chunk_bytes]) {
            let at = file.len();
            chunks.push(at);
            file.extend(&plain[head..head + HEAD]);
            file.extend(*stored);
            put(&mut file, at + 44, &(stored.len() as u32).to_le_bytes());
            put(&mut file, at + 52, &self.encoding.to_le_bytes());
            seal(&mut file, at);
            file.resize(file.len().next_multiple_of(HEAD), 0);
        }
        let (old_page, page) = (page, file.len());
        file.extend(&plain[old_page..]);
        let (footer, trailer) = (footer - old_page + page, file.len() - HEAD);
        for (i, chunk) in chunks.into_iter().enumerate() {
            let entry = page + HEAD + 32 * i;
            put(&mut file, entry, &(chunk as u64).to_le_bytes());
            file.copy_within(chunk + 44..chunk + 48, entry + 16); // length
            file.copy_within(chunk + 56..chunk + 60, entry + 24); // checksum
            put(&mut file, entry + 28, &self.encoding.to_le_bytes());
        }
        seal(&mut file, page);
        // the footer ends with the facts, one encoding and one run
        let facts = footer + HEAD + body_bytes(&file, footer) - 40 - 16 - 40;
        let stored_bytes = self.stored.iter().map(|stored| stored.len() as u64).sum::<u64>();
        put(&mut file, facts + 8, &stored_bytes.to_le_bytes());
        put(&mut file, facts + 40, &self.encoding.to_le_bytes());
        put(&mut file, facts + 56, &(page as u64).to_le_bytes());
        seal(&mut file, footer);
        put(&mut file, trailer + 32, &(footer as u64).to_le_bytes());
        seal(&mut file, trailer);
        file
    }

    fn plain_file(&self) -> Vec<u8> {
        let column = ColumnSchema::tensor("x", self.dtype, Shape::fixed(&[self.sample_elements]));
        let options = WriterOptions::new().profile(Profile::Raw).chunk_bytes(self.raw_bytes());
        let mut writer = Writer::new(Stream(Vec::new()), Schema::new([column]), &options).unwrap();
        let zeros = vec![0; 2 * self.raw_bytes()];
        writer.push_batch(&[ColumnBatch::from_bytes(self.dtype, 2 * self.samples, &[], &zeros)]).unwrap();
        writer.finish().unwrap().sink.0
    }

    /// Reads the file by all paths, whose results do not depend on what was read before with the same memory.
    pub fn read(&self) {
        let file = self.file();
        let reader = Reader::from_bytes(&file).unwrap();
        let damages = verify(&InMemory(&file), VerifyOptions::new().decode(true)).unwrap().damages;
        // a file that were wrong elsewhere would test nothing
        assert!(damages.iter().all(|damage| damage.error.rule().is_some_and(|r| r.starts_with("R-5."))), "{damages:?}");
        let column = reader.columns().next().unwrap();
        let chunks = [0..self.samples as u64, self.samples as u64..2 * self.samples as u64];
        let mut buffer = ColumnBuffer::new();
        let due = chunks.clone().map(|chunk| {
            let result = column.cursor().range_into(chunk, &mut buffer);
            result.ok().map(|()| buffer.bytes().to_vec())
        });
        assert_eq!(due.iter().all(Option::is_some), damages.is_empty(), "{damages:?}");
        let cursor = &mut column.cursor();
        for i in [1, 0, 1, 1, 0] {
            let (chunk, due) = (chunks[i].clone(), &due[i]);
            let sample = |due: &[u8], i: u64| -> Vec<u8> {
                due[(i - chunk.start) as usize * self.sample_bytes()..][..self.sample_bytes()].to_vec()
            };
            for i in chunk.clone().rev().step_by(1 + self.samples / 5) {
                // of a part that does not decode a sample alone may, which then is the same each time
                let fresh = column.cursor().read(i).map(|read| read.bytes().to_vec());
                let read = cursor.read(i).map(|read| read.bytes().to_vec());
                match (due, fresh, read) {
                    (Some(due), fresh, read) => {
                        assert_eq!([fresh.unwrap(), read.unwrap()], [sample(due, i), sample(due, i)], "sample {i}");
                    }
                    (None, Ok(fresh), Ok(read)) => assert_eq!(fresh, read, "sample {i}"),
                    _ => {}
                }
            }
            let some: Vec<u64> = chunk.clone().step_by(3).collect();
            let gathered = cursor.gather_into(&some, &mut buffer);
            if let Some(due) = due {
                gathered.unwrap();
                assert_eq!(buffer.bytes(), some.iter().flat_map(|&i| sample(due, i)).collect::<Vec<u8>>(), "gathered");
            }
        }
    }
}

/// Where the first region with this magic stands.
fn find(file: &[u8], magic: &[u8; 4]) -> usize {
    file.chunks(HEAD).position(|head| head.starts_with(magic)).unwrap() * HEAD
}

fn put(file: &mut [u8], at: usize, bytes: &[u8]) {
    file[at..at + bytes.len()].copy_from_slice(bytes);
}

fn body_bytes(file: &[u8], at: usize) -> usize {
    u32::from_le_bytes(file[at + 44..at + 48].try_into().unwrap()) as usize
}

/// Makes place and checksums of the region right that begins here.
fn seal(file: &mut [u8], at: usize) {
    put(file, at + 24, &(at as u64).to_le_bytes());
    let crc = crc32fast::hash(&file[at + HEAD..at + HEAD + body_bytes(file, at)]);
    put(file, at + 56, &crc.to_le_bytes());
    let crc = crc32fast::hash(&file[at..at + 60]);
    put(file, at + 60, &crc.to_le_bytes());
}
