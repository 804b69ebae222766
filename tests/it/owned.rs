//! Tests that readers, columns and cursors own their file, so threads and handles can keep them.

use std::thread;
use tensilo::salvage::Salvaged;
use tensilo::sink::Stream;
use tensilo::{
    Column, ColumnBuffer, ColumnSchema, Cursor, DType, Extent, OpenOptions, Profile, Reader, Rows, Schema, Shape,
    Value, Writer, WriterOptions,
};
use tensilo_testing::Folder;

const SAMPLES: u64 = 300;

/// Writes three columns: fixed, nullable and ragged.
fn file(profile: Profile) -> Vec<u8> {
    let schema = Schema::new([
        ColumnSchema::tensor("fixed", DType::I32, Shape::fixed(&[2])),
        ColumnSchema::tensor("nullable", DType::U16, Shape::scalar()).nullable(),
        ColumnSchema::tensor("ragged", DType::U8, Shape::new([Extent::Varying])),
    ]);
    let options = WriterOptions::new().profile(profile).chunk_bytes(200);
    let mut writer = Writer::new(Stream(Vec::new()), schema, &options).unwrap();
    for i in 0..SAMPLES as i32 {
        let text = "x".repeat(i as usize % 7);
        let nullable = (i % 5 != 0).then_some(i as u16);
        writer.push(&[Value::tensor(&[i, -i]), nullable.into(), Value::tensor(text.as_bytes())]).unwrap();
    }
    writer.into_bytes().unwrap()
}

fn assert_send<T: Send + 'static>() {}

fn assert_send_sync<T: Send + Sync + 'static>() {}

#[test]
fn all_handles_can_be_owned_by_threads() {
    assert_send_sync::<Reader>();
    assert_send_sync::<Column>();
    assert_send_sync::<Salvaged>();
    assert_send::<Cursor>();
    assert_send::<Rows>();
    #[cfg(feature = "rayon")]
    assert_send::<tensilo::ParallelCursor>();
}

/// The thread continues after the reader that it was started from has gone.
#[test]
fn a_thread_outlives_the_scope_in_which_the_reader_was_opened() {
    let folder = Folder::new();
    for profile in Profile::ALL {
        let path = folder.path(profile.name());
        std::fs::write(&path, file(profile)).unwrap();
        let threads = {
            let readers = [Reader::from_bytes(file(profile)).unwrap(), Reader::open(&path).unwrap()];
            readers.map(|reader| {
                let (column, mut rows) =
                    (reader.column("fixed").unwrap(), reader.rows(&["nullable", "ragged"]).unwrap());
                thread::spawn(move || {
                    let mut cursor = column.cursor();
                    drop((column, reader));
                    let mut buffers = Vec::new();
                    rows.range_into(0..SAMPLES, &mut buffers).unwrap();
                    assert_eq!(buffers[0].null_count() as u64, SAMPLES / 5);
                    assert_eq!(buffers[1].ragged_bytes(13), Some(b"xxxxxx".as_slice()));
                    (0..SAMPLES as i32).all(|i| cursor.read(i as u64).unwrap().as_slice::<i32>().unwrap() == [i, -i])
                })
            })
        };
        assert!(threads.into_iter().all(|thread| thread.join().unwrap()), "{profile:?}");
    }
}

/// A clone of a reader is the same open file: what one has checked, the other need not check.
#[test]
fn clones_share_the_source() {
    let reader = Reader::from_bytes(file(Profile::Raw)).unwrap();
    let other = reader.clone();
    assert!(std::sync::Arc::ptr_eq(reader.source(), other.source()));
    let source = reader.source().clone();
    let again = OpenOptions::new().open_source(source).unwrap();
    assert_eq!(again.file_id(), reader.file_id());
}

/// Calls for types known only at run time give the same bytes as the typed calls.
#[test]
fn untyped_calls_give_the_bytes_of_the_typed_ones() {
    for profile in Profile::ALL {
        let reader = Reader::from_bytes(file(profile)).unwrap();
        let indices = [7, 299, 0, 7, 100];
        let (mut typed, mut bytes) = ([0_i32; 10], [0_u8; 40]);
        let mut cursor = reader.column("fixed").unwrap().cursor();
        assert_eq!(cursor.gather_slice(&indices, &mut typed).unwrap(), 0);
        assert_eq!(cursor.gather_bytes(&indices, &mut bytes).unwrap(), 0);
        assert_eq!(bytemuck::cast_slice::<i32, u8>(&typed), bytes, "{profile:?}");
        #[cfg(feature = "rayon")]
        {
            let mut parallel = reader.column("fixed").unwrap().parallel_cursor();
            let mut of_threads = [0_u8; 40];
            assert_eq!(parallel.gather_bytes(&indices, &mut of_threads).unwrap(), 0);
            assert_eq!(of_threads, bytes, "{profile:?}");
        }
        let mut one = [0xA5_u8; 9];
        assert_eq!(cursor.read_bytes(299, &mut one).unwrap(), Some(8));
        assert_eq!((one[..8].to_vec(), one[8]), (bytes[8..16].to_vec(), 0xA5));
        let mut cursor = reader.column("nullable").unwrap().cursor();
        assert_eq!(cursor.read_bytes(5, &mut one).unwrap(), None);
        let mut buffer = ColumnBuffer::new();
        cursor.gather_into(&indices, &mut buffer).unwrap();
        assert_eq!(cursor.gather_bytes(&indices, &mut [0; 10]).unwrap(), buffer.null_count());
        for (length, out) in [(9, &mut [0_u8; 9][..]), (11, &mut [0_u8; 11][..])] {
            let error = cursor.gather_bytes(&indices, out).unwrap_err();
            assert_eq!(error.kind(), tensilo::ErrorKind::BadArgument, "{length} bytes of 10");
        }
        let ragged = reader.column("ragged").unwrap().cursor().gather_bytes(&indices, &mut bytes).unwrap_err();
        assert_eq!(ragged.kind(), tensilo::ErrorKind::BadArgument);
    }
}
