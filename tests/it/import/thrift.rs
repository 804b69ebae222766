//! Finds and replaces integers in Thrift's compact protocol, in which Parquet writes its headers.

use std::ops::Range;

/// An integer in a struct: the ids of the fields that lead to it (list elements count from 0), and
/// the range of its bytes.
#[derive(Clone, Debug)]
pub struct Integer {
    pub path: Vec<i64>,
    pub bytes: Range<usize>,
}

/// Returns all integers of the struct at `start`, and the end of the struct.
pub fn integers(bytes: &[u8], start: usize) -> (Vec<Integer>, usize) {
    let mut reader = Reader { bytes, at: start, path: Vec::new(), found: Vec::new() };
    reader.structure();
    (reader.found, reader.at)
}

/// Replaces the integer at `path` in the struct at `start` with `value`.
pub fn set(bytes: &mut Vec<u8>, start: usize, path: &[i64], value: i64) {
    let (found, _) = integers(bytes, start);
    let integer = found.iter().find(|integer| integer.path == path);
    let range = integer.unwrap_or_else(|| panic!("no integer at {path:?} of {found:?}")).bytes.clone();
    let mut zigzag = (value << 1 ^ value >> 63) as u64;
    let mut varint = Vec::new();
    while zigzag >= 0x80 {
        varint.push(zigzag as u8 | 0x80);
        zigzag >>= 7;
    }
    varint.push(zigzag as u8);
    bytes.splice(range, varint);
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    path: Vec<i64>,
    found: Vec<Integer>,
}

impl Reader<'_> {
    fn byte(&mut self) -> u8 {
        self.at += 1;
        self.bytes[self.at - 1]
    }

    fn varint(&mut self) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let byte = self.byte();
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value
    }

    fn structure(&mut self) {
        let mut id = 0;
        loop {
            let header = self.byte();
            if header == 0 {
                return;
            }
            id = match header >> 4 {
                0 => (self.varint() >> 1) as i64,
                delta => id + i64::from(delta),
            };
            self.path.push(id);
            self.value(header & 0x0F);
            self.path.pop();
        }
    }

    fn value(&mut self, kind: u8) {
        match kind {
            1 | 2 => {} // a bool is in the header of its field
            3 => self.at += 1,
            4..=6 => {
                let start = self.at;
                self.varint();
                self.found.push(Integer { path: self.path.clone(), bytes: start..self.at });
            }
            7 => self.at += 8,
            8 => {
                let length = self.varint() as usize;
                self.at += length;
            }
            9 => self.list(),
            12 => self.structure(),
            other => panic!("no such type: {other}"),
        }
    }

    fn list(&mut self) {
        let header = self.byte();
        let count = if header >> 4 == 15 { self.varint() as i64 } else { i64::from(header >> 4) };
        for i in 0..count {
            self.path.push(i);
            match header & 0x0F {
                1 | 2 => self.at += 1,
                kind => self.value(kind),
            }
            self.path.pop();
        }
    }
}
