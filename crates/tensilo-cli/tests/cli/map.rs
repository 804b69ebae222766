//! `tensilo map`

use super::{
    Folder, SampleFile, check_warning_of_unfinished_file, damaged_file, empty_file, on, raw_file, sample_file, schema,
};
use std::fs;
use std::path::Path;
use tensilo::sink::Stream;
use tensilo::{ColumnBatch, ColumnSchema, DType, Profile, Reader, Schema, Shape, Value, Writer, WriterOptions};

const NAMES: [&str; 8] = ["x", "e", "t", "b", "r", "flag", "n", "h"];

/// Returns the drawing of a file, after checking that it is well-formed.
fn svg(folder: &Folder, file: &Path, words: &str) -> String {
    let out = folder.path("out.svg");
    let run = on("map", file, &format!("--svg {} --force {words}", out.display())).done();
    assert_eq!(run.text(), "");
    let svg = fs::read_to_string(out).unwrap();
    check_well_formed(&svg);
    svg
}

/// Checks the subset of XML that the drawing uses: nested elements, quoted attributes, escaped
/// text.
#[track_caller]
fn check_well_formed(xml: &str) {
    let mut open = Vec::new();
    for piece in xml.trim_end().split('<').skip(1) {
        let (tag, text) = piece.split_once('>').expect("a tag ends");
        assert!(!text.contains('>'), "{piece}");
        let entities = text.split('&').skip(1).chain(tag.split('&').skip(1));
        for entity in entities {
            assert!(["amp;", "lt;", "gt;", "quot;"].iter().any(|known| entity.starts_with(known)), "{piece}");
        }
        assert!(!piece.chars().any(|c| c.is_control() && c != '\n'), "{piece:?}");
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name), "{piece}"),
            None => {
                assert!(tag.matches('"').count().is_multiple_of(2), "{piece}");
                let name = tag.split([' ', '/']).next().unwrap();
                let attributes = tag.split('"').step_by(2).map(|part| part.matches('=').count());
                assert_eq!(attributes.sum::<usize>(), tag.matches('"').count() / 2, "{piece}");
                open.extend((!tag.ends_with('/')).then_some(name));
            }
        }
        assert!(!open.is_empty() || text.trim().is_empty(), "{piece}");
    }
    assert!(xml.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\"") && open.is_empty(), "{open:?}");
}

#[test]
fn a_drawing_names_each_column_and_each_chunk() {
    let folder = Folder::new();
    let path = folder.samples("a.tsl");
    let svg = svg(&folder, &path, "");
    let reader = Reader::open(&path).unwrap();
    for name in NAMES {
        assert!(svg.contains(&format!("<title>{name}: samples 0..")), "{name}");
        let column = reader.column(name).unwrap();
        for number in 0..column.facts().chunk_count {
            let chunk = column.chunk(number).unwrap().unwrap();
            let (samples, range) = (chunk.samples, chunk.file_range);
            let title = format!("<title>{name}: samples {}..{}, {}, ", samples.start, samples.end, chunk.encoding);
            assert!(svg.contains(&title), "{title}");
            assert!(svg.contains(&format!("bytes {}..{}</title>", range.start, range.end)), "{title}");
        }
    }
    for (column, name) in schema().columns.iter().zip(NAMES) {
        assert!(svg.contains(&format!(">{name}, {} {}, ", column.dtype, column.shape)), "legend of {name}");
    }
    assert!(svg.contains(">structure, ") && svg.contains("ratio 1<"));
    assert!(!svg.contains("href") && !svg.contains("url("), "self-contained");
}

#[test]
fn a_drawing_is_as_wide_as_was_asked_for() {
    let folder = Folder::new();
    let path = folder.samples("a.tsl");
    assert!(svg(&folder, &path, "").contains(" width=\"1200\" "));
    assert!(svg(&folder, &path, "--width 700").contains(" width=\"700\" "));
}

#[test]
fn a_drawing_replaces_a_file_only_by_force() {
    let folder = Folder::new();
    let path = folder.samples("a.tsl");
    let out = folder.file("out.svg", b"before");
    on("map", &path, &format!("--svg {}", out.display())).failed(2, "--force");
    assert_eq!(fs::read(&out).unwrap(), b"before");
    svg(&folder, &path, "");
    on("map", &path, &format!("--svg {}", folder.path("none").join("out.svg").display())).failed(3, "out.svg");
    on("map", &folder.path("missing.tsl"), &format!("--svg {} --force", out.display())).failed(3, "missing.tsl");
    assert!(fs::read_to_string(&out).unwrap().starts_with("<svg"), "what failed has replaced nothing");
    assert_eq!(folder.names(), ["a.tsl", "out.svg"]);
}

#[test]
fn names_cannot_be_markup() {
    let folder = Folder::new();
    let names = ["</title><script>", "a & b \"c\"", "'<&\u{FFFE}"];
    let columns = names.map(|name| ColumnSchema::tensor(name, DType::U8, Shape::scalar()));
    let mut writer = Writer::new(Stream(Vec::new()), Schema::new(columns), &WriterOptions::new()).unwrap();
    writer.push_batch(&names.map(|_| ColumnBatch::fixed(3, &[1_u8, 2, 3]))).unwrap();
    let path = folder.file("a<b>.tsl", writer.into_bytes().unwrap());
    let svg = svg(&folder, &path, "");
    assert!(
        svg.contains("&lt;/title&gt;&lt;script&gt;: samples 0..3") && svg.contains("a &amp; b &quot;c&quot;: samples")
    );
}

/// Returns a file of one column in this number of chunks.
fn file_of_chunks(chunks: usize) -> Vec<u8> {
    let schema = Schema::new([ColumnSchema::tensor("values", DType::U8, Shape::fixed(&[256]))]);
    let options = WriterOptions::new().profile(Profile::Raw).chunk_bytes(256);
    let mut writer = Writer::new(Stream(Vec::new()), schema, &options).unwrap();
    writer.push_batch(&[ColumnBatch::fixed(chunks, &vec![7_u8; 256 * chunks])]).unwrap();
    writer.into_bytes().unwrap()
}

#[test]
fn maps_of_files_with_many_chunks_are_bounded() {
    let folder = Folder::new();
    let exact = svg(&folder, &folder.file("a.tsl", file_of_chunks(4000)), "");
    assert!(exact.contains("<title>values: samples 3999..4000, raw, 256 B stored, ratio 1.00\n"));
    let path = folder.file("b.tsl", file_of_chunks(20_000));
    let together = svg(&folder, &path, "");
    assert!(together.contains("<title>values: ") && together.contains(" chunks, samples "));
    assert!(together.matches("<rect").count() < 4200, "{}", together.matches("<rect").count());
    let text = on("map", &path, "").done().text();
    assert!(text.lines().count() < 40, "{text}");
}

#[test]
fn a_chunk_in_blocks_is_drawn_as_its_front_and_its_blocks() {
    let folder = Folder::new();
    let drawing = svg(&folder, &folder.file("a.tsl", raw_file(2, Some(8192))), "");
    assert!(drawing.contains("<title>x: front of 8 blocks, samples 0..64, raw in blocks, 128 B stored, ratio -\n"));
    for (number, samples) in [(1, "64..72"), (8, "120..128")] {
        let due =
            format!("<title>x: block {number} of 8, samples {samples}, raw in blocks, 8.2 kB stored, ratio 1.00\n");
        assert!(drawing.contains(&due), "{due}: {drawing}");
    }
    assert_eq!(drawing.matches("<title>x: ").count(), 2 * 9);
    // one front is damaged: its chunk is drawn whole
    let mut bytes = raw_file(2, Some(8192));
    let chunk = Reader::from_bytes(bytes.clone()).unwrap().column("x").unwrap().chunk(0).unwrap().unwrap();
    bytes[chunk.file_range.start as usize] ^= 1;
    let drawing = svg(&folder, &folder.file("b.tsl", bytes), "");
    assert!(drawing.contains("<title>x: samples 0..64, raw in blocks, "));
    assert_eq!(drawing.matches("<title>x: ").count(), 1 + 9);
    // more blocks than tiles
    let drawing = svg(&folder, &folder.file("c.tsl", raw_file(500, Some(8192))), "");
    assert!(!drawing.contains("block 1 of"));
    // some cross the end of a row
    assert!((500..540).contains(&drawing.matches("<title>x: samples ").count()));
}

#[test]
fn legends_of_files_with_many_columns_are_bounded() {
    let folder = Folder::new();
    let columns = (0..210).map(|i| ColumnSchema::tensor(format!("column {i}"), DType::U8, Shape::fixed(&[100])));
    let mut writer = Writer::new(Stream(Vec::new()), Schema::new(columns), &WriterOptions::new()).unwrap();
    writer.push(&vec![Value::tensor(&[1_u8; 100]); 210]).unwrap();
    let path = folder.file("a.tsl", writer.into_bytes().unwrap());
    let text = on("map", &path, "").done().text();
    assert!(text.contains("\nz  column 51 ") && !text.contains("column 52 "), "{text}");
    assert!(text.contains("\n+  and 158 more columns\n"), "{text}");
    let svg = svg(&folder, &path, "");
    assert!(svg.contains(">column 199, ") && !svg.contains(">column 200, ") && svg.contains(">and 10 more columns<"));
    assert!(svg.contains("<title>column 209: samples 0..1, "));
}

#[test]
fn text_shows_letters_and_a_legend() {
    let folder = Folder::new();
    let path = folder.samples("a.tsl");
    let text = on("map", &path, "").done().text();
    let lines: Vec<&str> = text.lines().collect();
    let chunks: u64 = Reader::open(&path).unwrap().columns().map(|column| column.facts().chunk_count).sum();
    assert!(lines[0].contains(&format!("{chunks} chunks; a character is 64 bytes")), "{text}");
    assert!(lines[2].trim_start().starts_with("0 ·"), "the file begins with its header: {text}");
    for (letter, name) in ('A'..).zip(NAMES) {
        assert!(lines.iter().any(|line| line.starts_with(&format!("{letter}  {name} "))), "{name}: {text}");
    }
    let map: Vec<&&str> = lines[2..].iter().take_while(|line| !line.is_empty()).collect();
    let cells: u64 =
        map.iter().map(|line| line.trim_start().chars().skip_while(|c| *c != ' ').count() as u64 - 1).sum();
    assert_eq!(cells, fs::metadata(&path).unwrap().len().div_ceil(64), "{text}");
    assert!(text.contains("·  structure") && text.contains("ratio: █"), "{text}");
}

#[test]
fn lines_are_as_wide_as_was_asked_for() {
    let folder = Folder::new();
    let path = folder.file("a.tsl", file_of_chunks(1000));
    for width in [40, 80, 200] {
        let text = on("map", &path, &format!("--width {width}")).done().text();
        let map = text.lines().skip_while(|line| !line.is_empty()).skip(1).take_while(|line| !line.is_empty());
        let widest = map.map(|line| line.chars().count());
        assert_eq!(widest.max(), Some(width), "{text}");
    }
    let default = on("map", &path, "").done().text();
    assert_eq!(default, on("map", &path, "--width 80").done().text());
}

#[test]
fn a_file_without_samples_is_structure() {
    let folder = Folder::new();
    let path = folder.file("a.tsl", empty_file());
    let text = on("map", &path, "").done().text();
    assert!(text.contains(" 0 chunks") && text.contains("A  x "), "{text}");
    let svg = svg(&folder, &path, "");
    assert!(svg.contains(">x, bf16 [2], 0 B stored, ratio -, -<") && !svg.contains("samples 0.."), "{svg}");
}

#[test]
fn samples_without_bytes_and_damaged_bodies_do_not_matter() {
    let folder = Folder::new();
    let schema = Schema::new([ColumnSchema::tensor("none", DType::F32, Shape::fixed(&[0]))]);
    let mut writer = Writer::new(Stream(Vec::new()), schema, &WriterOptions::new()).unwrap();
    writer.push_batch(&[ColumnBatch::fixed::<f32>(5, &[])]).unwrap();
    let path = folder.file("none.tsl", writer.into_bytes().unwrap());
    assert!(svg(&folder, &path, "").contains(">none, f32 [0], 0 B stored"));
    on("map", &path, "").done();
    on("map", &folder.file("damaged.tsl", damaged_file()), "").done();
    on("map", &folder.file("text.tsl", b"no tensilo file"), "").failed(1, "text.tsl");
}

#[test]
fn an_unfinished_file_gives_a_warning() {
    check_warning_of_unfinished_file("map", "");
}

#[test]
fn a_picture_of_another_format_is_refused_before_any_work() {
    let folder = Folder::new();
    for name in ["a.png", "a.PDF", "a.svgz"] {
        let out = folder.path(name);
        // the file is not even opened
        on("map", &folder.path("missing.tsl"), &format!("--svg {}", out.display())).failed(2, "a.svg");
    }
    let file = folder.samples("a.tsl");
    for name in ["drawing", "a.svg", "a.SVG", "a.v2"] {
        on("map", &file, &format!("--svg {}", folder.path(name).display())).done();
    }
    assert_eq!(folder.names().len(), 5);
}

#[test]
fn damage_is_marked_if_that_is_asked_for() {
    let folder = Folder::new();
    let (whole, damaged) = (folder.samples("a.tsl"), folder.file("b.tsl", damaged_file()));
    let text = on("map", &whole, "--verify").done().text();
    assert!(text.contains("\nnothing is damaged: every byte was checked\n") && !text.contains('!'), "{text}");
    let run = on("map", &damaged, "--verify");
    run.failed(1, "");
    let text = run.text();
    let map: String = text.lines().skip(2).take_while(|line| !line.is_empty()).collect();
    let document = on("verify", &damaged, "--json").json();
    let (start, bytes) =
        (document["damages"][0]["offset"].as_u64().unwrap(), document["damages"][0]["bytes"].as_u64().unwrap());
    assert_eq!(map.matches('!').count() as u64, (start + bytes).div_ceil(64) - start / 64, "{text}");
    assert!(text.contains("\n!  damaged: 1 range; "), "{text}");
    assert!(!on("map", &damaged, "").done().text().contains('!'), "nobody asked");
}

#[test]
fn a_drawing_has_a_cross_over_what_is_damaged() {
    let folder = Folder::new();
    let out = folder.path("out.svg");
    let draw = |file: &Path, code| {
        let run = on("map", file, &format!("--verify --force --svg {}", out.display()));
        run.failed(code, "");
        let svg = fs::read_to_string(&out).unwrap();
        check_well_formed(&svg);
        svg
    };
    let svg = draw(&folder.samples("a.tsl"), 0);
    assert!(svg.contains(">nothing is damaged: every byte was checked<") && !svg.contains("<path "), "{svg}");
    let svg = draw(&folder.file("b.tsl", damaged_file()), 1);
    assert_eq!(svg.matches("<path ").count(), 2, "the chunk, in one row, and the legend");
    assert!(svg.contains(": chunk, column &quot;") && svg.contains(">damaged: 1 range; "), "{svg}");
}

#[test]
fn a_file_that_cannot_be_opened_is_drawn_of_what_is_intact() {
    let folder = Folder::new();
    let whole = sample_file();
    let mut headless = whole.clone();
    headless[40] ^= 1;
    for bytes in [whole[..whole.len() - 64].to_vec(), headless] {
        let file = folder.file("a.tsl", &bytes);
        on("map", &file, "").failed(1, "map --verify");
        let run = on("map", &file, "--verify");
        run.failed(1, "salvaged");
        let text = run.text();
        assert!(text.contains("structure, or lost") && text.contains("\n!  damaged: "), "{text}");
        for (letter, name) in ('A'..).zip(NAMES) {
            assert!(text.contains(&format!("\n{letter}  {name} ")), "{name}: {text}");
        }
        let map: String = text.lines().skip(2).take_while(|line| !line.is_empty()).collect();
        assert!(map.contains('!') && map.contains('A') && map.contains('H'), "{text}");
    }
    on("map", &folder.file("b.tsl", b"nothing of the kind"), "--verify").failed(1, "b.tsl");
}
