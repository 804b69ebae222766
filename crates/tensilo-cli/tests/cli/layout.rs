//! `tensilo layout` of files.

use super::{
    CommandLine, Folder, NAMES, damage, damaged_file, empty_file, folder_of, has, raw_file, sample_file, schema,
    written,
};
use std::fs;
use tensilo::{ColumnBatch, ColumnSchema, DType, Profile, Reader, Schema, Shape, Value, WriterOptions};

/// Returns the drawing of a file, after checking that it is well-formed.
fn svg(folder: &Folder, file: &str, words: &str) -> String {
    let run = folder.run(&format!("layout {file} --svg out.svg --force {words}"));
    assert!(run.code <= i32::from(words.contains("--verify")) && run.text().is_empty(), "{run:?}");
    let svg = fs::read_to_string(folder.path("out.svg")).unwrap();
    check_well_formed(&svg);
    svg
}

/// Checks the XML subset of drawings: nested elements, quoted attributes, escaped text.
#[track_caller]
fn check_well_formed(xml: &str) {
    let mut open = Vec::new();
    for segment in xml.trim_end().split('<').skip(1) {
        let (tag, text) = segment.split_once('>').expect("a tag ends");
        assert!(!text.contains('>'), "{segment}");
        let entities = text.split('&').skip(1).chain(tag.split('&').skip(1));
        for entity in entities {
            assert!(["amp;", "lt;", "gt;", "quot;"].iter().any(|known| entity.starts_with(known)), "{segment}");
        }
        assert!(!segment.chars().any(|c| c.is_control() && c != '\n'), "{segment:?}");
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name), "{segment}"),
            None => {
                assert!(tag.matches('"').count().is_multiple_of(2), "{segment}");
                let name = tag.split([' ', '/']).next().unwrap();
                open.extend((!tag.ends_with('/')).then_some(name));
            }
        }
        assert!(!open.is_empty() || text.trim().is_empty(), "{segment}");
    }
    assert!(xml.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\"") && open.is_empty(), "{open:?}");
}

#[test]
fn a_drawing_names_each_column_and_each_chunk() {
    let folder = folder_of(&["a.tsl"]);
    let drawing = svg(&folder, "a.tsl", "");
    let reader = Reader::open(folder.path("a.tsl")).unwrap();
    for (column, name) in schema().columns.iter().zip(NAMES) {
        has(&drawing, &[&format!(">{name}, {} {}, ", column.dtype, column.shape)]);
        let column = reader.column(name).unwrap();
        for number in 0..column.facts().chunk_count {
            let chunk = column.chunk(number).unwrap().unwrap();
            let (samples, range) = (chunk.samples, chunk.file_range);
            let title = format!("<title>{name}: samples {}..{}, {}, ", samples.start, samples.end, chunk.encoding);
            has(&drawing, &[&title, &format!("bytes {}..{}</title>", range.start, range.end)]);
        }
    }
    has(&drawing, &[">structure, ", " width=\"1200\" "]);
    assert!(!drawing.contains("href") && !drawing.contains("url("), "self-contained");
    has(&svg(&folder, "a.tsl", "--width 700"), &[" width=\"700\" "]);
}

#[test]
fn a_drawing_replaces_a_file_only_by_force_and_is_svg() {
    let folder = folder_of(&["a.tsl"]);
    folder.file("out.svg", b"before");
    folder.fails("layout a.tsl --svg out.svg", 2, "--force");
    folder.fails("layout a.tsl --svg none/out.svg", 3, "out.svg");
    folder.fails("layout missing.tsl --svg out.svg --force", 3, "missing.tsl");
    assert_eq!(fs::read(folder.path("out.svg")).unwrap(), b"before");
    svg(&folder, "a.tsl", "");
    for name in ["a.png", "a.PDF", "a.svgz"] {
        // the file is not even opened
        folder.fails(&format!("layout missing.tsl --svg {name}"), 2, "a.svg");
    }
    assert_eq!(folder.names(), ["a.tsl", "out.svg"]);
    for name in ["drawing", "a.svg", "a.SVG", "a.v2"] {
        folder.done(&format!("layout a.tsl --svg {name}"));
    }
}

#[test]
fn names_cannot_be_markup() {
    let folder = Folder::new();
    let names = ["</title><script>", "a & b \"c\"", "'<&\u{FFFE}"];
    let columns = names.map(|name| ColumnSchema::tensor(name, DType::U8, Shape::scalar()));
    let batch = names.map(|_| ColumnBatch::fixed(3, &[1_u8, 2, 3]));
    let file = written(Schema::new(columns), WriterOptions::new(), |writer| writer.push_batch(&batch).unwrap());
    folder.file("a<b>.tsl", file);
    let drawing = svg(&folder, "a<b>.tsl", "");
    has(&drawing, &["&lt;/title&gt;&lt;script&gt;: samples 0..3", "a &amp; b &quot;c&quot;: samples"]);
}

/// Returns a file of one column in this number of chunks.
fn file_of_chunks(chunks: usize) -> Vec<u8> {
    let schema = Schema::new([ColumnSchema::tensor("values", DType::U8, Shape::fixed(&[256]))]);
    let options = WriterOptions::new().profile(Profile::Raw).chunk_bytes(256);
    let values = vec![7_u8; 256 * chunks];
    written(schema, options, |writer| writer.push_batch(&[ColumnBatch::fixed(chunks, &values)]).unwrap())
}

#[test]
fn maps_are_bounded() {
    let folder = Folder::new();
    folder.file("a.tsl", file_of_chunks(4000));
    folder.file("b.tsl", file_of_chunks(20_000));
    let exact = svg(&folder, "a.tsl", "");
    has(&exact, &["<title>values: samples 3999..4000, raw, 256 B stored, ratio 1.00\n"]);
    let together = svg(&folder, "b.tsl", "");
    has(&together, &["<title>values: ", " chunks, samples "]);
    assert!(together.matches("<rect").count() < 4200, "{}", together.matches("<rect").count());
    let text = folder.text("layout b.tsl");
    assert!(text.lines().count() < 40, "{text}");
    // many columns
    let columns = (0..210).map(|i| ColumnSchema::tensor(format!("column {i}"), DType::U8, Shape::fixed(&[100])));
    let push = |writer: &mut tensilo::Writer<_>| writer.push(&vec![Value::tensor(&[1_u8; 100]); 210]).unwrap();
    folder.file("c.tsl", written(Schema::new(columns), WriterOptions::new(), push));
    let text = folder.text("layout c.tsl");
    has(&text, &["\nz  column 51 ", "\n+  and 158 more columns\n"]);
    assert!(!text.contains("column 52 "), "{text}");
    let drawing = svg(&folder, "c.tsl", "");
    has(&drawing, &[">column 199, ", ">and 10 more columns<", "<title>column 209: samples 0..1, "]);
    assert!(!drawing.contains(">column 200, "));
    // a chunk is drawn even if its block index is damaged
    let mut bytes = raw_file(2, Some(8192));
    damage(&mut bytes, "x", 0);
    folder.file("d.tsl", bytes);
    has(&svg(&folder, "d.tsl", ""), &["<title>x: samples 0..64, raw in blocks, ", "<title>x: samples 64..128, "]);
}

#[test]
fn text_shows_letters_and_a_legend() {
    let folder = folder_of(&["a.tsl"]);
    let text = folder.text("layout a.tsl");
    let lines: Vec<&str> = text.lines().collect();
    let reader = Reader::open(folder.path("a.tsl")).unwrap();
    let chunks: u64 = reader.columns().map(|column| column.facts().chunk_count).sum();
    assert!(lines[0].contains(&format!("{chunks} chunks; each character is 64 bytes")), "{text}");
    assert!(lines[2].trim_start().starts_with("0 ·"), "the file starts with its header: {text}");
    for (letter, name) in ('A'..).zip(NAMES) {
        assert!(lines.iter().any(|line| line.starts_with(&format!("{letter}  {name} "))), "{name}: {text}");
    }
    let map: Vec<&&str> = lines[2..].iter().take_while(|line| !line.is_empty()).collect();
    let cells: u64 =
        map.iter().map(|line| line.trim_start().chars().skip_while(|c| *c != ' ').count() as u64 - 1).sum();
    assert_eq!(cells, reader.file_bytes().div_ceil(64), "{text}");
    has(&text, &["·  structure", "ratio: █"]);
    // lines have the requested width
    folder.file("b.tsl", file_of_chunks(1000));
    for width in [40, 80, 200] {
        let text = folder.text(&format!("layout b.tsl --width {width}"));
        let map = text.lines().skip_while(|line| !line.is_empty()).skip(1).take_while(|line| !line.is_empty());
        assert_eq!(map.map(|line| line.chars().count()).max(), Some(width), "{text}");
    }
    assert_eq!(folder.text("layout b.tsl"), folder.text("layout b.tsl --width 80"));
}

#[test]
fn files_and_samples_without_bytes_are_structure() {
    let folder = Folder::new();
    folder.file("a.tsl", empty_file());
    has(&folder.text("layout a.tsl"), &[" 0 chunks", "A  x "]);
    let drawing = svg(&folder, "a.tsl", "");
    assert!(drawing.contains(">x, bf16 [2], 0 B stored, ratio -, -<") && !drawing.contains("samples 0.."), "{drawing}");
    let schema = Schema::new([ColumnSchema::tensor("none", DType::F32, Shape::fixed(&[0]))]);
    let batch = [ColumnBatch::fixed::<f32>(5, &[])];
    folder.file("none.tsl", written(schema, WriterOptions::new(), |writer| writer.push_batch(&batch).unwrap()));
    has(&svg(&folder, "none.tsl", ""), &[">none, f32 [0], 0 B stored"]);
    folder.done("layout none.tsl");
    folder.file("text.tsl", b"no tensilo file");
    folder.fails("layout text.tsl", 1, "text.tsl");
}

#[test]
fn damage_is_marked_if_requested() {
    let folder = folder_of(&["a.tsl"]);
    folder.file("b.tsl", damaged_file());
    let text = folder.text("layout a.tsl --verify");
    assert!(text.contains("\nnothing is damaged: every byte was checked\n") && !text.contains('!'), "{text}");
    let text = folder.fails("layout b.tsl --verify", 1, "").text();
    let map: String = text.lines().skip(2).take_while(|line| !line.is_empty()).collect();
    let damage = folder.run("verify b.tsl --json").json()["findings"][0].clone();
    let (start, bytes) = (damage["offset"].as_u64().unwrap(), damage["bytes"].as_u64().unwrap());
    assert_eq!(map.matches('!').count() as u64, (start + bytes).div_ceil(64) - start / 64, "{text}");
    has(&text, &["\n!  damaged: 1 range; "]);
    assert!(!folder.text("layout b.tsl").contains('!'), "not requested");
    // a cross in the drawing
    let drawing = svg(&folder, "a.tsl", "--verify");
    assert!(drawing.contains(">nothing is damaged: every byte was checked<") && !drawing.contains("<path "));
    let drawing = svg(&folder, "b.tsl", "--verify");
    assert_eq!(drawing.matches("<path ").count(), 2, "the chunk, in one row, and the legend");
    has(&drawing, &[": chunk, column &quot;", ">damaged: 1 range; "]);
}

#[test]
fn a_file_that_cannot_be_opened_is_drawn_from_its_intact_chunks() {
    let folder = Folder::new();
    let whole = sample_file();
    let mut headless = whole.clone();
    headless[40] ^= 1;
    for bytes in [whole[..whole.len() - 64].to_vec(), headless] {
        folder.file("a.tsl", &bytes);
        folder.fails("layout a.tsl", 1, "layout --verify");
        let text = folder.fails("layout a.tsl --verify", 1, "salvaged").text();
        has(&text, &["structure, or lost", "\n!  damaged: "]);
        for (letter, name) in ('A'..).zip(NAMES) {
            has(&text, &[&format!("\n{letter}  {name} ")]);
        }
        let map: String = text.lines().skip(2).take_while(|line| !line.is_empty()).collect();
        has(&map, &["!", "A", "H"]);
    }
    folder.file("b.tsl", b"nothing of the kind");
    folder.fails("layout b.tsl --verify", 1, "b.tsl");
}
