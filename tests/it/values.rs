//! Tests values: samples of nested columns that are pushed one at a time.

use tensilo::nested::ListBatch;
use tensilo::sink::Stream;
use tensilo::{ColumnBatch, ColumnSchema, DType, Extent, Profile, Schema, Shape, Value, Writer, WriterOptions};

fn writer(column: ColumnSchema) -> Writer<Stream<Vec<u8>>> {
    Writer::new(Stream(Vec::new()), Schema::new([column]), &WriterOptions::new()).unwrap()
}

fn nullable(column: ColumnSchema) -> ColumnSchema {
    ColumnSchema { nullable: true, ..column }
}

#[test]
fn single_samples_give_the_bytes_of_a_batch() {
    // a null sample, a null list, a null item; empty lists, and an item without elements
    let column = || {
        let item = nullable(ColumnSchema::tensor("x", DType::F32, Shape::ragged()));
        nullable(nullable(item.list()).list())
    };
    let mut single = writer(column());
    let tensors = [Value::tensor(&[1.0_f32, 2.0]), Value::NULL, Value::tensor::<f32>(&[])];
    let lists = [Value::list(&tensors), Value::list(&[]), Value::NULL];
    for sample in [Value::list(&lists), Value::NULL, Value::list(&[]), Value::list(&lists[1..])] {
        single.push(&[sample]).unwrap();
    }
    let mut batch = writer(column());
    let items = ColumnBatch::ragged(3, &[2, 0, 0], &[1.0_f32, 2.0]).with_validity(&[0b101]);
    let levels = [
        ListBatch::new(&[3, 0, 0, 2]).with_validity(&[0b1101]),
        ListBatch::new(&[3, 0, 0, 0, 0]).with_validity(&[0b01011]),
    ];
    batch.push_batch(&[items.in_lists(&levels)]).unwrap();
    assert_eq!(single.into_bytes().unwrap(), batch.into_bytes().unwrap());
}

#[test]
fn owned_values_equal_borrowed_ones() {
    let columns = || {
        [
            nullable(ColumnSchema::tensor("number", DType::I32, Shape::scalar())),
            nullable(ColumnSchema::utf8("text")),
            ColumnSchema::tensor("tensor", DType::F32, Shape::ragged()),
            ColumnSchema::utf8("list").list(),
        ]
    };
    let writer = || Writer::new(Stream(Vec::new()), Schema::new(columns()), &WriterOptions::new()).unwrap();
    let (mut owned, mut borrowed) = (writer(), writer());
    let text = |text: &str| Some(text.to_owned());
    let list = || vec![Value::from("x"), Value::from("y".to_owned())];
    owned.push(&[7_i32.into(), text("a").into(), vec![1.0_f32, 2.0].into(), list().into()]).unwrap();
    owned.push(&[None::<i32>.into(), None::<&str>.into(), Vec::<f32>::new().into(), Value::list(&[])]).unwrap();
    owned.push(&[Some(8_i32).into(), Some("b").into(), 3.0_f32.into(), Some(list()).into()]).unwrap();
    let xy = [Value::text("x"), Value::text("y")];
    for sample in [
        [Value::tensor(&[7_i32]), Value::text("a"), Value::tensor(&[1.0_f32, 2.0]), Value::list(&xy)],
        [Value::NULL, Value::NULL, Value::tensor::<f32>(&[]), Value::list(&[])],
        [Value::tensor(&[8_i32]), Value::text("b"), Value::tensor(&[3.0_f32]), Value::list(&xy)],
    ] {
        borrowed.push(&sample).unwrap();
    }
    assert_eq!(owned.into_bytes().unwrap(), borrowed.into_bytes().unwrap());
}

#[test]
fn names_parse_to_what_they_name() {
    for dtype in DType::ALL {
        assert_eq!(dtype.name().parse::<DType>().unwrap(), dtype);
    }
    for profile in Profile::ALL {
        assert_eq!(profile.name().parse::<Profile>().unwrap(), profile);
    }
    let error = "bfloat".parse::<DType>().unwrap_err();
    assert!(error.message().starts_with("unknown type \"bfloat\"; valid types: bf16, f16, "), "{error}");
    let error = "Fast".parse::<Profile>().unwrap_err();
    assert_eq!(
        error.message(),
        "unknown profile \"Fast\"; expected one of fast, balanced, small, raw, bitshuffle-zstd"
    );
}

#[test]
fn null_items_of_a_fixed_shape_take_no_values_from_the_caller() {
    let column = || nullable(ColumnSchema::tensor("x", DType::I16, Shape::fixed(&[2]))).list();
    let mut single = writer(column());
    single.push(&[Value::list(&[Value::NULL, Value::tensor(&[1_i16, 2])])]).unwrap();
    let mut batch = writer(column());
    let items = ColumnBatch::fixed(2, &[0_i16, 0, 1, 2]).with_validity(&[0b10]);
    batch.push_batch(&[items.in_lists(&[ListBatch::new(&[2])])]).unwrap();
    assert_eq!(single.into_bytes().unwrap(), batch.into_bytes().unwrap());
}

#[test]
fn values_that_do_not_fit_are_refused_with_their_column() {
    let texts = || ColumnSchema::utf8("words").list();
    let word = [Value::text("a")];
    let list = [Value::list(&word)];
    let mixed = [Value::text("a"), Value::tensor(&[1_u8])];
    for (value, part) in [
        (Value::text("a"), "lists"),
        (Value::list(&list), "lists"),
        (Value::list(&mixed), "items of types utf8 and u8"),
        (Value::list(&[Value::tensor(&[1.5_f64])]), "expected values of type utf8, found f64"),
        (Value::list(&[Value::NULL]), "null"),
        (Value::NULL, "null"),
    ] {
        let mut writer = writer(texts());
        let error = writer.push(&[value]).unwrap_err();
        assert_eq!(error.column(), Some("words"), "{error}");
        assert!(error.message().contains(part), "{error}");
        assert_eq!(writer.sample_count(), 0);
        writer.push(&[Value::list(&word)]).unwrap();
    }
    let error = writer(ColumnSchema::utf8("text")).push(&list).unwrap_err();
    assert!(error.message().contains("not nested"), "{error}");
}

/// An item never takes elements of the next one, even if the total number is correct.
#[test]
fn items_that_do_not_have_their_own_shape_are_refused() {
    let fixed = || ColumnSchema::tensor("x", DType::I32, Shape::fixed(&[2]));
    let varying = |extents: &[Extent]| ColumnSchema::tensor("x", DType::I32, Shape::new(extents.iter().copied()));
    let scalar = || ColumnSchema::tensor("x", DType::I32, Shape::scalar());
    let rows = || varying(&[Extent::Varying, Extent::Fixed(2)]);
    let matrices = || varying(&[Extent::Varying; 2]);
    let (one, two, three) = ([4_i32], [1_i32, 2], [1_i32, 2, 3]);
    let empty: [i32; 0] = [];
    for (column, items, part) in [
        (fixed(), [Value::tensor(&three), Value::tensor(&one)], "item 0 of the sample has 12 bytes"),
        (fixed(), [Value::tensor(&two), Value::tensor(&empty)], "item 1 of the sample has 0 bytes"),
        (scalar(), [Value::tensor(&two), Value::tensor(&empty)], "item 0 of the sample has 8 bytes"),
        (rows(), [Value::tensor(&three), Value::tensor(&one)], "item 0 of the sample has 12 bytes"),
        (
            varying(&[Extent::Varying]),
            [Value::ragged(&three, &[2]), Value::ragged(&two, &[3])],
            "item 0 of the sample has 12 bytes; shape [*] with the varying extents [2] takes 8",
        ),
        (
            matrices(),
            [Value::ragged(&two, &[1, 2, 1]), Value::ragged(&one, &[1])],
            "item 0 of the sample has 3 varying extents; shape [*,*] has 2",
        ),
        (matrices(), [Value::ragged(&two, &[2, 1]), Value::ragged(&empty, &[])], "item 1 of the sample has 0 varying"),
        (
            matrices(),
            [Value::ragged(&two, &[2, 1]), Value::ragged(&one, &[u32::MAX - 1, u32::MAX - 1])],
            "item 1 of the sample has 4 bytes",
        ),
    ] {
        let mut writer = writer(column.list());
        let error = writer.push(&[Value::list(&items)]).unwrap_err();
        assert_eq!(error.column(), Some("x"), "{error}");
        assert!(error.message().contains(part), "{error}");
    }
}

#[test]
fn offsets_of_lists_begin_at_0_and_span_what_a_list_may_have() {
    let items = ColumnBatch::fixed(2, &[1_i32, 2]);
    let column = || ColumnSchema::tensor("x", DType::I32, Shape::scalar()).list();
    for (offsets, part) in [
        (vec![5_u64, 7], "offsets of lists start at 5, not at 0"),
        (vec![0, 2, 1], "offsets of lists descend from 2 to 1"),
        (vec![0, 1 << 33], "list 0 of a level of the batch has 8589934592 members"),
        (vec![], "the lists of a level have 0 members in total, but 2 were pushed"),
    ] {
        let levels = [ListBatch::from_offsets(&offsets)];
        let error = writer(column()).push_batch(&[items.in_lists(&levels)]).unwrap_err();
        assert!(error.message().contains(part), "{error}");
    }
    let levels = [ListBatch::from_offsets(&[0, 0, 2])];
    writer(column()).push_batch(&[items.in_lists(&levels)]).unwrap();
}
