//! Explains the values of a chunk: their sections, their size with every other encoding, and what
//! each profile would choose and why.
//!
//! To explain the values, this module encodes them again, as writers do. A profile reproduces the
//! bytes of the file only if it divides the values into the same blocks, but the options of a
//! writer can set another block size. If a profile does not reproduce the file, it is therefore
//! tried again with the blocks of the file.

use super::decoder::{ChunkDecoder, StoredChunk};
use super::encoder::{ChunkEncoder, saves_enough};
use crate::bytes::le::{swap_to_native, u64_of};
use crate::bytes::memory;
use crate::codec::{
    RAW, RAW_BLOCKS, base_name,
    blocked::{BlockCodec, Constant, Encoder, Encoding, seal},
    choice::{Profile, Search, WeightedEncoder},
    encoding, encoding_name, encoding_of,
    part::{Body, Description, Geometry, PartSpec, RawPart, block_ends},
    scratch::EncodeScratch,
    zstandard::ZstdEncoderDictionary,
};
use crate::{Error, Result};
use std::sync::Arc;

/// The result of encoding the values of a chunk with one encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trial {
    /// The name of the encoding.
    pub encoding: String,
    /// The profiles that try this encoding with settings that lead to this stored size. Empty if no
    /// profile tries it for columns of this type.
    pub profiles: Vec<Profile>,
    /// The stored size of the values in bytes; `None` if the encoding cannot express them.
    pub stored_bytes: Option<u64>,
    /// Whether the result is exactly what the file contains.
    pub in_file: bool,
}

/// The encoding that a profile chooses for the values of a chunk, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Choice {
    /// The profile.
    pub profile: Profile,
    /// The name of the encoding.
    pub encoding: String,
    /// The stored size of the values in bytes.
    pub stored_bytes: u64,
    /// The reason, in words.
    pub reason: String,
    /// Whether the result is exactly what the file contains. This can be false even for the profile
    /// of the writer: for all chunks of a column except the first, the writer can have reused the
    /// choice of the previous chunk.
    pub in_file: bool,
}

/// The values of a chunk, stored and decoded.
pub(crate) struct Values<'a> {
    geometry: Geometry<'a>,
    /// The ends of the blocks that each profile writes; at most one if it writes a single block.
    ends: Vec<(Profile, Vec<u32>)>,
    /// The ends of the blocks in the file; a single end if the values are one block.
    file_ends: Vec<u32>,
    /// The end of the only block if the values are one block.
    whole_end: [u32; 1],
    /// The bytes of the body before the values.
    before: &'a [u8],
    is_string: bool,
    zstd_dictionary: Option<Arc<ZstdEncoderDictionary>>,
    encoding: Encoding,
    pub stored: &'a [u8],
    /// The decoded bytes, in the byte order of the file.
    pub raw: Vec<u8>,
}

impl<'a> Values<'a> {
    pub(crate) fn of_chunk(chunk: &StoredChunk<'a>) -> Result<Self> {
        let StoredChunk { layout, tables, body, .. } = *chunk;
        let mut decoder = ChunkDecoder::new();
        decoder.load(chunk)?;
        let values = decoder.content(body).values;
        let mut raw = memory::with_capacity(values.len())?;
        raw.extend_from_slice(values);
        swap_to_native(layout.element_bytes, &mut raw); // swaps back: the same operation
        let part = chunk.parts()?.values;
        let length = usize::try_from(part.stored_bytes).ok();
        let body = body.start();
        let start = length.and_then(|length| body.len().checked_sub(length)); // values come last
        let stored = start.and_then(|start| body.split_at_checked(start));
        let (before, stored) = stored.ok_or_else(|| Error::corrupt("R-4.4", "the values extend beyond the chunk"))?;
        let encoding = encoding(part.encoding)?;
        let table = if raw.is_empty() { None } else { encoding.table(stored) };
        let zstd_dictionary =
            table.map(|table| ZstdEncoderDictionary::new(table, tables.zstd_dictionary(table)?)).transpose()?;
        let spec = PartSpec::new(layout.element_bytes, raw.len());
        let mut file_ends = Vec::new();
        if encoding.is_in_blocks() {
            let part = encoding.parse(spec, Body::whole(stored), &(0..stored.len()))?;
            for entry in part.block_index.blocks() {
                // exact: read from a field of 32 bits
                file_ends.extend(u32::try_from(entry?.elements.end));
            }
        }
        let is_string = layout.dtype.is_string();
        let size_of = |profile: Profile| profile.block_bytes_of(is_string, profile.block_bytes());
        let mut ends = Vec::new();
        for profile in Profile::ALL {
            let mut profile_ends = Vec::new();
            if let Some(size) = size_of(profile) {
                block_ends(layout, &decoder.content(Body::whole(body)), size, &mut profile_ends)?;
            }
            ends.push((profile, profile_ends));
        }
        let count = raw.len() / layout.element_bytes.max(1);
        let whole_end = [u32::try_from(count).unwrap_or(u32::MAX)]; // at most 2^32 - 2^16
        if file_ends.len() <= 1 {
            file_ends = whole_end.to_vec();
        } else if ends.iter().all(|(_, profile_ends)| *profile_ends != file_ends) {
            // no profile chooses these ends, so the writer's options set them
            let others = ends.iter_mut().filter(|(profile, _)| size_of(*profile).is_some());
            others.for_each(|(_, profile_ends)| profile_ends.clone_from(&file_ends));
        }
        let mut values = Self {
            geometry: Geometry::of_values(layout),
            ends,
            file_ends,
            whole_end,
            before,
            is_string,
            zstd_dictionary: zstd_dictionary.map(Arc::new),
            encoding,
            stored,
            raw,
        };
        values.find_blocks()?;
        Ok(values)
    }

    /// Finds the profiles that reproduce the bytes of the file only if they use the blocks of the
    /// file, or one block if the file has one, and sets their block ends accordingly. In these
    /// cases, the writer's options set the blocks, or an earlier release wrote the file.
    fn find_blocks(&mut self) -> Result<()> {
        for profile in available_profiles().filter(|profile| profile.block_bytes().is_some()) {
            let profile_ends = self.ends(profile).to_vec();
            let are_same = profile_ends == self.file_ends || profile_ends.len() <= 1 && self.file_ends.len() == 1;
            if are_same || self.encode_as(profile, Search::new())?.2 {
                continue;
            }
            self.set_ends(profile, self.file_ends.clone());
            if !self.encode_as(profile, Search::new())?.2 {
                self.set_ends(profile, profile_ends);
            }
        }
        Ok(())
    }

    fn ends(&self, profile: Profile) -> &[u32] {
        self.ends.iter().find(|(other, _)| *other == profile).map_or(&[], |(_, ends)| ends)
    }

    fn set_ends(&mut self, profile: Profile, ends: Vec<u32>) {
        self.ends
            .iter_mut()
            .filter(|(other, _)| *other == profile)
            .for_each(|(_, profile_ends)| profile_ends.clone_from(&ends));
    }

    fn in_blocks(&self, profile: Profile) -> bool {
        self.ends(profile).len() > 1
    }

    fn geometry(&self, profile: Profile, in_blocks: bool) -> Geometry<'_> {
        self.geometry.in_blocks(if in_blocks { self.ends(profile) } else { &self.whole_end })
    }

    /// Returns the number of elements or, for text and bytes, the number of bytes.
    pub(crate) fn element_count(&self) -> usize {
        self.raw.len().checked_div(self.geometry.element_bytes).unwrap_or(0)
    }

    pub(crate) fn description(&self) -> Result<Description> {
        let spec = PartSpec::new(self.geometry.element_bytes, self.raw.len());
        self.encoding.parse(spec, Body::whole(self.stored), &(0..self.stored.len()))?.description()
    }

    fn is_in_file(&self, encoding: Encoding, stored: &[u8]) -> bool {
        self.encoding.field() == encoding.field() && self.stored == stored
    }

    /// Encodes the values with each encoding and, where the settings of the profile matter, once
    /// for each profile. Returns the smallest result first.
    pub(crate) fn trials(&self) -> Result<Vec<Trial>> {
        let mut trials = Vec::new();
        let mut stored = Vec::new();
        let mut scratch = EncodeScratch { zstd_dictionary: self.zstd_dictionary.clone(), ..EncodeScratch::default() };
        let (in_blocks, others): (Vec<_>, Vec<_>) =
            Profile::ALL.into_iter().partition(|&profile| self.in_blocks(profile));
        others.into_iter().for_each(|profile| add(&mut trials, self.trial(Some(profile), RAW, Some(&self.raw))));
        let raw: &dyn Encoder = RAW_BLOCKS;
        let fallbacks =
            in_blocks.into_iter().map(|profile| Attempt { profile, is_for_type: true, encoder: raw, in_blocks: true });
        for Attempt { profile, is_for_type, encoder, in_blocks } in fallbacks.chain(self.attempts()) {
            let geometry = self.geometry(profile, in_blocks);
            // as writers do
            let part = RawPart { geometry: &geometry, raw: &self.raw };
            scratch.estimated(part, |part, scratch| {
                encoder.estimate(part, scratch);
                encoder.estimate_by_encoding(part, scratch)
            })?;
            let is_encoded = encoder.encode(part, &mut stored, &mut scratch)?;
            let encoding = encoding_of(encoder, geometry.is_in_blocks())?;
            if encoding.is_in_blocks() {
                seal(self.before, &mut stored);
            }
            add(&mut trials, self.trial(is_for_type.then_some(profile), encoding, is_encoded.then_some(&stored)));
        }
        trials.sort_by_key(|trial| trial.stored_bytes.unwrap_or(u64::MAX));
        Ok(trials)
    }

    fn trial(&self, profile: Option<Profile>, encoding: Encoding, stored: Option<&Vec<u8>>) -> Trial {
        Trial {
            encoding: encoding_name(encoding.field()),
            profiles: profile.into_iter().collect(),
            stored_bytes: stored.map(|stored| u64_of(stored.len())),
            in_file: stored.is_some_and(|stored| self.is_in_file(encoding, stored)),
        }
    }

    /// Returns the encoders of all profiles. Encoders that are only used for columns of other types
    /// come last. A profile with several blocks also tries a single block, because it writes short
    /// chunks as one block. Returns nothing if there are no values.
    fn attempts(&self) -> impl Iterator<Item = Attempt> {
        let of = |is_for_type: bool| {
            let is_string = self.is_string == is_for_type;
            let candidates = move |(profile, in_blocks): (Profile, bool)| {
                let all = profile.candidates(is_string, in_blocks).iter();
                all.map(move |candidate| Attempt { profile, is_for_type, encoder: candidate.encoder, in_blocks })
            };
            let with_and_without =
                |profile| self.in_blocks(profile).then_some((profile, true)).into_iter().chain([(profile, false)]);
            Profile::ALL.into_iter().flat_map(with_and_without).flat_map(candidates)
        };
        let any = !self.raw.is_empty();
        of(true).chain(of(false)).filter(move |attempt| any && attempt.encoder.check_built().is_ok())
    }

    pub(crate) fn choices(&self, trials: &[Trial]) -> Result<Vec<Choice>> {
        available_profiles().map(|profile| self.choice(profile, trials)).collect()
    }

    /// Encodes the values as a profile does. Also returns whether the file has the same bytes.
    fn encode_as(&self, profile: Profile, search: Search) -> Result<(Encoding, Vec<u8>, bool)> {
        let mut encoder = ChunkEncoder::new(profile, profile.block_bytes(), false, search);
        let geometry = self.geometry(profile, self.in_blocks(profile));
        let part = RawPart { geometry: &geometry, raw: &self.raw };
        let (encoding, stored) = encoder.encode_standalone(part, self.is_string, self.zstd_dictionary.as_ref())?;
        let mut stored = stored.to_vec();
        if encoding.is_in_blocks() {
            seal(self.before, &mut stored);
        }
        let in_file = self.is_in_file(encoding, &stored);
        Ok((encoding, stored, in_file))
    }

    /// Returns the excess cost of a profile's choice over the cheapest of all combinations that the
    /// profile allows, as a fraction.
    pub(crate) fn regret(&self, profile: Profile) -> Result<f64> {
        let cost = |search| {
            let (encoding, stored, _) = self.encode_as(profile, search)?;
            // the cast need not be exact, because the result is rounded anyway
            Ok(profile.weight(encoding.name()).saturating_mul(u64_of(stored.len())).max(1) as f64)
        };
        Ok(cost(Search::new())? / cost(Search::new().exhaustive())? - 1.0)
    }

    fn choice(&self, profile: Profile, trials: &[Trial]) -> Result<Choice> {
        let (encoding, stored, in_file) = self.encode_as(profile, Search::new())?;
        Ok(Choice {
            profile,
            encoding: encoding_name(encoding.field()),
            stored_bytes: u64_of(stored.len()),
            reason: self.reason(profile, encoding, &stored, trials),
            in_file,
        })
    }

    /// Returns the reason why [`ChunkEncoder`] chose `chosen`, in words.
    fn reason(&self, profile: Profile, chosen: Encoding, stored: &[u8], trials: &[Trial]) -> String {
        let candidates = profile.candidates(self.is_string, self.in_blocks(profile));
        if self.raw.is_empty() {
            return "the values are empty".to_owned();
        }
        if candidates.iter().next().is_none() {
            return "the profile stores all values raw".to_owned();
        }
        let is_candidate = |name: &str| candidates.iter().any(|candidate| candidate.encoder.name() == base_name(name));
        let in_blocks = self.in_blocks(profile);
        let has_one_form = self.is_string || chosen.is_constant();
        if in_blocks && !chosen.is_in_blocks() && chosen.field() != RAW.field() && !has_one_form {
            return "several blocks would take over 5 % more space".to_owned();
        }
        let is_tried = |name: &str| {
            let matches_form = (base_name(name) != name) == in_blocks || self.is_string || name == Constant::NAME;
            matches_form && is_candidate(name)
        };
        let tried = trials.iter().filter(|trial| is_tried(&trial.encoding) && trial.profiles.contains(&profile));
        let smallest = tried.filter_map(|trial| Some((trial.stored_bytes?, &trial.encoding))).min();
        let Some((min_bytes, name)) = smallest else {
            return "no encoding of the profile can express the values".to_owned();
        };
        if !usize::try_from(min_bytes).is_ok_and(|min_bytes| saves_enough(min_bytes, self.raw.len())) {
            return format!("no encoding saves 5 %, so the values are stored raw; the smallest is {name}");
        }
        if u64_of(stored.len()) <= min_bytes {
            return "the smallest encoding of the profile".to_owned();
        }
        let (weight, chosen_weight) = (weight(candidates, name), weight(candidates, chosen.name()));
        if weight > chosen_weight
            && min_bytes.saturating_mul(weight) >= u64_of(stored.len()).saturating_mul(chosen_weight)
        {
            let percent = 100 - 100 * chosen_weight / weight.max(1); // `chosen_weight` is less than `weight`
            return format!("{name} is smaller, but decodes more slowly and would have to be {percent} % smaller");
        }
        format!("{name} is smaller, but its estimate from a sample was larger")
    }
}

/// An encoder that a profile tries.
struct Attempt {
    profile: Profile,
    /// Whether the profile tries the encoder for columns of this type.
    is_for_type: bool,
    encoder: &'static dyn Encoder,
    in_blocks: bool,
}

/// Returns the profiles that this build can write.
fn available_profiles() -> impl Iterator<Item = Profile> {
    Profile::ALL.into_iter().filter(|profile| profile.check_built().is_ok())
}

/// Returns the weight of an encoding among the candidates of a profile.
fn weight(candidates: &[WeightedEncoder], name: &str) -> u64 {
    let found = candidates.iter().find(|candidate| candidate.encoder.name() == base_name(name));
    found.map_or(100, |candidate| candidate.weight)
}

/// Adds a trial. If another trial has the same encoding and size, adds only the profile to it.
fn add(trials: &mut Vec<Trial>, trial: Trial) {
    let same = |other: &&mut Trial| (&other.encoding, other.stored_bytes) == (&trial.encoding, trial.stored_bytes);
    match trials.iter_mut().find(same) {
        Some(other) => {
            other.profiles.extend(trial.profiles); // each profile has an encoding at most once
            other.in_file |= trial.in_file;
        }
        None => trials.push(trial),
    }
}
