//! Explains the values of a chunk: their sections, and the result of every other encoding. Nothing
//! is read by it.

use super::anatomy::Anatomy;
use super::chunk_decoder::ChunkDecoder;
use super::chunk_encoder::{ChunkEncoder, saves_enough};
use super::chunk_parts::StoredChunk;
use super::encoding::{Codec, Encoder, PartSpec};
use super::geometry::Geometry;
use super::profile::{Candidates, Profile};
use super::registry::{RAW, codec};
use super::scratch::EncodeScratch;
use super::zstandard::EncodingDictionary;
use crate::le::{swap_to_native, u64_of};
use crate::{Error, Result, memory};
use std::sync::Arc;

/// The result of an encoding for the values of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trial {
    /// The name of the encoding.
    pub encoding: String,
    /// The profiles that choose from it, with settings that give this length. Empty if none does
    /// for columns of this type.
    pub profiles: Vec<Profile>,
    /// The length of the values in bytes; `None` if the encoding cannot express them.
    pub stored_bytes: Option<u64>,
    /// Whether the file has exactly these bytes, with the settings of one of these profiles.
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
    /// The length of the values in bytes.
    pub stored_bytes: u64,
    /// The reason, in words.
    pub reason: String,
    /// Whether the file has exactly these bytes.
    pub in_file: bool,
}

/// The values of a chunk: stored and decoded.
pub(crate) struct Values<'a> {
    geometry: Geometry,
    is_string: bool,
    /// The dictionary that the chunk needs.
    dictionary: Option<Arc<EncodingDictionary>>,
    codec: &'static dyn Codec,
    pub stored: &'a [u8],
    /// The decoded bytes, in the byte order of the file.
    pub raw: Vec<u8>,
}

impl<'a> Values<'a> {
    /// Decodes the values of a chunk.
    pub(crate) fn of_chunk(chunk: &StoredChunk<'a>) -> Result<Self> {
        let StoredChunk { layout, tables, body, .. } = *chunk;
        let mut decoder = ChunkDecoder::new();
        decoder.load(chunk)?;
        let values = decoder.content(body).values;
        let mut raw = memory::with_capacity(values.len())?;
        raw.extend_from_slice(values);
        swap_to_native(layout.element_bytes, &mut raw); // back: the same operation
        let part = chunk.parts()?.values;
        let length = usize::try_from(part.stored_bytes).ok();
        let start = length.and_then(|length| body.len().checked_sub(length)); // values come last
        let stored = start.and_then(|start| body.get(start..));
        let stored = stored.ok_or_else(|| Error::corrupt("R-4.4", "the values reach outside the chunk"))?;
        let codec = codec(part.encoding)?;
        let table = if raw.is_empty() { None } else { codec.table(stored)? };
        let dictionary = table.map(|table| EncodingDictionary::new(table, tables.dictionary(table)?)).transpose()?;
        Ok(Self {
            geometry: Geometry::of_values(layout),
            is_string: layout.dtype.is_string(),
            dictionary: dictionary.map(Arc::new),
            codec,
            stored,
            raw,
        })
    }

    /// Returns the number of elements; of text and bytes, that of bytes.
    pub(crate) fn element_count(&self) -> usize {
        self.raw.len().checked_div(self.geometry.element_bytes).unwrap_or(0)
    }

    /// Describes the sections of the stored bytes.
    pub(crate) fn anatomy(&self) -> Result<Anatomy> {
        let spec = PartSpec::new(self.geometry.element_bytes, self.raw.len());
        self.codec.anatomy(spec, self.stored)
    }

    fn is_in_file(&self, codec: &dyn Codec, stored: &[u8]) -> bool {
        self.codec.id() == codec.id() && self.stored == stored
    }

    /// Encodes the values with each encoding, and with the settings of each profile where these
    /// matter. The smallest comes first.
    pub(crate) fn trials(&self) -> Result<Vec<Trial>> {
        let mut trials = Vec::new();
        let raw = |profile| self.trial(profile, RAW, Some(&self.raw));
        Profile::ALL.into_iter().for_each(|profile| add(&mut trials, raw(Some(profile))));
        let mut stored = Vec::new();
        let mut scratch = EncodeScratch { dictionary: self.dictionary.clone(), ..EncodeScratch::default() };
        for (profile, encoder) in self.encoders() {
            let can = encoder.encode(&self.geometry, &self.raw, &mut stored, &mut scratch)?;
            add(&mut trials, self.trial(profile, encoder, can.then_some(&stored)));
        }
        trials.sort_by_key(|trial| trial.stored_bytes.unwrap_or(u64::MAX));
        Ok(trials)
    }

    fn trial(&self, profile: Option<Profile>, codec: &dyn Codec, stored: Option<&Vec<u8>>) -> Trial {
        Trial {
            encoding: codec.name().to_owned(),
            profiles: profile.into_iter().collect(),
            stored_bytes: stored.map(|stored| u64_of(stored.len())),
            in_file: stored.is_some_and(|stored| self.is_in_file(codec, stored)),
        }
    }

    /// Returns the encoders of all profiles, those for columns of other types last. Returns none
    /// for empty values.
    fn encoders(&self) -> impl Iterator<Item = (Option<Profile>, &'static dyn Encoder)> {
        let of = |is_string| {
            let candidates =
                move |profile: Profile| profile.candidates(is_string).all().map(move |c| (profile, c.encoder));
            Profile::ALL.into_iter().flat_map(candidates)
        };
        let own = of(self.is_string).map(|(profile, encoder)| (Some(profile), encoder));
        let others = of(!self.is_string).map(|(_, encoder)| (None, encoder));
        let any = !self.raw.is_empty();
        own.chain(others).filter(move |(_, encoder)| any && encoder.check_built().is_ok())
    }

    /// Returns the choice of each profile that this build can write.
    pub(crate) fn choices(&self, trials: &[Trial]) -> Result<Vec<Choice>> {
        let built = Profile::ALL.into_iter().filter(|profile| profile.check_built().is_ok());
        built.map(|profile| self.choice(profile, trials)).collect()
    }

    fn choice(&self, profile: Profile, trials: &[Trial]) -> Result<Choice> {
        let mut encoder = ChunkEncoder::new(profile, false);
        let (codec, stored) =
            encoder.encode_alone(&self.geometry, self.is_string, self.dictionary.as_ref(), &self.raw)?;
        Ok(Choice {
            profile,
            encoding: codec.name().to_owned(),
            stored_bytes: u64_of(stored.len()),
            reason: self.reason(profile, codec, stored, trials),
            in_file: self.is_in_file(codec, stored),
        })
    }

    /// Returns the reason why [`ChunkEncoder`] chose `chosen`, in words.
    fn reason(&self, profile: Profile, chosen: &dyn Codec, stored: &[u8], trials: &[Trial]) -> String {
        let candidates = profile.candidates(self.is_string);
        if self.raw.is_empty() {
            return "the values are empty".to_owned();
        }
        if candidates.all().next().is_none() {
            return "the profile stores all values raw".to_owned();
        }
        let tried = trials.iter().filter(|trial| trial.encoding != RAW.name() && trial.profiles.contains(&profile));
        let smallest = tried.filter_map(|trial| Some((trial.stored_bytes?, &trial.encoding))).min();
        let Some((least, name)) = smallest else {
            return "no encoding of the profile can express the values".to_owned();
        };
        if !usize::try_from(least).is_ok_and(|least| saves_enough(least, self.raw.len())) {
            return format!("no encoding saves 5 %, so the values stay raw; the smallest is {name}");
        }
        if u64_of(stored.len()) <= least {
            return "the smallest encoding of the profile".to_owned();
        }
        let (weight, due) = (weight(candidates, name), weight(candidates, chosen.name()));
        if weight > due && least.saturating_mul(weight) >= u64_of(stored.len()).saturating_mul(due) {
            let percent = 100 - 100 * due / weight.max(1); // `due` is less than `weight`
            return format!("{name} is smaller, but decodes more slowly and would have to save {percent} %");
        }
        format!("{name} is smaller, but the sampled windows predicted otherwise")
    }
}

/// Returns the weight of an encoding among the candidates of a profile.
fn weight(candidates: Candidates, name: &str) -> u64 {
    let found = candidates.all().find(|candidate| candidate.encoder.name() == name);
    found.map_or(100, |candidate| candidate.weight)
}

/// Adds a trial. If another trial has the same encoding and length, adds only the profile.
fn add(trials: &mut Vec<Trial>, trial: Trial) {
    let same = |other: &&mut Trial| (&other.encoding, other.stored_bytes) == (&trial.encoding, trial.stored_bytes);
    match trials.iter_mut().find(same) {
        Some(other) => {
            other.profiles.extend(trial.profiles); // a profile has an encoding once
            other.in_file |= trial.in_file;
        }
        None => trials.push(trial),
    }
}
