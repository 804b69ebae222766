//! The JSON document of `tensilo inspect`.

use super::args::InspectArgs;
use super::cold_read::SampleCost;
use super::explain;
use crate::failure::{Failure, Outcome};
use serde_json::{Map, Value, json};
use tensilo::facts::CastFacts;
use tensilo::{Column, ColumnSchema, Extent, Reader};

/// Returns the JSON document of schema `tensilo.inspect/1`.
pub(crate) fn document(args: &InspectArgs, reader: &Reader) -> Outcome<Value> {
    let mut columns = Vec::new();
    for column in reader.columns() {
        let mut object = column_object(&column);
        if args.explain {
            let explanation = explain::explain(args, &column).map_err(|error| Failure::about(&args.file, error))?;
            object.insert("explanation".to_owned(), explanation.as_ref().map_or(Value::Null, explain::object));
        }
        columns.push(Value::Object(object));
    }
    Ok(json!({
        "schema": "tensilo.inspect/1",
        "file_bytes": reader.file_bytes(),
        "sample_count": reader.sample_count(),
        "file_id": reader.file_id().to_string(),
        "content_id": reader.content_id().to_string(),
        "alignment": reader.alignment(),
        "commit_count": reader.commit_count(),
        "finished": reader.is_finished(),
        "tail_bytes": reader.tail_bytes(),
        "metadata": reader.schema().metadata,
        "columns": columns,
    }))
}

fn column_object(column: &Column) -> Map<String, Value> {
    let (schema, facts) = (column.schema(), column.facts());
    let cost = SampleCost::of(column);
    let shape: Vec<Option<u32>> = schema.shape.extents().iter().map(extent).collect();
    let encodings: Map<String, Value> =
        facts.encodings.iter().map(|(name, chunks)| (name.clone(), json!(chunks))).collect();
    let members = [
        ("name", json!(schema.name)),
        ("dtype", json!(schema.dtype.to_string())),
        ("shape", json!(shape)),
        ("nullable", json!(schema.nullable)),
        ("nullable_levels", json!(schema.levels.iter().map(|level| level.nullable).collect::<Vec<_>>())),
        ("chunk_count", json!(facts.chunk_count)),
        ("raw_bytes", json!(facts.raw_bytes)),
        ("stored_bytes", json!(facts.stored_bytes)),
        ("encodings", Value::Object(encodings)),
        ("cast", cast_object(schema, facts.cast)),
        ("null_count", json!(facts.null_count)),
        ("block_bytes", json!(cost.block_bytes)),
        ("front_bytes", json!(cost.front_bytes)),
        ("cold_read_bytes", json!(cost.cold_read_bytes)),
        ("read_amplification", json!(cost.read_amplification)),
        ("metadata", json!(schema.metadata)),
    ];
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn extent(extent: &Extent) -> Option<u32> {
    match extent {
        Extent::Fixed(extent) => Some(*extent),
        Extent::Varying => None,
    }
}

pub(super) fn cast_object(schema: &ColumnSchema, facts: Option<CastFacts>) -> Value {
    let (Some(spec), Some(cast)) = (schema.cast, facts) else { return Value::Null };
    json!({
        "source": spec.source.name(),
        "rounding": "nearest-even",
        "max_abs_error": cast.max_abs_error,
        "max_rel_error": cast.max_rel_error,
        "to_infinite": cast.to_infinite,
        "to_subnormal": cast.to_subnormal,
    })
}
