//! The results of the comparison as Markdown, JSON and SVG.

mod json;
mod markdown;
mod svg;

use crate::peers::blosc2::simd;
use crate::run::{Settings, Table};
use std::fs;

pub struct Report {
    pub cpu: String,
    /// The kernels that tensilo uses.
    pub kernels: &'static str,
    pub settings: Settings,
    pub simd: Option<simd::Report>,
    pub tables: Vec<Table>,
}

/// Returns the model and the number of the CPUs of this machine.
pub fn cpu_model() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let values = |key: &str| -> Vec<String> {
        let pairs = info.lines().filter_map(|line| line.split_once(':'));
        pairs.filter(|(name, _)| name.trim() == key).map(|(_, value)| value.trim().to_owned()).collect()
    };
    let models = values("model name");
    let Some(model) = models.first() else { return format!("unknown ({})", std::env::consts::ARCH) };
    let number = |key| values(key).into_iter().next().unwrap_or_else(|| "?".to_owned());
    format!("{model} (family {}, model {}), {} logical CPUs", number("cpu family"), number("model"), models.len())
}

/// Returns the name of the kernels that tensilo uses: `TENSILO_KERNELS` if they are available, else
/// the kernels for the widest instruction set of this CPU.
pub fn kernels() -> &'static str {
    let available = available_kernels();
    let requested = std::env::var("TENSILO_KERNELS").unwrap_or_default();
    let chosen = available.iter().find(|name| **name == requested).or(available.last());
    chosen.copied().unwrap_or("scalar")
}

/// Returns the kernels for this CPU, the slowest first. Uses the same conditions as tensilo's
/// `kernel::compile`.
#[cfg(target_arch = "x86_64")]
fn available_kernels() -> Vec<&'static str> {
    macro_rules! all {
        ($($feature:tt)*) => { true $(&& is_x86_feature_detected!($feature))* };
    }
    let avx2 = all!("avx2" "bmi1" "bmi2" "lzcnt" "popcnt");
    let avx512 = avx2 && all!("avx512f" "avx512bw" "avx512cd" "avx512dq" "avx512vl" "avx512vbmi" "avx512vbmi2" "gfni");
    let names = [("scalar", true), ("avx2", avx2), ("avx512", avx512)];
    names.into_iter().filter(|(_, is_available)| *is_available).map(|(name, _)| name).collect()
}

#[cfg(not(target_arch = "x86_64"))]
fn available_kernels() -> Vec<&'static str> {
    if cfg!(target_arch = "aarch64") { vec!["scalar", "neon"] } else { vec!["scalar"] }
}
