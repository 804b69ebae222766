#![no_main]
//! Any bytes whose checksums have been made right, so that what stands behind them is reached.

mod walk;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|file: &[u8]| walk::walk(&reseal(file)));

/// Makes the place and the checksums right of everything that begins with a magic number at a multiple of 64.
fn reseal(file: &[u8]) -> Vec<u8> {
    let mut file = file.to_vec();
    for at in (0..file.len()).step_by(64) {
        let Some(head) = file.get(at..at + 64) else { break };
        if !head.starts_with(b"TSL") && !head.starts_with(b"\x89TSL") {
            continue;
        }
        let length = u32::from_le_bytes([head[44], head[45], head[46], head[47]]) as usize;
        let body_crc = file.get(at + 64..(at + 64).saturating_add(length)).map(crc32fast::hash);
        let head = &mut file[at..at + 64];
        head[24..32].copy_from_slice(&(at as u64).to_le_bytes());
        if let Some(crc) = body_crc {
            head[56..60].copy_from_slice(&crc.to_le_bytes());
        }
        let head_crc = crc32fast::hash(&head[..60]);
        head[60..64].copy_from_slice(&head_crc.to_le_bytes());
    }
    file
}
