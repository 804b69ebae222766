//! A file with every type in every shape, and what its export must hold.

use crate::common::data::value_mask;
use tensilo::import::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use tensilo::import::arrow::datatypes::{DataType, Int32Type};
use tensilo::sink::Stream;
use tensilo::{ColumnBatch, ColumnSchema, DType, Extent, Reader, Schema, Shape, Writer, WriterOptions};
use tensilo_testing::Random;

pub const SAMPLES: usize = 300;

/// One exported sample: extents and elements, or null.
pub type Model = Option<(Vec<u32>, Vec<u8>)>;

fn shapes() -> Vec<(&'static str, Shape)> {
    let (fixed, varying) = (Extent::Fixed, Extent::Varying);
    vec![
        ("scalar", Shape::scalar()),
        ("vector", Shape::fixed(&[3])),
        ("matrix", Shape::fixed(&[2, 3])),
        ("empty", Shape::fixed(&[2, 0, 5])),
        ("list", Shape::ragged()),
        ("rows", Shape::new([varying, fixed(2)])),
        ("ragged", Shape::new([varying, fixed(2), varying])),
        ("square", Shape::new([varying, varying])),
        ("none", Shape::new([varying, fixed(0)])),
    ]
}

fn all_columns() -> Vec<ColumnSchema> {
    let mut columns = Vec::new();
    for dtype in DType::ALL {
        let shapes = if dtype.is_string() { vec![("list", Shape::ragged())] } else { shapes() };
        for (name, shape) in shapes {
            let column = ColumnSchema::tensor(format!("{dtype}.{name}"), dtype, shape.clone());
            columns.push(column);
            columns.push(ColumnSchema::tensor(format!("{dtype}.{name}.nullable"), dtype, shape).nullable());
        }
    }
    columns
}

/// Returns the bits of an element: anything, and often values that are easily lost.
fn element(dtype: DType, numbers: &mut Random) -> Vec<u8> {
    let random = numbers.bits();
    let special = match dtype {
        DType::Bf16 => [0x7F81, 0xFFC1, 0x8000, 0xFF80],
        DType::F16 => [0x7C01, 0xFE01, 0x8000, 0xFC00],
        DType::F32 => [0x7F80_0001, 0xFFC0_1234, 0x8000_0000, 0x0000_0001],
        DType::F64 => [0x7FF0_0000_0000_0001, 0xFFF8_0000_0000_1234, 1 << 63, 1],
        _ => [0, u64::MAX, 1, 1 << 7],
    };
    let value = if random.is_multiple_of(3) { special[(random >> 8) as usize % 4] } else { numbers.bits() };
    match dtype {
        DType::Utf8 => vec![b'a' + (value % 26) as u8],
        _ => (value & value_mask(dtype)).to_le_bytes()[..dtype.element_bytes()].to_vec(),
    }
}

/// Returns the bytes that an element is exported as.
fn exported(dtype: DType, bytes: &[u8]) -> Vec<u8> {
    if dtype != DType::Bf16 {
        return bytes.to_vec();
    }
    // the upper half of a little-endian f32
    bytes.chunks(2).flat_map(|pair| [0, 0, pair[0], pair[1]]).collect()
}

/// Returns the samples of a column: those to push, and the model of the export.
fn fill(column: &ColumnSchema, numbers: &mut Random) -> (Vec<u32>, Vec<u8>, Vec<u8>, Vec<Model>) {
    let (mut extents, mut values, mut models) = (Vec::new(), Vec::new(), Vec::new());
    let mut validity = vec![0xFF_u8; SAMPLES.div_ceil(8)];
    for i in 0..SAMPLES {
        let is_null = column.nullable && numbers.bits().is_multiple_of(4);
        let shape: Vec<u32> = column
            .shape
            .extents()
            .iter()
            .map(|extent| match extent {
                Extent::Fixed(extent) => *extent,
                Extent::Varying if is_null => 0,
                Extent::Varying => (numbers.bits() % 4) as u32,
            })
            .collect();
        let varying = column.shape.extents().iter().zip(&shape).filter(|(extent, _)| **extent == Extent::Varying);
        extents.extend(varying.map(|(_, extent)| *extent));
        let count: u32 = shape.iter().product();
        let mut bytes: Vec<u8> = (0..count).flat_map(|_| element(column.dtype, numbers)).collect();
        if is_null {
            validity[i / 8] &= !(1 << (i % 8));
            bytes.fill(0);
        }
        let halves = (column.dtype == DType::Complex64).then_some(2);
        let exported_shape = shape.into_iter().chain(halves).collect();
        models.push((!is_null).then(|| (exported_shape, exported(column.dtype, &bytes))));
        values.extend(bytes);
    }
    (extents, values, validity, models)
}

pub fn all_types() -> (Reader, Vec<Vec<Model>>) {
    let columns = all_columns();
    let mut numbers = Random(1);
    let filled: Vec<_> = columns.iter().map(|column| fill(column, &mut numbers)).collect();
    let options = WriterOptions::new().chunk_bytes(200);
    let mut writer = Writer::new(Stream(Vec::new()), Schema::new(columns.clone()), &options).unwrap();
    let batch: Vec<ColumnBatch> = columns
        .iter()
        .zip(&filled)
        .map(|(column, (extents, values, validity, _))| {
            let batch = ColumnBatch::from_bytes(column.dtype, SAMPLES, extents, values);
            if column.nullable { batch.with_validity(validity) } else { batch }
        })
        .collect();
    writer.push_batch(&batch).unwrap();
    let bytes = writer.into_bytes().unwrap();
    (Reader::from_bytes(bytes).unwrap(), filled.into_iter().map(|(.., models)| models).collect())
}

/// Returns the bytes of all elements of an array.
pub fn bytes_of(array: &dyn Array) -> Vec<u8> {
    match array.data_type() {
        DataType::Boolean => array.as_boolean().values().iter().map(u8::from).collect(),
        data_type => {
            let width = data_type.primitive_width().unwrap();
            let data = array.to_data();
            data.buffers()[0].as_slice()[data.offset() * width..][..data.len() * width].to_vec()
        }
    }
}

/// Returns the model of a sample of an array. `shape` applies if it is fixed.
fn model_of(array: &ArrayRef, i: usize, shape: &Shape) -> Model {
    let fixed = || {
        shape.extents().iter().map(|extent| match extent {
            Extent::Fixed(extent) => *extent,
            Extent::Varying => panic!("varies"),
        })
    };
    let elements = |values: ArrayRef| (vec![values.len() as u32], bytes_of(&values));
    let string = |bytes: &[u8]| (vec![bytes.len() as u32], bytes.to_vec());
    if array.is_null(i) {
        return None;
    }
    Some(match array.data_type() {
        DataType::Utf8 => string(array.as_string::<i32>().value(i).as_bytes()),
        DataType::Binary => string(array.as_binary::<i32>().value(i)),
        DataType::List(_) => elements(array.as_list::<i32>().value(i)),
        DataType::FixedSizeList(..) => (fixed().collect(), bytes_of(&array.as_fixed_size_list().value(i))),
        DataType::Struct(_) => {
            let tensors = array.as_struct();
            let shape = tensors.column_by_name("shape").unwrap().as_fixed_size_list().value(i);
            let shape = shape.as_primitive::<Int32Type>().values().iter().map(|&extent| extent as u32).collect();
            (shape, bytes_of(&tensors.column_by_name("data").unwrap().as_list::<i32>().value(i)))
        }
        _ => (Vec::new(), bytes_of(&array.slice(i, 1))),
    })
}

/// Compares every sample of every column.
pub fn compare(schema: &Schema, models: &[Vec<Model>], batches: &[RecordBatch]) {
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), SAMPLES);
    for (c, (column, models)) in schema.columns.iter().zip(models).enumerate() {
        // complex numbers are exported as pairs
        let halves = (column.dtype == DType::Complex64).then_some(Extent::Fixed(2));
        let shape = Shape::new(column.shape.extents().iter().copied().chain(halves));
        let mut expected = models.iter();
        for batch in batches {
            assert_eq!(batch.schema_ref().field(c).name(), &column.name);
            assert_eq!(batch.schema_ref().field(c).is_nullable(), column.nullable);
            for i in 0..batch.num_rows() {
                let found = model_of(batch.column(c), i, &shape);
                assert_eq!(Some(&found), expected.next(), "{} {i}", column.name);
            }
        }
    }
}
