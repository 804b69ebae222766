//! Chapter 3: columns, their shapes, casts and metadata.
//!
//! A [`ColumnSchema`] says what the samples of a column are: items of a [`Shape`], or lists of
//! items, nested to several levels.
//!
//! Code that reads and writes chunks does not use the column schema directly. It uses the column's
//! [`Layout`], which states the same facts as numbers: the size of an item, the number of varying
//! extents, the number of levels. A layout exists only if the item size is within the limits, so
//! code that has a layout does not check the size again.

use crate::element::dtype::DType;
use crate::{Error, Result, limits};
use std::collections::BTreeMap;
use std::fmt;

/// The metadata key for the path of a column (chapter 3.4, `path.rs`).
pub(crate) const PATH_KEY: &str = "tensilo.path";

/// User metadata: a map from strings to strings.
pub type Metadata = BTreeMap<String, String>;

/// The length of one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Extent {
    /// The same extent in every item; 0 is allowed.
    Fixed(u32),
    /// An extent that may differ from item to item.
    Varying,
}

/// The shape of one item: its extents, outermost first. Elements are in row-major order. In a
/// column that is not nested, each sample is one item.
///
/// A shape without dimensions is a scalar. A shape with at least one varying extent is *ragged*;
/// any other shape is *fixed*.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Shape(Vec<Extent>);

impl Shape {
    /// Returns a shape with these extents, outermost first.
    pub fn new(extents: impl IntoIterator<Item = Extent>) -> Self {
        Self(extents.into_iter().collect())
    }

    /// Returns the shape of one element.
    pub fn scalar() -> Self {
        Self::default()
    }

    /// Returns a shape whose extents are the same in every item.
    pub fn fixed(extents: &[u32]) -> Self {
        Self::new(extents.iter().map(|&extent| Extent::Fixed(extent)))
    }

    /// Returns a shape with one varying extent, for bytes, text and lists of numbers.
    pub fn ragged() -> Self {
        Self::new([Extent::Varying])
    }

    /// Returns the extents, outermost first.
    pub fn extents(&self) -> &[Extent] {
        &self.0
    }

    /// Returns the number of dimensions.
    pub fn ndim(&self) -> usize {
        self.0.len()
    }

    /// Returns the number of varying extents.
    pub fn varying_count(&self) -> usize {
        self.0.iter().filter(|extent| **extent == Extent::Varying).count()
    }

    /// Returns whether any extent varies.
    pub fn is_ragged(&self) -> bool {
        self.varying_count() > 0
    }

    /// Returns the product of the fixed extents, or `None` if it overflows. For a fixed shape, the
    /// product is the number of elements in one item.
    pub fn inner_elements(&self) -> Option<u64> {
        let fixed = || {
            self.0.iter().filter_map(|extent| match extent {
                Extent::Fixed(extent) => Some(u64::from(*extent)),
                Extent::Varying => None,
            })
        };
        if fixed().any(|extent| extent == 0) {
            return Some(0);
        }
        fixed().try_fold(1_u64, u64::checked_mul)
    }

    /// Adds an innermost extent: each element of an item becomes a row of `extent` elements.
    pub(crate) fn with_inner(mut self, extent: u32) -> Self {
        self.0.push(Extent::Fixed(extent));
        self
    }

    /// Returns the number of elements in a row (the last extent) and in a matrix (the product of
    /// the last two extents). Either number is 0 if its extents are missing or vary.
    pub(crate) fn strides(&self) -> [u32; 2] {
        let mut inner = self.0.iter().rev().map_while(|extent| match extent {
            Extent::Fixed(extent) => Some(*extent),
            Extent::Varying => None,
        });
        let row = inner.next().unwrap_or(0);
        let matrix = inner.next().and_then(|extent| extent.checked_mul(row)).unwrap_or(0);
        [row, matrix]
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, extent) in self.0.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            match extent {
                Extent::Fixed(extent) => write!(f, "{comma}{extent}")?,
                Extent::Varying => write!(f, "{comma}*")?,
            }
        }
        f.write_str("]")
    }
}

/// One level of lists in a nested column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ListLevel {
    /// Whether the members of these lists may be null. At the last level, the members are items;
    /// at any other level, they are the lists of the next level.
    pub nullable: bool,
}

/// A cast: when a column is written, its values are rounded from another type.
///
/// Values are rounded to nearest, ties to even. NaN stays NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CastSpec {
    /// The type before the cast.
    pub source: CastSource,
}

/// The type of values before a cast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CastSource {
    /// Numbers of another type. The caller pushes them, and the writer rounds them.
    Type(DType),
    /// Decimals, which no element type represents. An import rounds them and pushes the results.
    Decimal,
}

impl CastSource {
    /// Returns the name of the source in the specification: the name of the type, or `"decimal"`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Type(dtype) => dtype.name(),
            Self::Decimal => "decimal",
        }
    }

    /// Returns the source with this [`name`](Self::name).
    pub fn of_name(name: &str) -> Option<Self> {
        let sources = DType::ALL.into_iter().map(Self::Type).chain([Self::Decimal]);
        sources.into_iter().find(|source| source.name() == name)
    }

    /// Returns the type of the pushed numbers, or `None` for decimals.
    pub fn dtype(self) -> Option<DType> {
        match self {
            Self::Type(dtype) => Some(dtype),
            Self::Decimal => None,
        }
    }
}

impl From<DType> for CastSource {
    fn from(dtype: DType) -> Self {
        Self::Type(dtype)
    }
}

impl fmt::Display for CastSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One column: its name, the type and shape of its items, and metadata.
///
/// Each sample is one item. If the column has [levels](ColumnSchema::levels), each sample is a list
/// of items or of lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSchema {
    /// The name. It is unique in the file, has at most 1,024 bytes, and does not contain control
    /// characters.
    pub name: String,
    /// The type of the stored elements.
    pub dtype: DType,
    /// The shape of one item.
    pub shape: Shape,
    /// Whether samples may be null.
    pub nullable: bool,
    /// The levels of lists, outermost first. There are at most [`limits::LEVELS`]. The lists of the
    /// first level are the samples, and [`ColumnSchema::nullable`] says whether they may be null.
    /// In a column without levels, each sample is one item.
    pub levels: Vec<ListLevel>,
    /// The cast, if values are rounded when they are written.
    pub cast: Option<CastSpec>,
    /// The column's own metadata.
    pub metadata: Metadata,
}

impl ColumnSchema {
    /// Returns a column of tensors. It is not nullable, and its metadata is empty.
    pub fn tensor(name: impl Into<String>, dtype: DType, shape: Shape) -> Self {
        let name = name.into();
        Self { name, dtype, shape, nullable: false, levels: Vec::new(), cast: None, metadata: Metadata::new() }
    }

    /// Returns a column of text.
    pub fn utf8(name: impl Into<String>) -> Self {
        Self::tensor(name, DType::Utf8, Shape::ragged())
    }

    /// Returns a column of byte strings.
    pub fn bytes(name: impl Into<String>) -> Self {
        Self::tensor(name, DType::Bytes, Shape::ragged())
    }

    /// Makes samples nullable.
    pub fn nullable(mut self) -> Self {
        self.nullable = true;
        self
    }

    /// Returns a column whose samples are lists of this column's samples. The lists are not
    /// nullable. Their members are nullable if this column is nullable.
    ///
    /// ```
    /// use tensilo::ColumnSchema;
    ///
    /// let words = ColumnSchema::utf8("words").nullable().list(); // lists of texts and nulls
    /// assert!(words.levels[0].nullable && !words.nullable);
    /// ```
    pub fn list(mut self) -> Self {
        self.levels.insert(0, ListLevel { nullable: self.nullable });
        self.nullable = false;
        self
    }

    /// Adds a cast: values of type `source` are rounded to the column's type.
    pub fn cast_from(mut self, source: impl Into<CastSource>) -> Self {
        self.cast = Some(CastSpec { source: source.into() });
        self
    }

    /// Returns the name of the sample type, without the shape: the element type, wrapped in one
    /// `list<>` for each level. If [`ColumnSchema::is_struct_nulls`] holds, the name
    /// `struct nulls` replaces the element type.
    ///
    /// ```
    /// use tensilo::ColumnSchema;
    ///
    /// assert_eq!(ColumnSchema::utf8("words").list().list().type_name(), "list<list<utf8>>");
    /// ```
    pub fn type_name(&self) -> String {
        let item = if self.is_struct_nulls() { "struct nulls".to_owned() } else { self.dtype.to_string() };
        self.levels.iter().fold(item, |members, _| format!("list<{members}>"))
    }

    /// Returns whether the type and the metadata say that the column stores the nulls of a struct.
    /// The fields of such a struct are other columns, so this column has no elements. Whether its
    /// path is used depends on the other columns; see
    /// [`FieldNode::of_columns`](crate::nested::FieldNode::of_columns).
    pub fn is_struct_nulls(&self) -> bool {
        self.dtype == DType::Bool && self.shape.extents() == [Extent::Fixed(0)] && self.metadata.contains_key(PATH_KEY)
    }

    /// Returns the path in the metadata. Chapter 3.4 says when a path is ignored.
    pub(crate) fn path(&self) -> Option<&str> {
        self.metadata.get(PATH_KEY).map(String::as_str)
    }

    /// Returns the word for an item in messages.
    pub(crate) fn item_name(&self) -> &'static str {
        if self.levels.is_empty() { "sample" } else { "item" }
    }

    /// Returns the type of pushed values: the column's type, or the source of its cast.
    pub fn pushed_dtype(&self) -> DType {
        self.cast.and_then(|cast| cast.source.dtype()).unwrap_or(self.dtype)
    }

    /// Returns the layout of samples in chunks. Fails if a sample exceeds the size limit.
    pub(crate) fn layout(&self) -> Result<Layout> {
        let inner_bytes = self
            .shape
            .inner_elements()
            .and_then(|elements| elements.checked_mul(u64::try_from(self.dtype.element_bytes()).ok()?))
            .filter(|&bytes| bytes <= u64::from(limits::CHUNK_BYTES))
            .and_then(|bytes| usize::try_from(bytes).ok())
            .ok_or_else(|| {
                let message = format!("a sample of shape {} is larger than {} bytes", self.shape, limits::CHUNK_BYTES);
                Error::over_limit(message).with_column(&self.name)
            })?;
        Ok(Layout {
            dtype: self.dtype,
            nullable: self.nullable,
            element_bytes: self.dtype.coded_bytes(),
            inner_bytes,
            varying: self.shape.varying_count(),
            levels: self.levels.len(),
            nullable_levels: nullable_levels(&self.levels),
            strides: match self.dtype {
                DType::Complex64 => self.shape.clone().with_inner(2).strides(),
                _ => self.shape.strides(),
            },
        })
    }

    /// Fails if this release does not support the type of the elements.
    pub(crate) fn check_known(&self) -> Result<()> {
        let DType::Unknown { code, .. } = self.dtype else { return Ok(()) };
        let message = format!(
            "the elements have dtype {code}, which this release does not support; read the column with a newer \
             tensilo, or read only the other columns"
        );
        Err(Error::too_new_dtype(message).with_column(&self.name))
    }
}

/// The layout of a column's samples in a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub dtype: DType,
    pub nullable: bool,
    /// `w` of chapter 5: the size, in bytes, of the unit that encodings treat as one element. For
    /// complex numbers, the unit is half of an element.
    pub element_bytes: usize,
    /// `inner x w`, in bytes: the size of a fixed item. The size of a ragged item is this size
    /// times the item's count (chapter 4.3). At most [`limits::CHUNK_BYTES`].
    pub inner_bytes: usize,
    /// `V`: the number of varying extents.
    pub varying: usize,
    /// The numbers of elements in a row and in a matrix, as `Shape::strides` returns them. A
    /// complex number counts as a row of 2 elements.
    pub strides: [u32; 2],
    /// `L`: the number of levels of lists; at most [`limits::LEVELS`].
    pub levels: usize,
    /// `nullable_levels`: bit `k - 1` is set if entries of level `k` may be null.
    pub nullable_levels: u16,
}

/// Returns the field `nullable_levels` for at most [`limits::LEVELS`] levels.
pub(super) fn nullable_levels(levels: &[ListLevel]) -> u16 {
    levels.iter().rev().fold(0, |bits, level| bits << 1 | u16::from(level.nullable))
}

impl Layout {
    pub(crate) fn is_nested(&self) -> bool {
        self.levels > 0
    }

    /// Returns the word for an item in messages.
    pub(crate) fn item_name(&self) -> &'static str {
        if self.is_nested() { "item" } else { "sample" }
    }

    /// Returns the size of a null sample in the values, in bytes (R-4.8). A fixed sample is filled
    /// with zeros; a ragged sample or a list takes no bytes.
    pub(crate) fn null_value_bytes(&self) -> usize {
        if self.has_shape() { 0 } else { self.inner_bytes }
    }

    /// Returns the size of a null sample in the shape, in bytes. A list stores only its end there.
    pub(crate) fn null_shape_bytes(&self) -> usize {
        if self.is_nested() { 4 } else { self.shape_bytes() }
    }

    /// Returns whether chunks have a shape part.
    pub(crate) fn has_shape(&self) -> bool {
        self.is_ragged() || self.is_nested()
    }

    /// Returns whether entries of a level may be null. The entries of level 0 are the samples.
    pub(crate) fn may_be_null(&self, level: usize) -> bool {
        match level.checked_sub(1) {
            Some(bit) => self.nullable_levels >> bit & 1 == 1, // there are at most 16 levels
            None => self.nullable,
        }
    }

    /// Returns the maximum number of items in a chunk. R-4.12 limits the number of items that take
    /// no bytes.
    pub(crate) fn max_items(&self) -> usize {
        let is_bounded = self.is_nested() && self.varying == 0 && self.inner_bytes == 0;
        if is_bounded { usize::try_from(limits::EMPTY_ITEMS).unwrap_or(usize::MAX) } else { usize::MAX }
    }

    /// Returns whether any entry may be null.
    pub(crate) fn may_have_nulls(&self) -> bool {
        self.nullable || self.nullable_levels != 0
    }

    pub(crate) fn is_ragged(&self) -> bool {
        self.varying > 0
    }

    /// Returns the decoded size of one item in the shape part, in bytes. The shape part has the
    /// item's end and, if several extents vary, the extents.
    pub(crate) fn shape_bytes(&self) -> usize {
        match self.varying {
            0 => 0,
            1 => 4,
            varying => 4 * (varying + 1), // at most 4 x 17
        }
    }
}
