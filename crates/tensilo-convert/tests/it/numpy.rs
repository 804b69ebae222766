//! Arrays of NumPy, and archives of them.

use super::common::{check, check_refused, convert, data, names_in};
use tensilo_convert::FormatOptions;

#[test]
fn arrays_have_the_values_that_numpy_reads() {
    names_in("npy").iter().for_each(|name| check(name, FormatOptions::new()));
}

#[test]
fn archives_have_the_values_that_numpy_reads() {
    names_in("npz").iter().for_each(|name| check(name, FormatOptions::new()));
}

#[test]
fn arrays_follow_one_another() {
    let both = convert(&[data("npy/f32.npy"), data("npy/version-2.npy")], FormatOptions::new()).unwrap();
    assert_eq!(both.sample_count(), 10);
}

#[test]
fn arrays_that_cannot_be_stored_are_refused_with_a_reason() {
    check_refused(&data("refused/records.npy"), "records");
    check_refused(&data("refused/complex.npy"), "imaginary");
    check_refused(&data("refused/objects.npy"), "pickled");
    check_refused(&data("refused/bfloat16.npy"), "safetensors");
    check_refused(&data("refused/axes.npz"), "same first axis");
    check_refused(&data("refused/fortran.npz"), "Fortran");
}

#[test]
fn an_archive_is_one_sample_on_demand() {
    let one = convert(&[data("refused/axes.npz")], FormatOptions::new().file_is_sample(true)).unwrap();
    assert_eq!(one.sample_count(), 1);
    let shapes: Vec<String> = one.columns().map(|column| column.schema().shape.to_string()).collect();
    assert_eq!(shapes, ["[3]", "[4]"]);
}
