//! The vectors of `format-spec/MANIFEST.md`.

use crate::common::{check_all, files_below, read};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use tensilo_data::{DataError, Dataset, DatasetOptions};
use tensilo_testing::{Folder, vector, vector_files};

/// Returns the names of the valid or invalid vectors. Each is a folder in the archive.
fn vectors(kind: &str) -> BTreeSet<&'static str> {
    let folder = format!("manifests/{kind}/");
    let inside = vector_files().keys().filter_map(|path| path.strip_prefix(&folder)?.split_once('/'));
    let names: BTreeSet<&str> = inside.map(|(name, _)| name).collect();
    assert!(names.len() > 5);
    names
}

/// Creates the dataset of a vector. Its data files are vectors of the format, in hexadecimal.
fn unpack(kind: &str, name: &str) -> Folder {
    let (folder, vector_folder) = (Folder::new(), format!("manifests/{kind}/{name}/"));
    for (path, bytes) in vector_files() {
        let Some(inside) = path.strip_prefix(&vector_folder) else { continue };
        let (to, bytes) = match inside.strip_suffix(".is") {
            Some(inside) => {
                let name = std::str::from_utf8(bytes).expect("a name").trim();
                (folder.path(inside), vector(&format!("valid/{name}.hex")))
            }
            None => (folder.path(inside), bytes.clone()),
        };
        fs::create_dir_all(to.parent().expect("a folder")).expect("disk space");
        fs::write(to, bytes).expect("disk space");
    }
    folder
}

#[test]
fn valid_manifests_are_read_as_the_second_reader_reads_them() {
    for name in vectors("valid") {
        let folder = unpack("valid", name);
        let expected: Value =
            serde_json::from_slice(&vector_files()[&format!("manifests/valid/{name}.json")]).expect("JSON");
        let dataset = Dataset::open(folder.root()).unwrap_or_else(|error| panic!("{name}: {error}"));
        check_all(&dataset).unwrap_or_else(|error| panic!("{name}: {error}"));
        dataset.check_lineage().unwrap_or_else(|error| panic!("{name}: {error}"));
        let id: String = dataset.id().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            (expected["dataset_id"].as_str(), expected["version"].as_u64()),
            (Some(id.as_str()), Some(dataset.version()))
        );
        assert_eq!(expected["samples"].as_u64(), Some(dataset.sample_count()));
        assert_eq!(expected["order"]["run"].as_u64(), Some(dataset.window_sizes().run_samples().into()));
        assert_eq!(expected["order"]["window"].as_u64(), Some(dataset.window_sizes().window_runs().into()));
        assert_eq!(expected["metadata"], serde_json::to_value(&dataset.schema().metadata).expect("texts"));
        check_columns(&expected["columns"], &dataset);
        check_groups(&expected, &dataset, folder.root());
    }
}

fn check_columns(expected: &Value, dataset: &Dataset) {
    let expected = expected.as_array().expect("a list");
    assert_eq!(expected.len(), dataset.schema().columns.len());
    for (expected, found) in expected.iter().zip(&dataset.schema().columns) {
        let shape: Vec<Option<u64>> = serde_json::from_value(expected["shape"].clone()).expect("extents");
        let found_shape = found.shape.extents().iter().map(|extent| match extent {
            tensilo::Extent::Fixed(extent) => Some(u64::from(*extent)),
            tensilo::Extent::Varying => None,
        });
        assert_eq!(shape, found_shape.collect::<Vec<_>>());
        assert_eq!(expected["name"].as_str(), Some(found.name.as_str()));
        assert_eq!(expected["dtype"].as_str(), Some(found.dtype.name()));
        assert_eq!(expected["nullable"].as_bool(), Some(found.nullable));
    }
}

fn check_groups(expected: &Value, dataset: &Dataset, folder: &Path) {
    let groups: Vec<_> = dataset.groups().collect::<Result<_, _>>().expect("pages");
    let expected_groups = expected["groups"].as_array().expect("a list");
    assert_eq!(groups.len(), expected_groups.len());
    for (group, expected_group) in groups.iter().zip(expected_groups) {
        let start = expected_group["start"].as_u64().expect("a number");
        assert_eq!(group.samples, start..start + expected_group["samples"].as_u64().expect("a number"));
        let expected_files = expected_group["files"].as_array().expect("a list");
        assert_eq!(group.files.len(), expected_files.len());
        for (file, expected_file) in group.files.iter().zip(expected_files) {
            assert_eq!(file.path, folder.join(expected_file["path"].as_str().expect("a path")));
            let expected_columns = expected_file["columns"].as_object().expect("names and ids");
            for (in_file, number) in &file.columns {
                assert_eq!(expected_columns[in_file], expected["columns"][*number]["id"]);
            }
        }
        // each column of each group is found in its file, or is null
        for column in 0..dataset.schema().columns.len() {
            let found = dataset.find(column, group.samples.end - 1).expect("a sample");
            assert_eq!(found.samples, group.samples);
        }
    }
}

#[test]
fn older_versions_stay_readable() {
    let folder = unpack("valid", "three-versions");
    let newest = Dataset::open(folder.root()).unwrap();
    assert_eq!((newest.version(), newest.versions().unwrap()), (3, vec![1, 2, 3]));
    let columns = |version| -> Vec<String> {
        let dataset = DatasetOptions::new().version(version).open(folder.root()).unwrap();
        check_all(&dataset).unwrap();
        dataset.schema().columns.iter().map(|column| column.name.clone()).collect()
    };
    assert_eq!([columns(1), columns(2), columns(3)], [vec!["x"], vec!["vector", "later"], vec!["later"]]);
    // if the parent was removed, there is nothing to compare
    fs::remove_file(folder.path("manifest/0000000002.json")).unwrap();
    Dataset::open(folder.root()).unwrap().check_lineage().unwrap();
    let error = DatasetOptions::new().version(4).open(folder.root()).unwrap_err();
    assert!(error.to_string().contains("version 4 does not exist; the dataset has versions up to 3"), "{error}");
}

#[test]
fn invalid_manifests_are_refused_by_their_rule() {
    for name in vectors("invalid") {
        let folder = unpack("invalid", name);
        let error =
            Dataset::open(folder.root()).and_then(|dataset| check_all(&dataset).and_then(|()| dataset.check_lineage()));
        let error = error.expect_err(name);
        let expected = name.split('-').take(2).collect::<Vec<_>>().join("-");
        match &error {
            DataError::Corrupt { rule, path, .. } => {
                let also: &[&str] = if expected == "M-6.2" { &["M-4.2", "M-5.1"] } else { &[] };
                assert!(*rule == expected || also.contains(rule), "{name}: {error}");
                assert!(path.starts_with(folder.root()), "{error}");
            }
            // a file that is missing, shorter or damaged is not opened at all
            DataError::Io { .. } | DataError::File(_) => assert!(
                ["M-5.2-damaged", "M-5.2-missing", "M-6.1-missing", "M-6.1-digest", "M-5.2-short"].contains(&name),
                "{name}: {error}"
            ),
            _ => panic!("{name}: {error}"),
        }
    }
}

/// A reader detects every flipped bit in the texts of a manifest, and every truncation.
#[test]
fn every_flipped_bit_of_a_manifest_is_noticed() {
    let folder = unpack("valid", "pages");
    let texts = files_below(&folder.path("manifest"));
    assert_eq!(texts.len(), 3);
    let mut flips = 0;
    for path in texts {
        let bytes = fs::read(&path).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &damaged).unwrap();
            let groups =
                Dataset::open(folder.root()).and_then(|dataset| dataset.groups().collect::<Result<Vec<_>, _>>());
            assert!(matches!(groups, Err(DataError::Corrupt { .. })), "{}: bit {bit}", path.display());
            flips += 1;
        }
        for length in 0..bytes.len() {
            fs::write(&path, &bytes[..length]).unwrap();
            let groups =
                Dataset::open(folder.root()).and_then(|dataset| dataset.groups().collect::<Result<Vec<_>, _>>());
            assert!(matches!(groups, Err(DataError::Corrupt { .. })), "{}: {length} bytes", path.display());
        }
        fs::write(&path, &bytes).unwrap();
    }
    assert!(flips > 10_000);
    let dataset = Dataset::open(folder.root()).unwrap();
    assert_eq!(dataset.find(0, 9).unwrap().samples, 8..10);
    assert!(read(&dataset, "x", 10).is_err());
}
