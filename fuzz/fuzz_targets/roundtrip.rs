#![no_main]
//! Any schema and data: what is written is read, and writing it twice gives the same bytes.

use arbitrary::{Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use tensilo::{
    ColumnBatch, ColumnBuffer, ColumnSchema, DType, Extent, InMemory, Profile, Reader, Schema, Shape, Stream,
    VerifyOptions, Writer, WriterOptions, verify,
};

/// One column and its samples: null, or varying extents and elements.
#[derive(Debug)]
struct Column {
    schema: ColumnSchema,
    extents: Vec<u32>,
    values: Vec<u8>,
    validity: Vec<u8>,
}

#[derive(Debug)]
struct Case {
    sample_count: usize,
    columns: Vec<Column>,
    options: WriterOptions,
}

impl<'a> Arbitrary<'a> for Case {
    fn arbitrary(u: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        let sample_count = u.int_in_range(0..=40)?;
        let column_count = u.int_in_range(1..=4)?;
        let columns = (0..column_count).map(|i| column(u, i, sample_count)).collect::<arbitrary::Result<_>>()?;
        let options = WriterOptions::new()
            .profile(*u.choose(&Profile::ALL)?)
            .chunk_bytes(u.int_in_range(1..=300)?)
            .alignment(*u.choose(&[64, 4096])?)
            .threads(u.int_in_range(1..=2)?);
        Ok(Self { sample_count, columns, options })
    }
}

fn column(u: &mut Unstructured<'_>, i: usize, sample_count: usize) -> arbitrary::Result<Column> {
    let dtype = *u.choose(&DType::ALL)?;
    let rank = u.int_in_range(0..=3)?;
    let shape = if dtype.is_string() { Shape::ragged() } else { Shape::new(extents(u, rank)?) };
    let mut schema = ColumnSchema::tensor(format!("column {i}"), dtype, shape);
    schema.nullable = u.arbitrary()?;
    let varying = schema.shape.varying_count();
    let inner = usize::try_from(schema.shape.inner_elements().unwrap_or(0)).unwrap_or(0) * dtype.element_bytes();
    let mut column =
        Column { schema, extents: Vec::new(), values: Vec::new(), validity: vec![0; sample_count.div_ceil(8)] };
    for sample in 0..sample_count {
        let is_null = column.schema.nullable && u.ratio(1, 4)?;
        if !is_null {
            column.validity[sample / 8] |= 1 << (sample % 8);
        }
        let mut count = 1;
        for _ in 0..varying {
            let extent = if is_null { 0 } else { u.int_in_range(0..=4)? };
            column.extents.push(extent);
            count *= extent as usize;
        }
        for _ in 0..count * inner {
            let byte: u8 = if is_null { 0 } else { u.arbitrary()? };
            column.values.push(match dtype {
                DType::Bool => byte & 1,
                DType::Utf8 => byte & 0x7F,
                _ => byte,
            });
        }
    }
    Ok(column)
}

fn extents(u: &mut Unstructured<'_>, rank: usize) -> arbitrary::Result<Vec<Extent>> {
    (0..rank)
        .map(|_| if u.ratio(1, 3)? { Ok(Extent::Varying) } else { Ok(Extent::Fixed(u.int_in_range(0..=4)?)) })
        .collect()
}

fn write(case: &Case) -> Vec<u8> {
    let schema = Schema::new(case.columns.iter().map(|column| column.schema.clone()));
    let mut writer = Writer::new(Stream(Vec::new()), schema, &case.options).unwrap();
    let batches: Vec<ColumnBatch<'_>> = case
        .columns
        .iter()
        .map(|column| {
            let batch =
                ColumnBatch::from_bytes(column.schema.dtype, case.sample_count, &column.extents, &column.values);
            if column.schema.nullable { batch.with_validity(&column.validity) } else { batch }
        })
        .collect();
    writer.push_batch(&batches).unwrap();
    writer.finish().unwrap().sink.0
}

fuzz_target!(|case: Case| {
    let file = write(&case);
    assert_eq!(file, write(&case));
    let report = verify(&InMemory(&file), VerifyOptions::new().decode(true)).unwrap();
    assert!(report.damages.is_empty(), "{:?}", report.damages);
    let reader = Reader::from_bytes(&file).unwrap();
    let mut buffer = ColumnBuffer::new();
    for (column, due) in reader.columns().zip(&case.columns) {
        column.cursor().range_into(0..reader.sample_count(), &mut buffer).unwrap();
        assert_eq!(buffer.bytes(), due.values);
        assert_eq!(buffer.extents(), due.extents);
        let nulls = (0..case.sample_count).filter(|i| due.validity[i / 8] >> (i % 8) & 1 == 0).count();
        assert_eq!(buffer.null_count(), nulls);
    }
});
