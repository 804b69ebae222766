//! The profiles that Amazon's tools keep in `~/.aws`.

use object_store::aws::AmazonS3ConfigKey;
use std::path::PathBuf;
use std::{env, fs};

/// The settings of a profile.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Profile {
    pub settings: Vec<(AmazonS3ConfigKey, String)>,
}

/// The settings that are used, and their names in the files.
const SETTINGS: [(&str, AmazonS3ConfigKey); 5] = [
    ("aws_access_key_id", AmazonS3ConfigKey::AccessKeyId),
    ("aws_secret_access_key", AmazonS3ConfigKey::SecretAccessKey),
    ("aws_session_token", AmazonS3ConfigKey::Token),
    ("region", AmazonS3ConfigKey::Region),
    ("endpoint_url", AmazonS3ConfigKey::Endpoint),
];

impl Profile {
    /// Reads the profile that `AWS_PROFILE` names, or `default`, from the files that
    /// `AWS_SHARED_CREDENTIALS_FILE` and `AWS_CONFIG_FILE` name, or those in `~/.aws`. A file that
    /// cannot be read has none.
    pub(crate) fn of_environment() -> Option<Self> {
        let name = env::var("AWS_PROFILE").or_else(|_| env::var("AWS_DEFAULT_PROFILE"));
        let name = name.unwrap_or_else(|_| "default".to_owned());
        let file = |variable: &str, name: &str| {
            let path = env::var_os(variable).map(PathBuf::from);
            fs::read_to_string(path.or_else(|| Some(env::home_dir()?.join(".aws").join(name)))?).ok()
        };
        let credentials = file("AWS_SHARED_CREDENTIALS_FILE", "credentials").unwrap_or_default();
        let config = file("AWS_CONFIG_FILE", "config").unwrap_or_default();
        let found = Self::parse(&credentials, &config, &name);
        (!found.settings.is_empty()).then_some(found)
    }

    /// Finds a profile in the texts of both files. What the first one says counts.
    fn parse(credentials: &str, config: &str, name: &str) -> Self {
        let of_config = if name == "default" { name.to_owned() } else { format!("profile {name}") };
        let lines: Vec<_> = section(credentials, name).chain(section(config, &of_config)).collect();
        let value = |wanted: &str| lines.iter().find(|(key, _)| *key == wanted).map(|(_, value)| (*value).to_owned());
        Self { settings: SETTINGS.into_iter().filter_map(|(key, setting)| Some((setting, value(key)?))).collect() }
    }
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
        use AmazonS3ConfigKey as K;
        let found = |name| {
            let settings = Profile::parse(CREDENTIALS, CONFIG, name).settings;
            settings.into_iter().map(|(key, value)| (key, value.leak() as &str)).collect::<Vec<_>>()
        };
        assert_eq!(found("default"), [(K::AccessKeyId, "A"), (K::SecretAccessKey, "B="), (K::Region, "eu-west-1")]);
        assert_eq!(
            found("lab"),
            [(K::AccessKeyId, "C"), (K::Region, "us-west-2"), (K::Endpoint, "https://lab.example")]
        );
        assert_eq!(found("none"), []);
    }
}
