//! The messages of `tensorflow/core/example/example.proto`.

use std::collections::BTreeMap;

/// Named features.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Example {
    #[prost(message, optional, tag = "1")]
    pub features: Option<Features>,
    /// Set in a `SequenceExample`, which has lists of features under this number.
    #[prost(bytes = "vec", optional, tag = "2")]
    pub feature_lists: Option<Vec<u8>>,
}

/// See [`Example`].
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Features {
    #[prost(btree_map = "string, message", tag = "1")]
    pub feature: BTreeMap<String, Feature>,
}

/// A feature: values of one type.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Feature {
    #[prost(oneof = "FeatureValues", tags = "1, 2, 3")]
    pub values: Option<FeatureValues>,
}

/// The values of a feature.
#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum FeatureValues {
    #[prost(message, tag = "1")]
    Bytes(BytesList),
    #[prost(message, tag = "2")]
    Floats(FloatList),
    #[prost(message, tag = "3")]
    Integers(Int64List),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct BytesList {
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub value: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct FloatList {
    #[prost(float, repeated, tag = "1")]
    pub value: Vec<f32>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Int64List {
    #[prost(int64, repeated, tag = "1")]
    pub value: Vec<i64>,
}

impl FeatureValues {
    /// Returns the number of values.
    pub(super) fn count(&self) -> usize {
        match self {
            Self::Bytes(list) => list.value.len(),
            Self::Floats(list) => list.value.len(),
            Self::Integers(list) => list.value.len(),
        }
    }

    /// Returns the name that TensorFlow has for the type.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Bytes(_) => "bytes_list",
            Self::Floats(_) => "float_list",
            Self::Integers(_) => "int64_list",
        }
    }
}
