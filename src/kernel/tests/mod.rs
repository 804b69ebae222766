//! Every implementation against the scalar one, and the scalar one against the specification.

mod bins;
mod bins_costs;
mod bins_encode;
mod bitshuffle;
mod byte_planes;
mod extra_bits;
mod filters;
mod palettes;
mod predict;
mod quotients;
mod support;
mod tiers;

use super::dispatch::Implementation;

/// Checks that CI's machine has the implementations that CI names, so that no test passes only
/// because the CPU lacks an instruction set.
#[test]
fn required_kernels_are_available() {
    check("bitshuffle", super::bitshuffle::available(), super::bitshuffle::best());
    check("byte_planes", super::byte_planes::available(), super::byte_planes::best());
    check("predict", super::predict::available(), super::predict::best());
    check("tiers", super::tiers::available(), super::tiers::best());
    check("bins", super::bins::available(), super::bins::best());
    check("bins::encode", super::bins::encode::available(), super::bins::encode::best());
    check("bins::costs", super::bins::costs::available(), super::bins::costs::best());
    check("extra_bits", super::extra_bits::available(), super::extra_bits::best());
    check("palettes", super::palettes::available(), super::palettes::best());
    check("quotients", super::quotients::available(), super::quotients::best());
}

fn check<K: ?Sized>(family: &str, available: &[Implementation<K>], best: &Implementation<K>) {
    let names: Vec<_> = available.iter().map(Implementation::name).collect();
    println!("{family}: {}", names.join(", "));
    assert_eq!(names.first(), Some(&"scalar"), "{family}");
    let asked = super::dispatch::requested().filter(|asked| names.contains(&asked.as_str()));
    assert_eq!(best.name(), asked.as_deref().unwrap_or(names[names.len() - 1]), "{family}");
    let required = std::env::var("TENSILO_REQUIRE_KERNELS").unwrap_or_default();
    for name in required.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        assert!(names.contains(&name), "{family}: kernel {name} is required, this CPU has {names:?}");
    }
}

#[test]
fn the_kernels_that_are_asked_for_are_chosen() {
    let available = super::predict::available();
    let chosen = |asked: Option<&str>| super::dispatch::choose(available, asked).map(Implementation::name);
    for kernel in available {
        assert_eq!(chosen(Some(kernel.name())), Some(kernel.name()));
    }
    let fastest = available.last().map(Implementation::name);
    assert_eq!((chosen(None), chosen(Some("abacus")), chosen(Some(""))), (fastest, fastest, fastest));
}

#[test]
fn widths_are_1_2_4_8() {
    for bytes in 0..=16 {
        let width = super::Width::from_bytes(bytes);
        assert_eq!(width.is_some(), [1, 2, 4, 8].contains(&bytes));
        assert!(width.is_none_or(|width| width.bytes() == bytes));
    }
}
