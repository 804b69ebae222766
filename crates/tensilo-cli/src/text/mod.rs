//! Text for people: numbers, tables, and lines of a given width.

mod cast_table;
mod damage_line;
pub(crate) mod human;
mod shape_table;
mod table;
mod width;

pub(crate) use cast_table::write_casts;
pub(crate) use damage_line::damage_line;
pub(crate) use shape_table::write_found;
pub(crate) use table::{Cells, Table};
pub(crate) use width::{columns, cut_end, wrap};
