//! The description of a damage in one line.

use super::human;
use tensilo::verify::Damage;

/// Returns `bytes 4160..4672: chunk, column "x", samples 0..32: MESSAGE (rule )`.
pub(crate) fn damage_line(damage: &Damage) -> String {
    let mut line = format!("bytes {}..{}", damage.file_range.start, damage.file_range.end);
    let mut separator = ": ";
    let mut add = |text: String| {
        line.push_str(separator);
        line.push_str(&text);
        separator = ", ";
    };
    if let Some(region) = damage.region {
        add(region.to_string());
    }
    if let Some(column) = &damage.column {
        add(format!("column \"{}\"", human::excerpt(column)));
    }
    if let Some(samples) = &damage.samples {
        add(format!("samples {}..{}", samples.start, samples.end));
    }
    line.push_str(": ");
    line.push_str(damage.error.message());
    match damage.error.rule() {
        Some(rule) => format!("{line} (rule {rule})"),
        None => line,
    }
}
