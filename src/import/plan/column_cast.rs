//! What a cast changes in the plan of a column: the values that are pushed, the shape, and the
//! type that the metadata state.

use super::column::Column;
use super::value_cast::ValueCast;
use crate::arrow_type::{self, ArrowType, CAST_TYPE};
use crate::import::input_column::Level;
use crate::{DType, Error, Metadata, Result, Shape};

impl Column {
    /// Makes its values numbers of another type. A date, time, timestamp, duration or interval
    /// becomes the counts that it is stored as.
    pub(in crate::import) fn cast_to(&mut self, target: DType) -> Result<()> {
        let source = self.kind.dtype;
        if !target.is_number() {
            return Err(Error::bad_argument(format!(
                "a cast to {target}: only types of numbers, such as f32, can be the target"
            )));
        }
        if !source.is_number() {
            return Err(Error::bad_argument(format!("a cast of {source} values: only numbers are cast")));
        }
        (self.cast, self.value_cast) = (None, None);
        let kept = self.metadata.get(arrow_type::KEY).cloned();
        if let Some((scale, extent)) = self.decimals() {
            self.value_cast = Some(ValueCast { source, scale: Some(scale), extent, target });
            if extent > 1 {
                self.drop_innermost();
            }
            self.kind.dtype = target;
        } else if source != target && target.is_float() {
            self.cast = Some(target);
        } else if source != target {
            self.value_cast = Some(ValueCast { source, scale: None, extent: 1, target });
            self.kind.dtype = target;
        }
        let changed = self.value_cast.map(|_| source.name().to_owned());
        self.source_type = kept.or(changed);
        Ok(())
    }

    /// Returns the scale of its decimals, and the elements that each is stored as. `None`: they are
    /// no decimals.
    fn decimals(&self) -> Option<(i8, usize)> {
        let kept = ArrowType::of(&self.metadata)?;
        let ArrowType::Decimal(_, _, scale) = kept else { return None };
        let stored = kept.stored_element().filter(|stored| stored.dtype == self.kind.dtype)?;
        match stored.extent {
            None => Some((scale, 1)),
            Some(extent) if self.kind.levels.last() == Some(&Level::Fixed(vec![extent])) => {
                Some((scale, usize::try_from(extent).ok()?))
            }
            Some(_) => None,
        }
    }

    /// Drops the dimension of the bytes of a decimal.
    fn drop_innermost(&mut self) {
        self.kind.levels.pop();
        self.kind.element_extent = None;
        if let Some(shape) = &mut self.shape {
            let outer = shape.extents().split_last().map_or(&[][..], |(_, outer)| outer);
            *shape = Shape::new(outer.iter().copied());
        }
    }

    /// Casts the values as those of a file's column with these metadata were cast, if they are of
    /// the same type, or decimals too.
    pub(in crate::import) fn cast_like(&mut self, metadata: &Metadata, target: DType) {
        let Some(text) = metadata.get(CAST_TYPE) else { return };
        if self.kind.instants && is_of_one_zone(ArrowType::of(&self.metadata), ArrowType::from_text(text)) {
            self.metadata.insert(arrow_type::KEY.to_owned(), text.clone());
        }
        let own = self.metadata.get(arrow_type::KEY).map_or(self.kind.dtype.name(), String::as_str);
        let is_decimal = |text: &str| matches!(ArrowType::from_text(text), Some(ArrowType::Decimal(..)));
        if own == text || (is_decimal(own) && is_decimal(text)) {
            // a type that cannot be cast is then reported as another one
            let _ = self.cast_to(target);
        }
    }
}

/// Returns whether both are timestamps of one zone, in whatever units.
fn is_of_one_zone(a: Option<ArrowType>, b: Option<ArrowType>) -> bool {
    match (a, b) {
        (Some(ArrowType::Timestamp(_, a)), Some(ArrowType::Timestamp(_, b))) => a == b,
        _ => false,
    }
}
