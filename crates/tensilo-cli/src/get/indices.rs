//! The option `--indices`: `5`, `1,2,9`, `10..20`, and mixtures of them.

use crate::failure::{Failure, Outcome};
use std::ops::Range;
use std::str::FromStr;

const FORMS: &str = "write sample numbers and ranges, counted from 0, such as 5 or 1,2,9 or 10..20 or 0,100..";

/// The value of the option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Indices(Vec<Term>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Term {
    One(u64),
    Range(Option<u64>, Option<u64>),
}

impl FromStr for Indices {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.split(',').map(term).collect::<Result<_, _>>().map(Self)
    }
}

fn term(text: &str) -> Result<Term, String> {
    let text = text.trim();
    let Some((start, end)) = text.split_once("..") else { return Ok(Term::One(number(text)?)) };
    let bound = |text: &str| if text.is_empty() { Ok(None) } else { number(text).map(Some) };
    let (start, end) = (bound(start)?, bound(end)?);
    match (start, end) {
        (Some(start), Some(end)) if start > end => Err(format!("the range {start}..{end} ends before it starts")),
        _ => Ok(Term::Range(start, end)),
    }
}

fn number(text: &str) -> Result<u64, String> {
    // `parse` alone would accept a sign
    let digits = Some(text).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    digits.and_then(|digits| digits.parse().ok()).ok_or_else(|| FORMS.to_owned())
}

/// Existing samples, in the order of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Selection {
    ranges: Vec<Range<u64>>,
    single: bool,
}

impl Indices {
    /// Returns the samples out of `sample_count`. Fails if one of them does not exist.
    pub(crate) fn resolve(&self, sample_count: u64) -> Outcome<Selection> {
        let ranges = self.0.iter().map(|term| term.resolve(sample_count)).collect::<Outcome<_>>()?;
        Ok(Selection { ranges, single: matches!(self.0.as_slice(), [Term::One(_)]) })
    }
}

impl Term {
    fn resolve(self, sample_count: u64) -> Outcome<Range<u64>> {
        let range = match self {
            Self::One(index) if index < sample_count => index..index.saturating_add(1),
            Self::One(index) => return Err(no_sample(index, sample_count)),
            Self::Range(start, end) => start.unwrap_or(0)..end.unwrap_or(sample_count),
        };
        match range.end.max(range.start) {
            end if end <= sample_count => Ok(range),
            _ => Err(no_sample(range.start.max(sample_count), sample_count)),
        }
    }
}

fn no_sample(index: u64, sample_count: u64) -> Failure {
    Failure::Usage(format!("there is no sample {index}: there are {sample_count}, counted from 0"))
}

impl Selection {
    /// Iterates over the samples.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> {
        self.ranges.iter().flat_map(|range| range.clone())
    }

    /// Returns the number of samples.
    pub(crate) fn count(&self) -> u64 {
        let lengths = self.ranges.iter().map(|range| range.end.saturating_sub(range.start));
        lengths.fold(0, u64::saturating_add)
    }

    /// Returns whether the request is one bare index: the output is then the sample, not a list.
    pub(crate) fn is_single(&self) -> bool {
        self.single
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(text: &str) -> Vec<u64> {
        text.parse::<Indices>().unwrap().resolve(10).unwrap().iter().collect()
    }

    #[test]
    fn numbers_and_ranges_mix_and_keep_their_order() {
        assert_eq!(samples("5"), [5]);
        assert_eq!(samples("1,2,9"), [1, 2, 9]);
        assert_eq!(samples("9,1, 1,2..5,3"), [9, 1, 1, 2, 3, 4, 3]);
        assert_eq!(samples("8..,..2"), [8, 9, 0, 1]);
        assert_eq!(samples("..").len(), 10);
        assert!(samples("4..4").is_empty());
        assert!(samples("10..10").is_empty());
    }

    #[test]
    fn only_one_bare_number_is_single() {
        let single = |text: &str| text.parse::<Indices>().unwrap().resolve(10).unwrap().is_single();
        assert!(single("5"));
        assert!(!single("5..6") && !single("5,5") && !single("5..5"));
    }

    #[test]
    fn the_count_needs_no_walk() {
        let selection = "0..10,3,9..".parse::<Indices>().unwrap().resolve(10).unwrap();
        assert_eq!(selection.count(), 12);
    }

    #[test]
    fn samples_that_are_not_there_are_refused() {
        for text in ["10", "0,10", "5..11", "11..", "18446744073709551615"] {
            let failure = text.parse::<Indices>().unwrap().resolve(10).unwrap_err();
            assert!(matches!(&failure, Failure::Usage(message) if message.contains("there are 10")), "{text}");
        }
        assert!("0".parse::<Indices>().unwrap().resolve(0).is_err());
        assert!("..".parse::<Indices>().unwrap().resolve(0).is_ok());
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "a", "1,", "+1", "-1", "1...3", "1..2..3", "5..3", "1;2", "18446744073709551616", "1.5"] {
            assert!(text.parse::<Indices>().is_err(), "{text}");
        }
    }
}
