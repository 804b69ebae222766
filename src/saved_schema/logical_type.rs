//! Logical types of Parquet that are no types of Arrow, as entries of a field's metadata.
//!
//! UUID, JSON and VARIANT are extension types of Arrow. The others have a text of their own, which
//! an export to Parquet turns back: `ENUM`, `BSON`, `GEOMETRY` and `GEOGRAPHY`, of which the last
//! two are followed by a JSON array of their parameters.

use arrow_schema::Field;
use arrow_schema::extension::EXTENSION_TYPE_NAME_KEY;
use parquet::basic::{EdgeInterpolationAlgorithm as Edges, LogicalType};
use serde_json::{Value, json};

/// The metadata key of such a text.
pub(crate) const LOGICAL_TYPE: &str = "PARQUET:logical_type";
/// The extension type of the groups of two binary columns, metadata and value.
pub(crate) const VARIANT: &str = "arrow.parquet.variant";
const JSON: &str = "arrow.json";
const UUID: &str = "arrow.uuid";
const EDGES: [(Edges, &str); 5] = [
    (Edges::SPHERICAL, "SPHERICAL"),
    (Edges::VINCENTY, "VINCENTY"),
    (Edges::THOMAS, "THOMAS"),
    (Edges::ANDOYER, "ANDOYER"),
    (Edges::KARNEY, "KARNEY"),
];

/// Returns the entry by which a field of Arrow has a logical type. `None`: its Arrow type tells it.
pub(crate) fn entry(logical: &LogicalType) -> Option<(&'static str, String)> {
    let name = |name: &str| Some((EXTENSION_TYPE_NAME_KEY, name.to_owned()));
    let text = |text: String| Some((LOGICAL_TYPE, text));
    match logical {
        LogicalType::Json => name(JSON),
        LogicalType::Uuid => name(UUID),
        LogicalType::Variant(_) => name(VARIANT),
        LogicalType::Enum => text("ENUM".to_owned()),
        LogicalType::Bson => text("BSON".to_owned()),
        LogicalType::Geometry(geometry) => text(format!("GEOMETRY {}", json!([geometry.crs]))),
        LogicalType::Geography(geography) => {
            let known = |edges: Edges| EDGES.iter().find(|(known, _)| *known == edges).map(|(_, name)| *name);
            text(format!("GEOGRAPHY {}", json!([geography.crs, geography.algorithm.and_then(known)])))
        }
        _ => None,
    }
}

/// Returns the logical type of a field that is no struct, if [`entry`] has made its metadata.
pub(crate) fn of_field(field: &Field) -> Option<LogicalType> {
    match field.extension_type_name() {
        Some(JSON) => return Some(LogicalType::Json),
        Some(UUID) => return Some(LogicalType::Uuid),
        _ => {}
    }
    let text = field.metadata().get(LOGICAL_TYPE)?;
    let (name, parameters) = text.split_once(' ').unwrap_or((text, "[]"));
    let parameters: Vec<Value> = serde_json::from_str(parameters).ok()?;
    let parameter = |i: usize| parameters.get(i).and_then(Value::as_str);
    let crs = parameter(0).map(str::to_owned);
    match name {
        "ENUM" => Some(LogicalType::Enum),
        "BSON" => Some(LogicalType::Bson),
        "GEOMETRY" => Some(LogicalType::geometry(crs)),
        "GEOGRAPHY" => {
            let edges = EDGES.iter().find(|(_, name)| parameter(1) == Some(name)).map(|(edges, _)| *edges);
            Some(LogicalType::geography(crs, edges))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_schema::DataType;

    #[test]
    fn entries_are_logical_types_again() {
        let crs = || Some("srid:5070 (a, \"b\")".to_owned());
        for logical in [
            LogicalType::Json,
            LogicalType::Uuid,
            LogicalType::Enum,
            LogicalType::Bson,
            LogicalType::geometry(None),
            LogicalType::geometry(crs()),
            LogicalType::geography(None, None),
            LogicalType::geography(crs(), Some(Edges::KARNEY)),
        ] {
            let field = Field::new("x", DataType::Binary, true).with_metadata([entry(&logical).unwrap()]);
            assert_eq!(of_field(&field), Some(logical));
        }
        assert_eq!(entry(&LogicalType::String), None);
        assert_eq!(of_field(&Field::new("x", DataType::Binary, true).with_metadata([(LOGICAL_TYPE, "other")])), None);
    }
}
