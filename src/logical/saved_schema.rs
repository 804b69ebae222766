//! The Arrow schema of a source, saved in the metadata of the file.
//!
//! Columns do not record everything about the fields that they came from. For example, they do not
//! record large strings, dictionaries, list types, maps, or the names of items. An export restores
//! these from the saved schema. The saved schema has the same form as in Parquet files: the value
//! of `ARROW:schema` is an encapsulated IPC message with the schema (`FF FF FF FF`, the length as
//! u32, a flatbuffer), in base64. Any Arrow library can therefore read it, for example with
//! `pyarrow.ipc.read_schema`. The metadata of the schema itself is left out, because it is stored
//! as the metadata of the file. The importer adds two entries to the metadata of fields:
//! `tensilo.dictionary` and `tensilo.name`.
//!
//! The value can come from a hostile file. Tables and strings of a flatbuffer can be shared, so a
//! short value could describe a schema that fills the memory. The verifier therefore limits how
//! many bytes it visits, in proportion to the length of the value. The importer of Arrow files does
//! the same. A value that cannot be read is ignored. Fields that no source can have, such as lists
//! of a negative length, are left out both when writing and when reading, so every written value
//! can be read.
//!
//! Without the feature `arrow`, the value is opaque: it is kept if it still describes the columns,
//! and removed otherwise. An export ignores saved fields that do not fit their columns.

#[cfg(feature = "arrow")]
pub(crate) use fields::{
    CONTINUATION, columns, encoded, fields, forget_order, has_dictionary, join, message_in, rename, verifier,
    without_values,
};
#[cfg(feature = "parquet")]
pub(crate) use fields::{inside, without_entry};
#[cfg(feature = "parquet")]
pub(crate) use logical_type::{VARIANT, entry, of_field as logical_type};
#[cfg(not(feature = "arrow"))]
pub(crate) use opaque::{forget_order, join, rename};

/// The metadata key, the same as in Parquet files.
pub(crate) const KEY: &str = "ARROW:schema";

/// The maximum size, in bytes, of a metadata value of a field in the schema. Longer values are
/// stored only in the metadata of columns.
#[cfg(feature = "arrow")]
pub(crate) const METADATA_BYTES: usize = 64 << 10;

/// The key of the values of a dictionary, in the metadata of its field in the schema. The value is
/// a JSON array.
#[cfg(feature = "arrow")]
pub(crate) const DICTIONARY: &str = "tensilo.dictionary";

/// The key of the name that a field had in the source, in the metadata of the field in the schema.
/// It is present if another field has the same name.
#[cfg(feature = "arrow")]
pub(crate) const NAME: &str = "tensilo.name";

/// The key of a field's logical type in Parquet, in the metadata of the field. It is present if
/// Arrow does not have this type.
#[cfg(feature = "arrow")]
pub(crate) const LOGICAL_TYPE: &str = "PARQUET:logical_type";

/// The schema as Arrow fields.
#[cfg(feature = "arrow")]
mod fields {
    use super::{DICTIONARY, KEY, NAME};
    use crate::logical::arrow_type::{VARIABLE_SHAPE_TENSOR, members, with_members};
    use crate::{Metadata, limits};
    use arrow_ipc::convert::try_fb_to_schema;
    use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteOptions};
    use arrow_ipc::{Field as EncodedField, Message, Type, root_as_message_with_opts};
    use arrow_schema::{DataType, Field, FieldRef, Fields, Schema};
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use flatbuffers::{InvalidFlatbuffer, VerifierOptions};
    use std::collections::HashMap;
    use std::sync::Arc;

    /// The marker before the length of an encapsulated message.
    pub(crate) const CONTINUATION: [u8; 4] = [0xFF; 4];
    /// The maximum depth of tables, the same as in Arrow's readers.
    const TABLES: usize = 64;
    /// The maximum depth of fields. Four more levels of tables need room: the message and the
    /// schema around the fields, and a dictionary and its index type inside them.
    const DEPTH: usize = TABLES - 4;
    /// The maximum number of bytes that a verifier visits per byte of a message. For a real schema,
    /// the number is about two, because only the vtables of tables are shared.
    const VISITS: usize = 8;
    /// The maximum size of all strings in a schema, in bytes. A flatbuffer has at most 2 GiB.
    const TEXT_BYTES: usize = 256 << 20;

    /// Returns the saved fields of the source from the metadata of a file.
    pub(crate) fn fields(metadata: &Metadata) -> Vec<FieldRef> {
        metadata.get(KEY).and_then(|value| decoded(value)).unwrap_or_default()
    }

    /// Encodes fields. Leaves out fields that cannot be stored. Returns `None` if no fields are
    /// left, or if the strings are too long.
    pub(crate) fn encoded(fields: &[FieldRef]) -> Option<String> {
        let fields: Fields =
            fields.iter().filter(|field| is_sound(field, DEPTH, field.name().len())).cloned().collect();
        let text_bytes = fields.iter().map(|field| text_bytes(field)).fold(0, usize::saturating_add);
        if fields.is_empty() || text_bytes > TEXT_BYTES {
            return None;
        }
        let (mut tracker, options) = (DictionaryTracker::new(true), IpcWriteOptions::default());
        let generator = IpcDataGenerator::default();
        let encoded = generator.schema_to_bytes_with_dictionary_tracker(&Schema::new(fields), &mut tracker, &options);
        let length = u32::try_from(encoded.ipc_message.len()).ok()?;
        Some(STANDARD.encode([&CONTINUATION[..], &length.to_le_bytes(), &encoded.ipc_message].concat()))
    }

    fn decoded(value: &str) -> Option<Vec<FieldRef>> {
        let bytes = STANDARD.decode(value).ok()?;
        let message = bytes.strip_prefix(&CONTINUATION)?.get(size_of::<u32>()..)?;
        let schema = message_in(message).ok()?.header_as_schema()?;
        // the decoder panics if a union has more types than it can number
        if schema.fields()?.iter().any(|field| has_union(&field)) {
            return None;
        }
        let schema = try_fb_to_schema(schema).ok()?;
        let sound = schema.fields().iter().filter(|field| is_sound(field, DEPTH, field.name().len()));
        Some(sound.cloned().collect())
    }

    /// Verifies the message in these bytes, and returns it.
    pub(crate) fn message_in(bytes: &[u8]) -> Result<Message<'_>, InvalidFlatbuffer> {
        root_as_message_with_opts(&verifier(bytes), bytes)
    }

    /// Returns the limits of a verifier, which are proportional to the number of bytes.
    pub(crate) fn verifier(bytes: &[u8]) -> VerifierOptions {
        VerifierOptions {
            max_depth: TABLES,
            max_tables: usize::MAX, // bounded by the visited bytes
            max_apparent_size: bytes.len().saturating_mul(VISITS),
            ..VerifierOptions::default()
        }
    }

    /// Returns whether a field is or contains a union. The caller has verified the depth.
    fn has_union(field: &EncodedField<'_>) -> bool {
        field.type_type() == Type::Union || field.children().into_iter().flatten().any(|child| has_union(&child))
    }

    /// Returns whether a field can come from columns: it has at most `depth` levels of fields, and
    /// the names of its columns are short enough. `name_bytes` is the length of their common
    /// prefix.
    fn is_sound(field: &Field, depth: usize, name_bytes: usize) -> bool {
        let Some(depth) = depth.checked_sub(1).filter(|_| name_bytes <= limits::NAME_BYTES) else { return false };
        let inside = |field: &FieldRef| is_sound(field, depth, name_bytes);
        match field.data_type() {
            DataType::Struct(fields) => fields.iter().all(|field| {
                // a dot and the name
                let name_bytes = name_bytes.saturating_add(1).saturating_add(field.name().len());
                is_sound(field, depth, name_bytes)
            }),
            DataType::FixedSizeList(item, length) => *length >= 0 && inside(item),
            DataType::Map(entries, _) => {
                matches!(entries.data_type(), DataType::Struct(fields) if fields.len() == 2) && inside(entries)
            }
            DataType::Dictionary(_, values) => {
                !values.is_nested() && !matches!(**values, DataType::Dictionary(..) | DataType::RunEndEncoded(..))
            }
            DataType::RunEndEncoded(ends, values) => ends.data_type().is_run_ends_type() && inside(values),
            DataType::Union(..) => false,
            other => members(other).is_none_or(inside),
        }
    }

    /// Returns the size of all names and metadata in a field, in bytes.
    fn text_bytes(field: &Field) -> usize {
        let own = field.metadata().iter().map(|(key, value)| key.len().saturating_add(value.len()));
        let own = own.fold(field.name().len(), usize::saturating_add);
        inside(field.data_type()).iter().map(|field| text_bytes(field)).fold(own, usize::saturating_add)
    }

    /// Returns the fields directly inside a type.
    pub(crate) fn inside(data_type: &DataType) -> &[FieldRef] {
        match data_type {
            DataType::Struct(fields) => fields,
            DataType::RunEndEncoded(_, values) => std::slice::from_ref(values),
            other => members(other).map_or(&[], std::slice::from_ref),
        }
    }

    /// Returns a field after changing the fields directly inside it.
    fn with_inside(field: &Field, mut change: impl FnMut(&FieldRef) -> FieldRef) -> Field {
        let data_type = match field.data_type() {
            DataType::Struct(fields) => DataType::Struct(fields.iter().map(change).collect()),
            DataType::RunEndEncoded(ends, values) => DataType::RunEndEncoded(ends.clone(), change(values)),
            other => with_members(other, change).unwrap_or_else(|| other.clone()),
        };
        field.clone().with_data_type(data_type)
    }

    /// Returns whether a field is or contains a dictionary.
    pub(crate) fn has_dictionary(field: &FieldRef) -> bool {
        matches!(field.data_type(), DataType::Dictionary(..)) || inside(field.data_type()).iter().any(has_dictionary)
    }

    /// Changes the saved fields in the metadata of a file.
    fn update(metadata: &mut Metadata, change: impl FnOnce(&[FieldRef]) -> Vec<FieldRef>) {
        let Some(fields) = metadata.get(KEY).and_then(|value| decoded(value)) else { return };
        match encoded(&change(&fields)) {
            Some(value) => drop(metadata.insert(KEY.to_owned(), value)),
            None => drop(metadata.remove(KEY)),
        }
    }

    /// Makes all dictionaries unordered, because appended values come after the existing values,
    /// regardless of how they sort.
    pub(crate) fn forget_order(metadata: &mut Metadata) {
        fn unordered(field: &FieldRef) -> FieldRef {
            Arc::new(with_inside(field, unordered).with_dict_is_ordered(false))
        }
        update(metadata, |fields| fields.iter().map(unordered).collect());
    }

    /// Returns a field without the values of its dictionaries.
    pub(crate) fn without_values(field: &FieldRef) -> FieldRef {
        without_entry(field, DICTIONARY)
    }

    /// Returns a field after removing an entry from its metadata and from the metadata of all
    /// fields inside it.
    pub(crate) fn without_entry(field: &FieldRef, key: &str) -> FieldRef {
        let mut field = with_inside(field, |field| without_entry(field, key));
        field.metadata_mut().remove(key);
        Arc::new(field)
    }

    /// Merges the schema of another source into a schema. A field becomes nullable if it is
    /// nullable in either schema.
    pub(crate) fn join(metadata: &mut Metadata, other: &Metadata) {
        let (Some(own), Some(other)) = (metadata.get(KEY), other.get(KEY)) else { return };
        let Some(others) = decoded(other) else { return };
        // dictionaries whose values are not in the schema can differ
        if own != other || others.iter().any(has_dictionary) {
            update(metadata, |fields| merged_fields(fields, &others));
        }
    }

    fn merged_fields(fields: &[FieldRef], others: &[FieldRef]) -> Vec<FieldRef> {
        let others: HashMap<&str, &FieldRef> = others.iter().map(|field| (field.name().as_str(), field)).collect();
        let merged =
            |field: &FieldRef| others.get(field.name().as_str()).map_or(field.clone(), |other| merged(field, other));
        fields.iter().map(merged).collect()
    }

    /// Merges another field into a field. If the dictionaries of the two fields are not known to
    /// have the same values, the merged dictionary becomes unordered, and its indexes become wide
    /// enough for the values of both.
    fn merged(field: &FieldRef, other: &FieldRef) -> FieldRef {
        let values = |field: &Field| field.metadata().get(DICTIONARY).cloned();
        let is_known = values(field).is_some() && values(field) == values(other);
        let is_ordered = is_known && [field, other].iter().all(|field| field.dict_is_ordered() == Some(true));
        let merged = match (field.data_type(), other.data_type()) {
            (DataType::Dictionary(index, values), _) if !is_known => field
                .as_ref()
                .clone()
                .with_data_type(DataType::Dictionary(Box::new(wider_index(index)), values.clone())),
            (DataType::Struct(fields), DataType::Struct(others)) => {
                field.as_ref().clone().with_data_type(DataType::Struct(merged_fields(fields, others).into()))
            }
            (own, others) if std::mem::discriminant(own) == std::mem::discriminant(others) => {
                with_inside(field, |item| inside(others).first().map_or(item.clone(), |other| merged(item, other)))
            }
            _ => field.as_ref().clone(),
        };
        let nullable = field.is_nullable() || other.is_nullable();
        Arc::new(merged.with_nullable(nullable).with_dict_is_ordered(is_ordered))
    }

    /// Returns an index type that is wide enough for many values.
    fn wider_index(index: &DataType) -> DataType {
        match index {
            DataType::Int8 | DataType::UInt8 | DataType::Int16 | DataType::UInt16 => DataType::Int32,
            wide => wide.clone(),
        }
    }

    /// The new names of a field and of the fields inside it.
    #[derive(Default)]
    struct Renames<'a> {
        own: Option<&'a str>,
        inside: HashMap<&'a str, Renames<'a>>,
    }

    /// Renames fields. Each field is given by the names of its enclosing structs and its own name.
    /// Two fields may swap names. No listed field may be inside another listed field.
    pub(crate) fn rename(metadata: &mut Metadata, renames: &[(Vec<String>, &str)]) {
        let mut all = Renames::default();
        for (names, to) in renames {
            let of_field = names.iter().fold(&mut all, |outer, name| outer.inside.entry(name).or_default());
            of_field.own = Some(to);
        }
        update(metadata, |fields| fields.iter().map(|field| renamed(field, &all)).collect());
    }

    /// Returns a field of a struct or of the schema with new names for itself and for the fields
    /// inside it.
    fn renamed(field: &FieldRef, outer: &Renames<'_>) -> FieldRef {
        let Some(renames) = outer.inside.get(field.name().as_str()) else { return field.clone() };
        let mut renamed =
            if renames.inside.is_empty() { field.as_ref().clone() } else { renamed_inside(field, renames) };
        if let Some(to) = renames.own {
            renamed.set_name(to);
            renamed.metadata_mut().remove(NAME); // the caller's name replaces the name in the source
        }
        Arc::new(renamed)
    }

    /// Returns a struct, or lists of structs, with new names for the fields inside.
    fn renamed_inside(field: &Field, renames: &Renames<'_>) -> Field {
        match field.data_type() {
            DataType::Struct(_) => with_inside(field, |field| renamed(field, renames)),
            _ => with_inside(field, |item| Arc::new(renamed_inside(item, renames))),
        }
    }

    /// Returns the names of the columns in which a field is stored.
    pub(crate) fn columns(field: &Field) -> Vec<String> {
        fn collect(field: &Field, name: String, names: &mut Vec<String>) {
            match field.data_type() {
                DataType::Struct(fields)
                    if !fields.is_empty() && field.extension_type_name() != Some(VARIABLE_SHAPE_TENSOR) =>
                {
                    for field in fields {
                        collect(field, format!("{name}.{}", field.name()), names);
                    }
                }
                other => match members(other) {
                    Some(item) => collect(item, name, names),
                    None => names.push(name),
                },
            }
        }
        let mut names = Vec::new();
        collect(field, field.name().clone(), &mut names);
        names
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use arrow_schema::UnionFields;

        fn of_type(data_type: DataType) -> FieldRef {
            Arc::new(Field::new("x", data_type, true))
        }

        /// Returns a field that is enclosed by `structs` structs.
        fn nested(structs: usize) -> FieldRef {
            let keys = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
            let leaf = Arc::new(Field::new("x", keys, true).with_metadata([("k", "v")]));
            (0..structs).fold(leaf, |inner, _| of_type(DataType::Struct([inner].into_iter().collect())))
        }

        #[test]
        fn what_is_written_is_read_up_to_the_maximum_depth() {
            let item = Arc::new(Field::new("element", DataType::LargeUtf8, false).with_metadata([("k", "v")]));
            let plain = of_type(DataType::List(item));
            for (structs, is_stored) in [(0, true), (DEPTH - 1, true), (DEPTH, false), (3 * DEPTH, false)] {
                let fields = [nested(structs), plain.clone()];
                let expected = &fields[usize::from(!is_stored)..];
                assert_eq!(decoded(&encoded(&fields).unwrap()).unwrap(), expected, "{structs} structs");
            }
            assert_eq!(encoded(&[nested(DEPTH)]), None);
        }

        #[test]
        fn fields_that_no_source_has_are_left_out() {
            let pair = DataType::Struct([of_type(DataType::Utf8), of_type(DataType::Utf8)].into_iter().collect());
            let union = UnionFields::from_fields([Field::new("a", DataType::Int8, true)]);
            let long = Field::new("n".repeat(limits::NAME_BYTES), DataType::Int8, true);
            for data_type in [
                DataType::FixedSizeList(of_type(DataType::Utf8), -1),
                DataType::Map(of_type(DataType::Utf8), false),
                DataType::Union(union, arrow_schema::UnionMode::Sparse),
                DataType::Dictionary(Box::new(DataType::Int8), Box::new(pair)),
                DataType::RunEndEncoded(of_type(DataType::Utf8), of_type(DataType::Utf8)),
                DataType::Struct([Arc::new(long)].into_iter().collect()),
            ] {
                assert_eq!(encoded(&[of_type(data_type.clone())]), None, "{data_type}");
            }
        }

        /// Returns a value whose fields share one string.
        fn with_shared_text(count: usize) -> String {
            let mut builder = flatbuffers::FlatBufferBuilder::new();
            let name = builder.create_string(&"n".repeat(1 << 16));
            let field = |_| {
                let type_ = arrow_ipc::Utf8Builder::new(&mut builder).finish().as_union_value();
                let mut field = arrow_ipc::FieldBuilder::new(&mut builder);
                field.add_name(name);
                field.add_type_type(Type::Utf8);
                field.add_type_(type_);
                field.finish()
            };
            let fields: Vec<_> = (0..count).map(field).collect();
            let fields = builder.create_vector(&fields);
            let mut schema = arrow_ipc::SchemaBuilder::new(&mut builder);
            schema.add_fields(fields);
            let schema = schema.finish().as_union_value();
            let mut message = arrow_ipc::MessageBuilder::new(&mut builder);
            message.add_header_type(arrow_ipc::MessageHeader::Schema);
            message.add_header(schema);
            let root = message.finish();
            builder.finish(root, None);
            STANDARD.encode([&CONTINUATION[..], &[0; 4], builder.finished_data()].concat())
        }

        #[test]
        fn fields_that_share_texts_are_bounded() {
            assert!(decoded(&with_shared_text(2)).is_some());
            assert!(decoded(&with_shared_text(1 << 12)).is_none());
        }
    }
}

/// Logical types of Parquet that Arrow does not have, as entries in the metadata of a field.
///
/// UUID, JSON and VARIANT are extension types of Arrow. For the other types, the entry is a string
/// that an export to Parquet converts back: `ENUM`, `BSON`, `GEOMETRY` or `GEOGRAPHY`. The last two
/// are followed by a JSON array of their parameters.
#[cfg(feature = "parquet")]
mod logical_type {
    use super::LOGICAL_TYPE;
    use arrow_schema::Field;
    use arrow_schema::extension::EXTENSION_TYPE_NAME_KEY;
    use parquet::basic::{EdgeInterpolationAlgorithm as Edges, LogicalType};
    use serde_json::{Value, json};

    /// The extension type of a group that has two binary columns: the metadata and the value.
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

    /// Returns the metadata entry for a logical type; `None` if the Arrow type implies it.
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

    /// Returns the logical type that an [`entry`] in the metadata of a field records. The field
    /// must not be a struct.
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
            assert_eq!(
                of_field(&Field::new("x", DataType::Binary, true).with_metadata([(LOGICAL_TYPE, "other")])),
                None
            );
        }
    }
}

/// The schema in a build that cannot read it.
#[cfg(not(feature = "arrow"))]
mod opaque {
    use super::KEY;
    use crate::Metadata;

    /// Removes the schema if the schema of another source differs.
    pub(crate) fn join(metadata: &mut Metadata, other: &Metadata) {
        if other.get(KEY).is_some_and(|other| metadata.get(KEY) != Some(other)) {
            metadata.remove(KEY);
        }
    }

    /// Removes the schema, because its fields would still have the old names, which could now be
    /// names of other columns.
    pub(crate) fn rename(metadata: &mut Metadata, _: &[(Vec<String>, &str)]) {
        metadata.remove(KEY);
    }

    /// Removes the schema, because its dictionaries can have an order that appended values do not
    /// follow.
    pub(crate) fn forget_order(metadata: &mut Metadata) {
        metadata.remove(KEY);
    }
}
