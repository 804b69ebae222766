//! The settings of a store and their sources: options, environment variables, and the profiles of
//! Amazon's tools in `~/.aws`.
//!
//! A client is built from a dozen variables, files and options, but the library that builds it gets
//! only their values. It panics at the first request if a header contains a line break, and it
//! reports a bad endpoint as `relative URL without a base`. So settings are collected here, each
//! with the name that the user gave. A setting that cannot be part of a request is refused before
//! the client is built. If building the client fails, the error names the setting without which it
//! would succeed. An empty variable counts as unset, as in other tools.

use crate::error::io_error;
use crate::runtime::catch_panic;
use object_store::aws::AmazonS3ConfigKey;
use object_store::{Error, Result};
use std::borrow::Cow;
use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::str::FromStr;
use url::Url;

/// The names and values of the environment variables of a process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Environment(pub Vec<(OsString, OsString)>);

impl Environment {
    pub(crate) fn from_process() -> Self {
        Self(env::vars_os().collect())
    }

    /// Returns the value of a variable, unless it is empty.
    pub(super) fn get(&self, name: &str) -> Option<&OsString> {
        self.0.iter().find(|(known, value)| known == name && !value.is_empty()).map(|(_, value)| value)
    }
}

/// The name of a setting of a store.
pub(super) trait Key: FromStr<Err = Error> + AsRef<str> + Clone + PartialEq {}

impl<K: FromStr<Err = Error> + AsRef<str> + Clone + PartialEq> Key for K {}

#[derive(Clone, Debug)]
pub(super) struct Setting<K> {
    pub key: K,
    pub value: String,
    /// The name of the setting in errors, such as the name of a variable.
    origin: String,
}

/// The settings of a store, one for each key.
#[derive(Clone, Debug)]
pub(super) struct Settings<K>(Vec<Setting<K>>);

impl<K> Default for Settings<K> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Key> Settings<K> {
    /// Returns the settings from the variables with this prefix, and from `others`, which are pairs
    /// of a variable and its setting.
    pub(super) fn from_environment(
        environment: &Environment,
        prefix: &str,
        others: &[(&str, &str)],
    ) -> io::Result<Self> {
        let mut settings = Self::default();
        for (name, value) in &environment.0 {
            let Some(name) = name.to_str() else { continue };
            let other = others.iter().find(|(other, _)| *other == name).map(|(_, setting)| (*setting).to_owned());
            let setting = name.starts_with(prefix).then(|| name.to_ascii_lowercase()).or(other);
            let Some(key) = setting.and_then(|setting| setting.parse().ok()) else { continue };
            let value = value.to_str().ok_or_else(|| invalid_setting(name, "the value is not UTF-8"))?;
            if !value.is_empty() {
                settings.set(key, value.to_owned(), name.to_owned());
            }
        }
        Ok(settings)
    }

    /// Returns whether any of these settings is set. A setting has the name of its variable in
    /// lower case.
    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.0.iter().any(|setting| names.contains(&setting.key.as_ref()))
    }

    /// Sets a setting, and replaces any earlier value.
    pub(super) fn set(&mut self, key: K, value: String, origin: String) {
        self.0.retain(|setting| setting.key != key);
        self.0.push(Setting { key, value, origin });
    }

    /// Unsets a setting. `name` is the name of its variable in lower case.
    pub(super) fn unset(&mut self, name: &str) {
        self.0.retain(|setting| setting.key.as_ref() != name);
    }

    /// Sets settings by their names. An empty value unsets the setting.
    pub(super) fn set_named<'a>(
        &mut self,
        named: impl Iterator<Item = (&'a str, String)>,
        origin: impl Fn(&str) -> String,
    ) -> io::Result<()> {
        for (name, value) in named {
            let origin = origin(name);
            let key: K =
                name.parse().map_err(|_| invalid_setting(&origin, "the store has no setting with this name"))?;
            self.set(key, value, origin);
        }
        self.0.retain(|setting| !setting.value.is_empty());
        Ok(())
    }

    /// Allows `http` if an endpoint uses it. This is also the behavior of Amazon's tools.
    pub(super) fn allow_http(&mut self) -> io::Result<()> {
        let has_http_endpoint = self.0.iter().any(|setting| {
            ValueKind::of(setting.key.as_ref()) == ValueKind::Endpoint
                && Url::parse(&setting.value).is_ok_and(|url| url.scheme() == "http")
        });
        if !has_http_endpoint || self.has(&["allow_http"]) {
            return Ok(());
        }
        self.set_named([("allow_http", "true".to_owned())].into_iter(), str::to_owned)
    }

    /// Checks the settings, and builds a client from them. An error names the setting that causes
    /// it.
    pub(super) fn build<T>(&self, build: impl Fn(&[Setting<K>]) -> Result<T>) -> io::Result<T> {
        self.0.iter().try_for_each(Setting::check)?;
        let build = |settings: &[Setting<K>]| catch_panic(|| Ok(build(settings)));
        build(&self.0)?.map_err(|error| {
            let is_cause = |setting: &&Setting<K>| {
                let others: Vec<_> = self.0.iter().filter(|other| other.key != setting.key).cloned().collect();
                build(&others).is_ok_and(|built| built.is_ok())
            };
            match self.0.iter().find(is_cause) {
                Some(setting) => invalid_setting(&setting.origin, &error.to_string()),
                None => io_error(error),
            }
        })
    }
}

/// The form that a value must have to be part of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueKind {
    /// The URL of the store itself.
    Endpoint,
    /// Another URL.
    Url,
    /// A part of a URL.
    UrlComponent,
    /// The path of a file.
    Path,
    /// A text that can have several lines.
    Document,
    /// A part of a header.
    Header,
}

impl ValueKind {
    fn of(key: &str) -> Self {
        match key {
            "aws_endpoint" | "aws_endpoint_url_s3" | "azure_storage_endpoint" | "google_base_url" => Self::Endpoint,
            "aws_endpoint_url_sts"
            | "aws_metadata_endpoint"
            | "aws_container_credentials_full_uri"
            | "azure_storage_authority_host"
            | "azure_msi_endpoint"
            | "azure_fabric_token_service_url" => Self::Url,
            "aws_region"
            | "aws_default_region"
            | "aws_container_credentials_relative_uri"
            | "azure_storage_account_name"
            | "azure_storage_tenant_id" => Self::UrlComponent,
            "aws_container_authorization_token_file"
            | "aws_web_identity_token_file"
            | "azure_federated_token_file"
            | "google_service_account"
            | "google_application_credentials" => Self::Path,
            "google_service_account_key" | "proxy_ca_certificate" => Self::Document,
            _ => Self::Header,
        }
    }
}

impl<K: Key> Setting<K> {
    fn check(&self) -> io::Result<()> {
        let found = match ValueKind::of(self.key.as_ref()) {
            ValueKind::Endpoint | ValueKind::Url => check_url(&self.value),
            ValueKind::UrlComponent => check_header(&self.value).and_then(|()| check_url_characters(&self.value)),
            ValueKind::Path => check_line(&self.value),
            ValueKind::Document => Ok(()),
            ValueKind::Header => check_header(&self.value),
        };
        found.map_err(|message| invalid_setting(&self.origin, &message))
    }
}

/// The result of checking a value: what is wrong with it. Only URLs are shown, because other values
/// may be secrets.
type CheckResult = std::result::Result<(), Cow<'static, str>>;

fn check_line(value: &str) -> CheckResult {
    match value.find(|c: char| c.is_control()) {
        Some(at) if value.get(at..).is_some_and(|rest| rest.trim_end_matches(['\r', '\n']).is_empty()) => {
            Err("the value ends with a line break: remove it, for example with printf '%s' or tr -d '\\n'".into())
        }
        Some(at) => Err(format!("the value has a control character at byte {at}").into()),
        None => Ok(()),
    }
}

fn check_header(value: &str) -> CheckResult {
    check_line(value)?;
    if let Some((at, c)) = value.char_indices().find(|(_, c)| !c.is_ascii()) {
        return Err(format!("the value has the character {c:?} at byte {at}, which is not ASCII").into());
    }
    match value.starts_with(' ') || value.ends_with(' ') {
        true => Err("the value begins or ends with a space".into()),
        false => Ok(()),
    }
}

/// Checks that a text has only characters that are allowed in URLs (RFC 3986, section 2).
fn check_url_characters(value: &str) -> CheckResult {
    let is_of_url = |c: char| c.is_ascii_alphanumeric() || "-._~:/?[]@!$&'()*+,;=%".contains(c);
    match value.find(|c| !is_of_url(c)) {
        Some(at) => Err(format!("the value has a character at byte {at} that is not allowed in a URL").into()),
        None => Ok(()),
    }
}

fn check_url(value: &str) -> CheckResult {
    check_header(value)?;
    // a URL with a user name may contain a password
    let shown = if value.contains('@') { String::new() } else { format!("{value:?}: ") };
    let expected = "expected a URL such as https://host or http://127.0.0.1:9000";
    let url = match Url::parse(value) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => url,
        Ok(_) | Err(url::ParseError::RelativeUrlWithoutBase) => {
            return Err(format!("{shown}the scheme is missing, or is neither http nor https; {expected}").into());
        }
        Err(error) => return Err(format!("{shown}{error}; {expected}").into()),
    };
    // `Url` corrects mistakes such as `http:///host`, but a request cannot contain them
    let authority = value.split_once("://").and_then(|(_, rest)| rest.split('/').next()).unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    if host.is_empty() || !host.chars().all(|c| c.is_ascii_alphanumeric() || ".-_:[]".contains(c)) {
        return Err(format!("{shown}the host is missing or malformed; {expected}").into());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(format!("{shown}a query or a fragment is not allowed; {expected}").into());
    }
    check_url_characters(value)
}

fn invalid_setting(origin: &str, message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("{origin}: {message}"))
}

/// The settings of a profile.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Profile {
    name: String,
    settings: Vec<ProfileSetting>,
}

#[derive(Debug, PartialEq, Eq)]
struct ProfileSetting {
    name: &'static str,
    value: String,
    file: PathBuf,
}

/// The settings that are read from a profile.
const SETTINGS: [&str; 5] =
    ["aws_access_key_id", "aws_secret_access_key", "aws_session_token", "region", "endpoint_url"];
/// The maximum number of bytes that are read from a file.
const MAX_FILE_BYTES: u64 = 1 << 20;

impl Profile {
    /// Reads the profile that `AWS_PROFILE` names, or `default`, from the files that
    /// `AWS_SHARED_CREDENTIALS_FILE` and `AWS_CONFIG_FILE` name, or else from the files in
    /// `~/.aws`. A file that cannot be read counts as empty.
    pub(super) fn of(environment: &Environment) -> Self {
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

    /// Finds a profile in both files. The file with the credentials takes precedence.
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

    /// Adds the settings of the profile that are not set yet.
    pub(super) fn add_to(self, settings: &mut Settings<AmazonS3ConfigKey>) -> io::Result<()> {
        // a key from one source does not match a secret from another
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

/// Reads a file. Bytes that are not UTF-8 become U+FFFD, which is refused in every setting.
fn read(path: &std::path::Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the keys and values of a section of an INI file. Skips indented lines, which are nested
/// settings.
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
