//! Stored bytes that no encoder has written.

use proptest::collection::vec;
use proptest::prelude::*;

/// A change of stored bytes.
#[derive(Clone, Debug)]
pub(super) enum Damage {
    Byte(usize, u8),
    Bit(usize),
    Number(usize, u32),
    Cut(usize),
    Append(Vec<u8>),
}

pub(super) fn damage() -> impl Strategy<Value = Damage> {
    // heads are where damage goes furthest
    let place = || prop_oneof![0..100_usize, any::<usize>()];
    let byte = prop_oneof![any::<u8>(), Just(0), Just(1), Just(u8::MAX)];
    let number = prop_oneof![any::<u32>(), 0..300_u32, Just(u32::MAX)];
    prop_oneof![
        4 => (place(), byte).prop_map(|(at, byte)| Damage::Byte(at, byte)),
        4 => any::<usize>().prop_map(Damage::Bit),
        2 => (place(), number).prop_map(|(at, number)| Damage::Number(at, number)),
        1 => any::<usize>().prop_map(Damage::Cut),
        1 => vec(any::<u8>(), 1..20).prop_map(Damage::Append),
    ]
}

impl Damage {
    pub(super) fn apply(&self, stored: &mut Vec<u8>) {
        let length = stored.len().max(1);
        match self {
            Self::Append(bytes) => stored.extend(bytes),
            Self::Cut(left) => stored.truncate(left % length),
            Self::Byte(at, byte) => stored.iter_mut().skip(at % length).take(1).for_each(|to| *to = *byte),
            Self::Bit(bit) => stored.iter_mut().skip(bit / 8 % length).take(1).for_each(|to| *to ^= 1 << (bit % 8)),
            Self::Number(at, number) => {
                stored.iter_mut().skip(at % length).zip(number.to_le_bytes()).for_each(|(to, from)| *to = from);
            }
        }
    }
}
