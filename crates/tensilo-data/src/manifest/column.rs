//! Columns and layouts (chapter 4 of `MANIFEST.md`).
//!
//! Each column has an id. The id stays the same if the column is renamed, and is never reused. A
//! layout maps the column names of a file to these ids. So renaming or dropping a column changes no
//! file, and files with the same columns share a layout.

use super::json::{Number, present, unique};
use super::{RuleViolation, ensure};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use tensilo::nested::ListLevel;
use tensilo::{CastSource, CastSpec, ColumnSchema, DType, Extent, Metadata, Schema, Shape};

/// The JSON of a column.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ColumnJson {
    id: Number,
    name: String,
    dtype: String,
    shape: Vec<Option<Number>>,
    nullable: bool,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    nullable_levels: Option<Vec<bool>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    cast: Option<String>,
    #[serde(deserialize_with = "unique")]
    metadata: Metadata,
}

/// A column of a dataset: an id that survives renaming, and a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DatasetColumn {
    pub id: u64,
    pub schema: ColumnSchema,
}

impl ColumnJson {
    pub(super) fn of(column: &DatasetColumn) -> Self {
        let schema = &column.schema;
        let extent = |extent: &Extent| match extent {
            Extent::Fixed(extent) => Some(Number((*extent).into())),
            Extent::Varying => None,
        };
        let levels = || schema.levels.iter().map(|level| level.nullable).collect();
        Self {
            id: Number(column.id),
            name: schema.name.clone(),
            dtype: schema.dtype.name().to_owned(),
            shape: schema.shape.extents().iter().map(extent).collect(),
            nullable: schema.nullable,
            nullable_levels: (!schema.levels.is_empty()).then(levels),
            cast: schema.cast.map(|cast| cast.source.name().to_owned()),
            metadata: schema.metadata.clone(),
        }
    }

    fn parse(self) -> Result<DatasetColumn, RuleViolation> {
        let violation = |what: String| RuleViolation::new("M-4.1", format!("column {:?}: {what}", self.name));
        let dtype = |name: &str| name.parse::<DType>().map_err(|_| violation(format!("unknown dtype {name:?}")));
        let source =
            |name: &str| CastSource::of_name(name).ok_or_else(|| violation(format!("unknown cast from {name:?}")));
        let extent = |extent: &Option<Number>| match extent {
            None => Ok(Extent::Varying),
            Some(Number(extent)) => u32::try_from(*extent)
                .ok()
                .filter(|&extent| extent < u32::MAX)
                .map(Extent::Fixed)
                .ok_or_else(|| violation(format!("extent {extent} is too large"))),
        };
        if self.nullable_levels.as_ref().is_some_and(Vec::is_empty) {
            return Err(violation("nullable_levels is empty".to_owned()));
        }
        let levels = self.nullable_levels.iter().flatten().map(|&nullable| ListLevel { nullable });
        let schema = ColumnSchema {
            dtype: dtype(&self.dtype)?,
            shape: Shape::new(self.shape.iter().map(extent).collect::<Result<Vec<_>, _>>()?),
            nullable: self.nullable,
            levels: levels.collect(),
            cast: self.cast.as_deref().map(source).transpose()?.map(|source| CastSpec { source }),
            name: self.name,
            metadata: self.metadata,
        };
        Ok(DatasetColumn { id: self.id.0, schema })
    }
}

/// Parses all columns, and checks M-4.1 for them and M-3.4 for the metadata of the dataset.
pub(super) fn parse(
    columns: Vec<ColumnJson>,
    column_ids: u64,
    metadata: &Metadata,
) -> Result<Vec<DatasetColumn>, RuleViolation> {
    let columns: Vec<_> = columns.into_iter().map(ColumnJson::parse).collect::<Result<_, _>>()?;
    let mut ids = BTreeSet::new();
    for column in &columns {
        let name = &column.schema.name;
        ensure(column.id < column_ids, "M-4.1", || {
            format!("column {name:?} has id {}, expected an id below {column_ids}", column.id)
        })?;
        ensure(ids.insert(column.id), "M-4.1", || {
            format!("column {name:?} has id {}, which another column already has", column.id)
        })?;
    }
    Schema { columns: Vec::new(), metadata: metadata.clone() }
        .check()
        .map_err(|error| RuleViolation::new("M-3.4", error.to_string()))?;
    Schema::new(columns.iter().map(|column| column.schema.clone()))
        .check()
        .map_err(|error| RuleViolation::new("M-4.1", error.to_string()))?;
    Ok(columns)
}

/// The columns of a file: maps each name in the file to the id in the dataset.
pub(crate) type Layout = BTreeMap<String, u64>;

/// The JSON of a layout.
#[derive(Deserialize, Serialize)]
#[serde(transparent)]
pub(super) struct LayoutJson(#[serde(deserialize_with = "unique")] BTreeMap<String, Number>);

impl LayoutJson {
    pub(super) fn of(layout: &Layout) -> Self {
        Self(layout.iter().map(|(name, &id)| (name.clone(), Number(id))).collect())
    }

    /// Parses a layout (M-4.2).
    pub(super) fn parse(self, column_ids: u64) -> Result<Layout, RuleViolation> {
        let mut ids = BTreeSet::new();
        for (name, &Number(id)) in &self.0 {
            ensure(id < column_ids, "M-4.2", || {
                format!("a layout maps {name:?} to id {id}, expected an id below {column_ids}")
            })?;
            ensure(ids.insert(id), "M-4.2", || format!("a layout lists column id {id} twice"))?;
        }
        Ok(self.0.into_iter().map(|(name, id)| (name, id.0)).collect())
    }
}
