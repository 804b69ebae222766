//! Tiers (chapters 5.7 to 5.9): short fixed-width codes for symbols of one byte, decoded 64 at a
//! time.
//!
//! The exponents of floats and the bit lengths of residuals have skewed distributions. An entropy
//! coder exploits this, but has to decode one symbol after another. Tiers compress almost as well
//! with fixed-width codes: on embeddings and weights, Huffman codes reach a compression ratio of
//! 1.495, and the ratio of tiers is only 0.01 lower.
//!
//! To encode the symbols of a part:
//!
//! 1. Count the symbols of all blocks, and rank them by frequency.
//! 2. Choose the code widths of three tiers: 1 to 3 bits for the first two, 1 to 4 for the third. A
//!    tier of width `w` has codes for the next `2^w - 1` ranks. Its last code, all ones, is the
//!    escape code. Of the 36 combinations, take the one that needs the fewest bits.
//! 3. For each block, write a code for each symbol to tier 1. Each symbol that escapes from tier 1
//!    gets a code in tier 2, and each symbol that escapes from tier 2 gets a code in tier 3. The
//!    symbols that escape from tier 3 are stored as literals of one byte. The codes of a tier are
//!    in the order of the symbols, and so are the literals.
//! 4. Store a tier as groups of 64 codes, bit plane by bit plane: bit `t` of word `j` of a group is
//!    bit `j` of code `t`.
//!
//! To decode, go from the last tier to the first. Look up each code in the table of its tier, and
//! replace each escape code with the next symbol of the tier after it, or with the next literal.
//! The AND of the words of a group is the mask of its escapes. The population count of the mask is
//! the number of symbols that the group takes from the next tier. Counting the escapes before a
//! group therefore shows where its codes in the other tiers begin, so any range of symbols decodes
//! independently, without checkpoints.
//!
//! Each tier has exactly as many codes as the tier before it has escapes. The tables of a
//! part have the widths and ranks, and the header of each block has the three counts of escapes.
//!
//! `stream.rs` reads and writes tables and tiers. `encodings.rs` has the encodings:
//! *exponent-tiers* codes the top bytes of elements, and *residual-tiers* codes the bit lengths of
//! residuals.

mod encodings;
mod stream;

pub(super) use encodings::{ExponentBlocks, ResidualBlocks};
#[cfg(test)]
pub(super) use stream::RANKS;
pub(super) use stream::{
    Histogram, TABLE_BYTES as TIER_TABLE_BYTES, TierEncodeScratch, TierHeader, TierPlan, TierScratch, TierTableCache,
    count, histogram, sum_of,
};
