//! The time zones that an embedded Arrow schema states.
//!
//! Parquet knows only whether a timestamp is in UTC, so its writers leave the zone in the Arrow
//! schema. The decoder believes that schema only if it has the unit of the column. The units differ
//! if a writer stored another unit: Parquet has no seconds, and its version 2.4 no nanoseconds.

use super::leaves::{plain_leaf, with_leaf_types, with_leaves};
use crate::import::arrow::types::decoded;
use ::parquet::arrow::arrow_reader::ArrowReaderMetadata;
use ::parquet::arrow::parquet_to_arrow_schema;
use ::parquet::basic::{ConvertedType, LogicalType, Type as Physical};
use ::parquet::errors::Result;
use ::parquet::schema::types::Type;
use arrow_schema::{DataType, TimeUnit};
use std::sync::Arc;

/// The zones of a file, by the numbers of its leaves.
#[derive(Default)]
pub(super) struct Zones(Vec<Option<Arc<str>>>);

impl Zones {
    /// Reads the zones of the embedded Arrow schema. Where the column is a plain integer, the
    /// decoder believes that schema with any unit.
    pub(super) fn of(metadata: &ArrowReaderMetadata) -> Result<Self> {
        if !metadata.parquet_schema().columns().iter().any(|column| is_in_utc(column.self_type())) {
            return Ok(Self::default());
        }
        let plain = |leaf: &Type| is_in_utc(leaf).then(|| plain_leaf(leaf, Physical::INT64, 0));
        let plain = with_leaf_types(metadata.parquet_schema(), plain)?;
        let schema = parquet_to_arrow_schema(&plain, metadata.metadata().file_metadata().key_value_metadata())?;
        let mut zones = Vec::new();
        with_leaves(schema.fields(), |_, field| {
            zones.push(match decoded(field.data_type()) {
                DataType::Timestamp(_, zone) => zone.clone(),
                _ => None,
            });
            Arc::clone(field)
        });
        Ok(Self(zones))
    }

    /// Returns the type of a leaf that the decoder reads as a timestamp of this unit and zone, if
    /// the embedded schema states another zone.
    pub(super) fn stated(&self, leaf: usize, unit: TimeUnit, zone: Option<&str>) -> Option<DataType> {
        let stated = self.0.get(leaf)?.as_ref()?;
        (zone == Some(UTC) && stated.as_ref() != UTC).then(|| DataType::Timestamp(unit, Some(Arc::clone(stated))))
    }
}

/// The zone that the decoder gives to timestamps whose zone it does not know.
const UTC: &str = "UTC";

fn is_in_utc(leaf: &Type) -> bool {
    if !leaf.is_primitive() || leaf.get_physical_type() != Physical::INT64 {
        return false;
    }
    let info = leaf.get_basic_info();
    match info.logical_type_ref() {
        Some(LogicalType::Timestamp(timestamp)) => timestamp.is_adjusted_to_u_t_c,
        Some(_) => false,
        None => {
            matches!(info.converted_type(), ConvertedType::TIMESTAMP_MILLIS | ConvertedType::TIMESTAMP_MICROS)
        }
    }
}
