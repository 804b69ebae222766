//! The results of the comparison as Markdown, JSON and SVG.

mod json;
mod markdown;
mod svg;

use crate::peers::blosc2::simd;
use crate::run::{Settings, Table};
use std::fs;

pub struct Report {
    pub cpu: String,
    pub settings: Settings,
    pub simd: Option<simd::Report>,
    pub tables: Vec<Table>,
}

/// The model of this machine's CPU, and how many of them.
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
