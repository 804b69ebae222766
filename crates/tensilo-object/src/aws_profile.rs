//! The profiles that Amazon's tools keep in `~/.aws`.

use crate::settings::{Environment, Settings};
use object_store::aws::AmazonS3ConfigKey;
use std::env;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

/// The settings of a profile.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Profile {
    name: String,
    settings: Vec<ProfileSetting>,
}

#[derive(Debug, PartialEq, Eq)]
struct ProfileSetting {
    name: &'static str,
    value: String,
    file: PathBuf,
}

/// The names of the settings that are used.
const SETTINGS: [&str; 5] =
    ["aws_access_key_id", "aws_secret_access_key", "aws_session_token", "region", "endpoint_url"];
/// The bytes of a file that are read at most.
const MAX_FILE_BYTES: u64 = 1 << 20;

impl Profile {
    /// Reads the profile that `AWS_PROFILE` names, or `default`, from the files that
    /// `AWS_SHARED_CREDENTIALS_FILE` and `AWS_CONFIG_FILE` name, or those in `~/.aws`. A file that
    /// cannot be read has none.
    pub(crate) fn of(environment: &Environment) -> Self {
        let name = environment.get("AWS_PROFILE").or_else(|| environment.get("AWS_DEFAULT_PROFILE"));
        let name = name.map_or("default".into(), |name| name.to_string_lossy());
        let file = |variable: &str, name: &str| {
            let path = environment.get(variable).map(PathBuf::from);
            path.or_else(|| Some(env::home_dir()?.join(".aws").join(name))).unwrap_or_default()
        };
        let files =
            [file("AWS_SHARED_CREDENTIALS_FILE", "credentials"), file("AWS_CONFIG_FILE", "config")].map(|path| {
                let text = read(&path).unwrap_or_default();
                (path, text)
            });
        Self::parse(&files, &name)
    }

    /// Finds a profile in both files, credentials first. What the first one says counts.
    fn parse([credentials, config]: &[(PathBuf, String); 2], name: &str) -> Self {
        let of_config = if name == "default" { name.to_owned() } else { format!("profile {name}") };
        let lines = |(path, text): &(PathBuf, String), name: &str| -> Vec<(String, String, PathBuf)> {
            section(text, name).map(|(key, value)| (key.to_owned(), value.to_owned(), path.clone())).collect()
        };
        let lines = [lines(credentials, name), lines(config, &of_config)].concat();
        let setting = |name: &'static str| {
            let (_, value, file) = lines.iter().find(|(key, value, _)| key == name && !value.is_empty())?;
            Some(ProfileSetting { name, value: value.clone(), file: file.clone() })
        };
        Self { name: name.to_owned(), settings: SETTINGS.into_iter().filter_map(setting).collect() }
    }

    /// Adds what the profile says and the settings do not.
    pub(crate) fn add_to(self, settings: &mut Settings<AmazonS3ConfigKey>) -> io::Result<()> {
        // keys of different sources do not belong together
        let has_keys = settings.has(&["aws_access_key_id", "aws_secret_access_key"]);
        for ProfileSetting { name, value, file } in self.settings {
            let is_known = match name {
                "region" => settings.has(&["aws_region", "aws_default_region"]),
                "endpoint_url" => settings.has(&["aws_endpoint"]),
                _ => has_keys,
            };
            if !is_known {
                let origin = format!("{name} of the profile {:?} in {}", self.name, file.display());
                settings.set_named([(name, value)].into_iter(), |_| origin.clone())?;
            }
        }
        Ok(())
    }
}

/// Reads a file. Bytes that are not UTF-8 become U+FFFD, which no setting may have.
fn read(path: &std::path::Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the keys and values of a section of an INI file. Settings of settings, which are
/// indented, are left out.
fn section<'a>(text: &'a str, name: &str) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
    let is_section = |line: &&str| line.starts_with('[');
    let name = name.to_owned();
    let lines = text.lines().skip_while(move |line| {
        let heading = line.trim().strip_prefix('[').and_then(|line| line.split_once(']'));
        heading.is_none_or(|(heading, _)| heading.trim() != name)
    });
    lines.skip(1).take_while(move |line| !is_section(line)).filter_map(|line| {
        let (key, value) = line.split_once('=')?;
        (!line.starts_with([' ', '\t', '#', ';'])).then(|| (key.trim(), value.trim()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREDENTIALS: &str = "# keys
[default]
aws_access_key_id = A
aws_secret_access_key=B=

[lab]
aws_access_key_id=C
";
    const CONFIG: &str = "[default]
region = eu-west-1
s3 =
  endpoint_url = http://nested
[profile lab]
region = us-west-2
endpoint_url = https://lab.example
";

    #[test]
    fn profiles_are_found_in_both_files() {
        let files =
            [(PathBuf::from("credentials"), CREDENTIALS.to_owned()), (PathBuf::from("config"), CONFIG.to_owned())];
        let found = |name| {
            let settings = Profile::parse(&files, name).settings;
            settings.into_iter().map(|setting| (setting.name, setting.value.leak() as &str)).collect::<Vec<_>>()
        };
        let default = [("aws_access_key_id", "A"), ("aws_secret_access_key", "B="), ("region", "eu-west-1")];
        assert_eq!(found("default"), default);
        let lab = [("aws_access_key_id", "C"), ("region", "us-west-2"), ("endpoint_url", "https://lab.example")];
        assert_eq!(found("lab"), lab);
        assert_eq!(found("none"), []);
    }
}
