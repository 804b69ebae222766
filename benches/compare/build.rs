//! Compiles c-blosc2 from the sources in the crate `blosc2-src`.
//!
//! The library that this crate builds would make the comparison unfair:
//!
//! * It uses AVX2 only if the whole program is compiled for AVX2. Here each SIMD kernel is compiled
//!   for its own instruction set, as in c-blosc2's own build, and c-blosc2 picks one at run time.
//!   The program checks that it does (`src/peers/blosc2/simd.rs`).
//! * It contains a second copy of Zstandard, and the linker silently uses one of two copies for all
//!   callers. Here all competitors use the same, newer copy, so no result depends on the version of
//!   Zstandard. LZ4, which c-blosc2 requires, is OpenZL's copy.

use serde_json::Value;
use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The SIMD kernels: the suffix of their source files, the macro that enables them in c-blosc2, and
/// their compiler flags.
const KERNELS: [(&str, &str, &[&str]); 3] = [
    ("-sse2", "SHUFFLE_SSE2_ENABLED", &["-msse2"]),
    ("-avx2", "SHUFFLE_AVX2_ENABLED", &["-mavx2"]),
    ("-avx512", "SHUFFLE_AVX512_ENABLED", &["-mavx512f", "-mavx512bw"]),
];

fn main() -> Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=Cargo.lock");
    let packages = packages()?;
    for name in ["tensilo", "arrow-ipc", "parquet", "pco", "rmp-serde", "safetensors"] {
        let version = package(&packages, name)?["version"].as_str().unwrap_or("");
        println!("cargo:rustc-env={}_VERSION={version}", name.to_uppercase().replace('-', "_"));
    }
    let manifest = package(&packages, "blosc2-src")?["manifest_path"].as_str().unwrap_or("");
    let source = Path::new(manifest).with_file_name("c-blosc2");
    let architecture = env::var("CARGO_CFG_TARGET_ARCH")?;
    let is_x86 = architecture == "x86_64";

    let mut library = compiler(&source, &architecture)?;
    for file in c_files(&source.join("blosc"))? {
        let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or("");
        match KERNELS.iter().find(|(suffix, ..)| stem.ends_with(suffix)) {
            Some((_, _, flags)) if is_x86 => {
                let mut kernel = compiler(&source, &architecture)?;
                kernel.file(&file);
                for flag in *flags {
                    kernel.flag(flag);
                }
                library.objects(kernel.compile_intermediates());
            }
            Some(_) => {}
            None if stem.ends_with("-altivec") || stem == "bitshuffle-neon" => {}
            None if stem == "shuffle-neon" && architecture != "aarch64" => {}
            None => _ = library.file(&file),
        }
    }
    library.compile("tensilo_compare_blosc2");
    Ok(())
}

/// Returns a compiler with the options that all files share.
fn compiler(source: &Path, architecture: &str) -> Result<cc::Build> {
    let mut build = cc::Build::new();
    build.includes([source.join("include"), source.join("blosc")]).std("gnu99").warnings(false);
    build.includes(env::var("DEP_ZSTD_INCLUDE")?.split(';')).define("HAVE_ZSTD", None);
    build.include(env::var("DEP_LZ4_INCLUDE")?);
    match architecture {
        "x86_64" => KERNELS.iter().for_each(|(_, name, _)| _ = build.define(name, None)),
        "aarch64" => _ = build.define("SHUFFLE_NEON_ENABLED", None).flag("-flax-vector-conversions"),
        _ => {}
    }
    Ok(build)
}

fn c_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        files.push(entry?.path());
    }
    files.retain(|path| path.extension().is_some_and(|extension| extension == "c"));
    files.sort();
    Ok(files)
}

/// Returns Cargo's metadata of all packages of this program, with versions and source folders.
fn packages() -> Result<Vec<Value>> {
    let output = Command::new(env::var("CARGO")?)
        .args(["metadata", "--format-version=1", "--locked", "--offline", "--filter-platform", &env::var("TARGET")?])
        .arg("--manifest-path")
        .arg(Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("Cargo.toml"))
        .output()?;
    let mut metadata: Value = serde_json::from_slice(&output.stdout)
        .map_err(|_| format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr)))?;
    Ok(metadata["packages"].as_array_mut().map(std::mem::take).unwrap_or_default())
}

fn package<'a>(packages: &'a [Value], name: &str) -> Result<&'a Value> {
    let found = packages.iter().find(|package| package["name"] == name);
    Ok(found.ok_or_else(|| format!("{name} is not among the dependencies"))?)
}
