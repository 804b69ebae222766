//! Squares of elements, transposed in registers.
//!
//! A square has as many rows and columns as 16 bytes have elements. A vector of several lanes of 16
//! bytes transposes several squares at once, which are side by side in the rows.

use super::scalar::copy;
use crate::kernel::word::Word;

/// Bytes of a row that are written before the next rows: some whole cache lines, because lines of
/// many rows may be in each other's way.
const BAND: usize = 256;

/// Vectors of some lanes of 16 bytes.
pub(super) trait Squares: Copy {
    type Vector: Copy;
    /// Lanes of a vector.
    const LANES: usize;
    /// Loads 16 bytes of each of the first `LANES * N` lines, which begin `stride` bytes apart: of
    /// line `i` to the first lane of vector `i`, of line `i + N` to the next lane, and so on. All
    /// lines from `count` on are the one before. Returns any vectors if `bytes` ends before them.
    fn load<const N: usize>(self, bytes: &[u8], stride: usize, count: usize) -> [Self::Vector; N];
    /// Stores the first `count` vectors, at most `N`, in this order, `stride` bytes apart. Does
    /// nothing if `bytes` ends before them.
    fn store<const N: usize>(self, vectors: [Self::Vector; N], bytes: &mut [u8], stride: usize, count: usize);
    /// Interleaves the elements of each 16 bytes of two vectors: those of the first 8 bytes, and of
    /// the last.
    fn interleave<W: Word>(self, a: Self::Vector, b: Self::Vector) -> [Self::Vector; 2];
}

/// A tile of `rows` rows of `row` elements.
#[derive(Clone, Copy)]
pub(super) struct Tile {
    rows: usize,
    row: usize,
}

impl Tile {
    /// Returns the tile of `rows` rows, at least 1, that has `bytes` bytes.
    #[inline(always)]
    pub(super) fn new<W: Word>(rows: usize, bytes: usize) -> Self {
        Self { rows, row: bytes / W::BYTES / rows.max(1) }
    }

    /// Sets `out` to the elements of `columns`, row by row, in squares of `N` elements each way.
    /// Returns `false`, and does nothing, if too few of these fit in.
    ///
    /// Squares overlap if rows or columns do not end with a whole one.
    ///
    /// * Fewer than `N` columns: a store writes on into the next rows, which later stores set.
    /// * Fewer than `N` rows: a load reads on in the next columns, and these rows are not stored.
    ///
    /// The last elements, where that would be beyond the buffers, are copied one by one.
    #[inline(always)]
    pub(super) fn to_rows<S: Squares, W: Word, const N: usize>(self, s: S, columns: &[u8], out: &mut [u8]) -> bool {
        let Self { rows, row } = self;
        let width = S::LANES * N;
        // the first lines that a vector fits in at
        let lines = |of: usize, vector: usize| match out.len().checked_sub(vector) {
            Some(last) => last / (of * W::BYTES) + 1,
            None => 0,
        };
        let stored_rows = if row < width { rows.min(lines(row, width * W::BYTES)) } else { rows };
        let loaded_columns = if rows < N { row.min(lines(rows, N * W::BYTES)) } else { row };
        let most = [stored_rows, loaded_columns];
        if rows >= N && row >= width {
            self.squares::<S, W, N>(s, most, [N, width], columns, out); // constants
        } else if stored_rows >= rows.min(N) && loaded_columns >= row.min(width) && (S::LANES == 1 || row >= width) {
            self.squares::<S, W, N>(s, most, [rows.min(N), row.min(width)], columns, out);
        } else {
            return false;
        }
        if loaded_columns < row {
            copy::<W>([rows, row], [0..stored_rows, loaded_columns..row], columns, out);
        }
        if stored_rows < rows {
            copy::<W>([rows, row], [stored_rows..rows, 0..row], columns, out);
        }
        true
    }

    /// Transposes the first rows and columns in squares of some rows and columns, at most as many.
    #[inline(always)]
    fn squares<S: Squares, W: Word, const N: usize>(
        self,
        s: S,
        [rows, row]: [usize; 2],
        [height, width]: [usize; 2],
        columns: &[u8],
        out: &mut [u8],
    ) {
        let columns_of_band = BAND / (16 * S::LANES) * width;
        for band in (0..row).step_by(columns_of_band) {
            for r in starts(rows, height) {
                for column in (band..row.min(band + columns_of_band)).step_by(width) {
                    let column = column.min(row - width); // no overflow: there are at least as many
                    let from = columns.get((column * self.rows + r) * W::BYTES..).unwrap_or_default();
                    let to = out.get_mut((r * self.row + column) * W::BYTES..).unwrap_or_default();
                    let square = s.load::<N>(from, self.rows * W::BYTES, width);
                    s.store(transposed::<S, W, N>(s, square), to, self.row * W::BYTES, height);
                }
            }
        }
    }
}

/// Returns where parts of `step` begin that cover `0..count` and do not end beyond it. `count` is
/// at least `step`.
#[inline(always)]
fn starts(count: usize, step: usize) -> impl Iterator<Item = usize> {
    (0..count).step_by(step).map(move |start| start.min(count - step))
}

/// Transposes squares.
///
/// Each round interleaves vectors `N / 2` apart. The top bit of an element's vector so becomes the
/// lowest of its index in 16 bytes, and the top bit of that the lowest of its vector: after as many
/// rounds as `N` has bits below its only one, they have changed places.
#[inline(always)]
fn transposed<S: Squares, W: Word, const N: usize>(s: S, mut square: [S::Vector; N]) -> [S::Vector; N] {
    for _ in 0..N.ilog2() {
        let before = square;
        for i in 0..N / 2 {
            // in bounds: N is even
            [square[2 * i], square[2 * i + 1]] = s.interleave::<W>(before[i], before[i + N / 2]);
        }
    }
    square
}

/// The rest of a tile that no squares fit in.
#[inline(always)]
pub(super) fn elements<W: Word>(tile: Tile, columns: &[u8], out: &mut [u8]) {
    copy::<W>([tile.rows, tile.row], [0..tile.rows, 0..tile.row], columns, out);
}
