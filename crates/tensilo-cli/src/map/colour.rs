//! Colours: a hue for each column, lighter for better compressed chunks.

/// Returns the colour of a chunk of column `column` as `#rrggbb`: mid tones, distinct from black
/// and white.
pub(super) fn colour(column: usize, ratio: f64) -> String {
    /// Adjacent columns get distant hues.
    const GOLDEN_ANGLE: f64 = 137.508;
    const FIRST: f64 = 212.0;
    let hue = (FIRST + (column % 360) as f64 * GOLDEN_ANGLE) % 360.0; // exact: below 360
    let lightness = 0.36 + 0.36 * (ratio.max(1.0).log2() / 3.0).min(1.0);
    hex(hue, 0.6, lightness)
}

/// Returns the colour of structure.
pub(super) fn grey() -> String {
    hex(0.0, 0.0, 0.6)
}

/// Converts hue (degrees), saturation and lightness (0 to 1) to `#rrggbb`.
fn hex(hue: f64, saturation: f64, lightness: f64) -> String {
    let chroma = saturation * lightness.min(1.0 - lightness);
    let channel = |offset: f64| {
        let k = (offset + hue / 30.0) % 12.0;
        let value = lightness - chroma * (k - 3.0).min(9.0 - k).clamp(-1.0, 1.0);
        (value * 255.0).round() as u8 // 0 to 255; `as` saturates
    };
    format!("#{:02x}{:02x}{:02x}", channel(0.0), channel(8.0), channel(4.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hues_are_those_of_the_circle() {
        assert_eq!([0.0, 120.0, 240.0].map(|hue| hex(hue, 1.0, 0.5)), ["#ff0000", "#00ff00", "#0000ff"]);
        assert_eq!((hex(77.0, 0.0, 1.0), hex(77.0, 0.0, 0.0)), ("#ffffff".to_owned(), "#000000".to_owned()));
    }

    #[test]
    fn columns_and_ratios_differ() {
        assert_ne!(colour(0, 1.0), colour(1, 1.0));
        assert_ne!(colour(0, 1.0), colour(0, 2.0));
        assert_eq!(colour(0, 8.0), colour(0, 1e9));
        assert_eq!(colour(0, 0.1), colour(0, 1.0));
    }
}
