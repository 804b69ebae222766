//! The kinds of damage to a file.

use crate::measure::Random;
use anyhow::Result;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// The size and alignment of a block.
const BLOCK: usize = 4096;

/// The minimum size of a file, so that two blocks can be swapped.
pub const MIN_FILE_BYTES: u64 = 2 * BLOCK as u64;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Flip,
    Garbage,
    Zero,
    Swap,
    Truncate,
}

impl Kind {
    pub const ALL: [Self; 5] = [Self::Flip, Self::Garbage, Self::Zero, Self::Swap, Self::Truncate];

    pub fn name(self) -> &'static str {
        match self {
            Self::Flip => "a flipped bit",
            Self::Garbage => "16 random bytes",
            Self::Zero => "a zeroed 4 KiB block",
            Self::Swap => "two swapped 4 KiB blocks",
            Self::Truncate => "a truncation",
        }
    }

    /// Draws damage of this kind at a uniformly random offset. Repeats the draw if the damage would
    /// not change the file.
    pub fn draw(self, intact: &[u8], random: &mut Random) -> Damage {
        loop {
            let damage = self.draw_any(intact, random);
            if damage.changes(intact) {
                return damage;
            }
        }
    }

    fn draw_any(self, intact: &[u8], random: &mut Random) -> Damage {
        let length = intact.len();
        let mut block = || random.below(length / BLOCK) * BLOCK;
        let writes = match self {
            Self::Flip => {
                let at = random.below(length);
                vec![(at, vec![intact[at] ^ 1 << random.below(8)])]
            }
            Self::Garbage => {
                let at = random.below(length - 15);
                vec![(at, (0..16).map(|_| random.below(256) as u8).collect())]
            }
            Self::Zero => vec![(block(), vec![0; BLOCK])],
            Self::Swap => {
                let (one, other) = (block(), block());
                let at = |start: usize| intact[start..start + BLOCK].to_vec();
                vec![(one, at(other)), (other, at(one))]
            }
            Self::Truncate => return Damage { writes: Vec::new(), length: random.below(length) },
        };
        Damage { writes, length }
    }
}

/// A change of a file.
pub struct Damage {
    /// Offsets, and the bytes written at each.
    writes: Vec<(usize, Vec<u8>)>,
    /// The length of the file afterwards.
    length: usize,
}

impl Damage {
    fn changes(&self, intact: &[u8]) -> bool {
        let differs = |(at, bytes): &(usize, Vec<u8>)| intact[*at..][..bytes.len()] != bytes[..];
        self.length < intact.len() || self.writes.iter().any(differs)
    }

    pub fn apply(&self, file: &File) -> Result<()> {
        for (at, bytes) in &self.writes {
            file.write_all_at(bytes, *at as u64)?;
        }
        Ok(file.set_len(self.length as u64)?)
    }

    /// Restores the file.
    pub fn undo(&self, file: &File, intact: &[u8]) -> Result<()> {
        for (at, bytes) in &self.writes {
            file.write_all_at(&intact[*at..][..bytes.len()], *at as u64)?;
        }
        Ok(file.write_all_at(&intact[self.length..], self.length as u64)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn every_damage_changes_the_file_and_is_undone() {
        // mostly zeros: many draws would change nothing
        let mut intact = vec![0; 3 * BLOCK + 100];
        intact[BLOCK + 7] = 1;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, &intact).unwrap();
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        let mut random = Random::new(1);
        for kind in Kind::ALL {
            for _ in 0..100 {
                let damage = kind.draw(&intact, &mut random);
                damage.apply(&file).unwrap();
                assert!(fs::read(&path).unwrap() != intact, "{}", kind.name());
                damage.undo(&file, &intact).unwrap();
                assert!(fs::read(&path).unwrap() == intact, "{}", kind.name());
            }
        }
    }
}
