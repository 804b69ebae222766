//! Clients of stores, with the credentials that each ecosystem's own tools would find.
//!
//! Options take precedence over environment variables, which take precedence over a profile of
//! Amazon's tools. `settings.rs` collects and checks settings; here they become a client of S3,
//! Google, Azure or `http`. The listings of a client leave out keys that no request can name; see
//! `unreadable_keys.rs`.

mod options;
mod settings;
mod unreadable_keys;

pub use options::ObjectOptions;
pub(crate) use settings::Environment;
pub(crate) use unreadable_keys::UnreadableKeys;

use crate::address::{Address, Scheme};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::{BackoffConfig, ClientConfigKey, ObjectStore, RetryConfig};
use settings::{Key, Profile, Setting, Settings};
use std::io;
use std::sync::Arc;
use unreadable_keys::ListFilter;

/// Creates a client for the store of an address, with settings from the options and `environment`.
/// Sends no requests. Listings of the client leave out keys that cannot be read.
pub(crate) fn client(
    address: &Address,
    options: &ObjectOptions,
    environment: &Environment,
) -> io::Result<Arc<dyn ObjectStore>> {
    let retries = || RetryConfig {
        backoff: BackoffConfig::default(),
        max_retries: options.retries,
        retry_timeout: options.retry_timeout,
    };
    set_tls_provider();
    let root = address.root();
    match address.scheme() {
        Scheme::S3 => s3_settings(options, environment)?.build(|settings| {
            let builder = AmazonS3Builder::new().with_url(root).with_retry(retries());
            let builder = builder.with_http_connector(ListFilter);
            shared(with(builder, settings, AmazonS3Builder::with_config).build()?)
        }),
        Scheme::Google => {
            let others = [("SERVICE_ACCOUNT", "google_service_account")];
            let found = Settings::from_environment(environment, "GOOGLE_", &others)?;
            complete(found, options)?.build(|settings| {
                let builder = GoogleCloudStorageBuilder::new().with_url(root.replacen("gcs://", "gs://", 1));
                let builder = builder.with_retry(retries()).with_http_connector(ListFilter);
                shared(with(builder, settings, GoogleCloudStorageBuilder::with_config).build()?)
            })
        }
        Scheme::Azure => {
            let others = [("IDENTITY_ENDPOINT", "azure_msi_endpoint")];
            let found = Settings::from_environment(environment, "AZURE_", &others)?;
            complete(found, options)?.build(|settings| {
                let builder = MicrosoftAzureBuilder::new().with_url(root).with_retry(retries());
                let builder = builder.with_http_connector(ListFilter);
                shared(with(builder, settings, MicrosoftAzureBuilder::with_config).build()?)
            })
        }
        Scheme::Http => {
            let mut found: Settings<ClientConfigKey> = Settings::default();
            found.set(ClientConfigKey::AllowHttp, "true".to_owned(), "allow_http".to_owned());
            complete(found, options)?.build(|settings| {
                let builder = HttpBuilder::new().with_url(root).with_retry(retries());
                shared(with(builder, settings, HttpBuilder::with_config).build()?)
            })
        }
    }
}

/// Installs `ring` as the crypto provider for TLS in this process, unless the program has already
/// installed a provider. HTTP clients cannot be built without one.
pub(crate) fn set_tls_provider() {
    let _ = rustls::crypto::ring::default_provider().install_default(); // fails if one is already installed
}

/// Returns the settings for S3. Options take precedence over environment variables, which take
/// precedence over a profile.
fn s3_settings(options: &ObjectOptions, environment: &Environment) -> io::Result<Settings<AmazonS3ConfigKey>> {
    let mut found = Settings::from_environment(environment, "AWS_", &[])?;
    let is_endpoint = |name: &str| name.parse().is_ok_and(|key: AmazonS3ConfigKey| key.as_ref() == "aws_endpoint");
    if options.settings.iter().any(|(name, _)| is_endpoint(name)) {
        // this variable would take precedence over the endpoint in the options
        found.unset("aws_endpoint_url_s3");
    }
    add_options(&mut found, options)?;
    Profile::of(environment).add_to(&mut found)?;
    found.allow_http()?;
    Ok(found)
}

fn shared(store: impl ObjectStore) -> object_store::Result<Arc<dyn ObjectStore>> {
    Ok(Arc::new(store))
}

/// Adds the settings of the options, which take precedence over earlier settings. Then adds
/// settings that are derived from all of these.
fn complete<K: Key>(mut found: Settings<K>, options: &ObjectOptions) -> io::Result<Settings<K>> {
    add_options(&mut found, options)?;
    found.allow_http()?;
    Ok(found)
}

fn add_options<K: Key>(found: &mut Settings<K>, options: &ObjectOptions) -> io::Result<()> {
    let stall = format!("{} ms", options.stall_timeout.as_millis());
    found.set_named([("read_timeout", stall)].into_iter(), str::to_owned)?;
    let named = options.settings.iter().map(|(name, value)| (name.as_str(), value.clone()));
    found.set_named(named, |name| format!("the setting {name}"))
}

fn with<B, K: Key>(builder: B, settings: &[Setting<K>], with_config: impl Fn(B, K, String) -> B) -> B {
    settings.iter().fold(builder, |builder, setting| with_config(builder, setting.key.clone(), setting.value.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::PANICKED;
    use crate::runtime::wait;
    use object_store::path::Path;
    use object_store::{GetOptions, ObjectStore};
    use proptest::prelude::*;
    use std::ffi::OsString;
    use std::time::Duration;

    /// Variables that direct requests to a closed port.
    const S3: &[(&str, &str)] = &[
        ("AWS_ACCESS_KEY_ID", "x"),
        ("AWS_SECRET_ACCESS_KEY", "y"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:1"),
        ("AWS_CONFIG_FILE", "/nonexistent"),
        ("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent"),
    ];
    const AZURE: &[(&str, &str)] = &[
        ("AZURE_STORAGE_ACCOUNT_NAME", "x"),
        ("AZURE_STORAGE_ACCOUNT_KEY", "eHg="),
        ("AZURE_STORAGE_ENDPOINT", "http://127.0.0.1:1"),
    ];
    const GOOGLE: &[(&str, &str)] = &[("GOOGLE_BEARER_TOKEN", "x"), ("GOOGLE_BASE_URL", "http://127.0.0.1:1")];

    /// Returns the variables of a store, with one variable added or set to a different value.
    fn environment(base: &[(&str, &str)], name: &str, value: OsString) -> Environment {
        let Environment(others) = environment_without(base, name);
        Environment(others.into_iter().chain([(OsString::from(name), value)]).collect())
    }

    /// Returns the variables of a store, without one variable.
    fn environment_without(base: &[(&str, &str)], name: &str) -> Environment {
        let others = base.iter().filter(|(other, _)| *other != name);
        Environment(others.map(|(name, value)| (OsString::from(*name), OsString::from(*value))).collect())
    }

    /// Sends a request, and returns its error.
    fn failure(address: &str, environment: &Environment) -> io::Error {
        let options = ObjectOptions::new().retries(0, Duration::from_secs(2)).stall_timeout(Duration::from_secs(1));
        let options = options.setting("connect_timeout", "1s");
        let client = match client(&Address::parse(address).unwrap(), &options, environment) {
            Ok(client) => client,
            Err(error) => return error,
        };
        wait(async move {
            let got = client.get_opts(&Path::from("ds/x"), GetOptions::default()).await;
            Ok(got.map(drop).map_err(crate::error::io_error))
        })
        .and_then(|got| got)
        .expect_err("no store answers there")
    }

    #[test]
    fn settings_that_cannot_work_are_named() {
        for (base, address, name, value, finding) in [
            (
                S3,
                "s3://bucket/ds",
                "AWS_ENDPOINT_URL",
                "localhost:9000",
                "AWS_ENDPOINT_URL: \"localhost:9000\": the scheme",
            ),
            (S3, "s3://bucket/ds", "AWS_ENDPOINT_URL", "http://", "AWS_ENDPOINT_URL: \"http://\": empty host"),
            (S3, "s3://bucket/ds", "AWS_ENDPOINT_URL_S3", "http://127.0.0.1:99999", "AWS_ENDPOINT_URL_S3: "),
            (S3, "s3://bucket/ds", "AWS_ACCESS_KEY_ID", "x\n", "AWS_ACCESS_KEY_ID: the value ends with a line break"),
            (S3, "s3://bucket/ds", "AWS_SECRET_ACCESS_KEY", "y\r\n", "AWS_SECRET_ACCESS_KEY: the value ends with"),
            (S3, "s3://bucket/ds", "AWS_SESSION_TOKEN", "t\u{e9}", "AWS_SESSION_TOKEN: the value has the character"),
            (S3, "s3://bucket/ds", "AWS_REGION", "eu west", "AWS_REGION: "),
            (S3, "s3://bucket/ds", "AWS_ALLOW_HTTP", "maybe", "AWS_ALLOW_HTTP: "),
            // the option takes precedence
            (S3, "s3://bucket/ds", "AWS_CONNECT_TIMEOUT", "soon", "the request failed"),
            (S3, "s3://bucket/ds", "AWS_POOL_IDLE_TIMEOUT", "soon", "AWS_POOL_IDLE_TIMEOUT: "),
            (AZURE, "az://container/ds", "AZURE_STORAGE_ENDPOINT", "127.0.0.1:1", "AZURE_STORAGE_ENDPOINT: "),
            (AZURE, "az://container/ds", "AZURE_STORAGE_ACCOUNT_KEY", "%", "AZURE_STORAGE_ACCOUNT_KEY: "),
            (GOOGLE, "gs://bucket/ds", "GOOGLE_BASE_URL", "http://h:x", "GOOGLE_BASE_URL: "),
            (GOOGLE, "gs://bucket/ds", "GOOGLE_SERVICE_ACCOUNT_KEY", "{", "GOOGLE_SERVICE_ACCOUNT_KEY: "),
            (GOOGLE, "gs://bucket/ds", "SERVICE_ACCOUNT", "/nonexistent.json", "SERVICE_ACCOUNT: "),
        ] {
            let error = failure(address, &environment(base, name, value.into())).to_string();
            assert!(error.contains(finding), "{name}={value:?}: {error}");
        }
    }

    #[test]
    fn an_empty_variable_counts_as_unset() {
        for (base, address, name) in [
            (S3, "s3://bucket/ds", "AWS_ENDPOINT_URL_S3"),
            (S3, "s3://bucket/ds", "AWS_SESSION_TOKEN"),
            (S3, "s3://bucket/ds", "AWS_ALLOW_HTTP"),
            (S3, "s3://bucket/ds", "AWS_PROFILE"),
            (AZURE, "az://container/ds", "AZURE_STORAGE_SAS_TOKEN"),
            (GOOGLE, "gs://bucket/ds", "GOOGLE_APPLICATION_CREDENTIALS"),
        ] {
            let error = failure(address, &environment(base, name, OsString::new())).to_string();
            assert!(error.starts_with("the request failed") && error.contains("127.0.0.1"), "{name}: {error}");
        }
        // only one key of the pair is set
        for name in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"] {
            let empty = failure("s3://bucket/ds", &environment(S3, name, OsString::new()));
            let unset = failure("s3://bucket/ds", &environment_without(S3, name));
            assert_eq!((empty.kind(), empty.to_string()), (io::ErrorKind::InvalidInput, unset.to_string()), "{name}");
        }
    }

    #[test]
    fn an_entry_of_a_profile_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("config");
        std::fs::write(&config, "[default]\nregion = eu\u{1}\n[profile lab]\nendpoint_url = lab:80\n").unwrap();
        let base =
            [("AWS_ACCESS_KEY_ID", "x"), ("AWS_SECRET_ACCESS_KEY", "y"), ("AWS_CONFIG_FILE", config.to_str().unwrap())];
        for (profile, finding) in
            [("lab", "endpoint_url of the profile \"lab\" in "), ("", "region of the profile \"default\" in ")]
        {
            let error = failure("s3://bucket/ds", &environment(&base, "AWS_PROFILE", profile.into())).to_string();
            assert!(error.starts_with(finding) && error.contains("config: "), "{error}");
        }
    }

    /// Keys from one source are never sent with a token from another source. If the program sets an
    /// endpoint, all requests use it.
    #[test]
    fn options_count_before_variables_and_these_before_a_profile() {
        let folder = tempfile::tempdir().unwrap();
        let credentials = folder.path().join("credentials");
        let keys = "[default]\naws_access_key_id = P\naws_secret_access_key = P\naws_session_token = P\n";
        std::fs::write(&credentials, format!("{keys}endpoint_url = http://p\n")).unwrap();
        let environment = |variables: &[(&str, &str)]| {
            let files = [("AWS_SHARED_CREDENTIALS_FILE", credentials.to_str().unwrap()), ("AWS_CONFIG_FILE", "/none")];
            let all = variables.iter().chain(&files).map(|(name, value)| (OsString::from(name), OsString::from(value)));
            Environment(all.collect())
        };
        let two = |source| [("aws_access_key_id", source), ("aws_secret_access_key", source)];
        let three = |source| [two(source).as_slice(), &[("aws_session_token", source)]].concat();
        let variables =
            [("AWS_ACCESS_KEY_ID", "V"), ("AWS_SECRET_ACCESS_KEY", "V"), ("AWS_ENDPOINT_URL_S3", "http://v")];
        let endpoint = |value| ("aws_endpoint", value);
        let of_s3 = ("aws_endpoint_url_s3", "http://v");
        let unset = [("aws_access_key_id", ""), ("aws_secret_access_key", ""), ("aws_endpoint_url", "")];
        for (options, variables, expected) in [
            (&[][..], &[][..], [&three("P")[..], &[endpoint("http://p")]].concat()),
            (&two("O"), &[], [&two("O")[..], &[endpoint("http://p")]].concat()),
            (&two("O")[1..], &[], [&two("O")[1..], &[endpoint("http://p")]].concat()),
            (&three("O"), &variables, [&three("O")[..], &[endpoint("http://p"), of_s3]].concat()),
            (&[("aws_endpoint_url", "http://o")], &variables, [&two("V")[..], &[endpoint("http://o")]].concat()),
            (&[("aws_endpoint_url_s3", "http://v")], &[], [&three("P")[..], &[endpoint("http://p"), of_s3]].concat()),
            // the profile provides what an option unsets
            (&unset, &variables, [&three("P")[..], &[endpoint("http://p")]].concat()),
        ] {
            let set = options.iter().fold(ObjectOptions::new(), |set, (name, value)| set.setting(*name, *value));
            let found = s3_settings(&set, &environment(variables)).unwrap();
            let shown = |setting: &Setting<AmazonS3ConfigKey>| (setting.key.as_ref().to_owned(), setting.value.clone());
            let mut found = found.build(|settings| Ok(settings.iter().map(shown).collect::<Vec<_>>())).unwrap();
            found.retain(|(name, _)| !matches!(name.as_str(), "read_timeout" | "allow_http"));
            found.sort();
            let mut expected: Vec<_> =
                expected.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
            expected.sort();
            assert_eq!(found, expected, "{options:?} {variables:?}");
        }
    }

    /// The variables that the clients read.
    const NAMES: &[(&str, &[&str])] = &[
        (
            "s3://bucket/ds",
            &[
                "AWS_ACCESS_KEY_ID",
                "AWS_SECRET_ACCESS_KEY",
                "AWS_SESSION_TOKEN",
                "AWS_REGION",
                "AWS_DEFAULT_REGION",
                "AWS_ENDPOINT_URL",
                "AWS_ENDPOINT_URL_S3",
                "AWS_ENDPOINT_URL_STS",
                "AWS_VIRTUAL_HOSTED_STYLE_REQUEST",
                "AWS_S3_EXPRESS",
                "AWS_IMDSV1_FALLBACK",
                "AWS_METADATA_ENDPOINT",
                "AWS_UNSIGNED_PAYLOAD",
                "AWS_CHECKSUM_ALGORITHM",
                "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
                "AWS_CONTAINER_CREDENTIALS_FULL_URI",
                "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
                "AWS_WEB_IDENTITY_TOKEN_FILE",
                "AWS_ROLE_ARN",
                "AWS_ROLE_SESSION_NAME",
                "AWS_SKIP_SIGNATURE",
                "AWS_COPY_IF_NOT_EXISTS",
                "AWS_CONDITIONAL_PUT",
                "AWS_DISABLE_TAGGING",
                "AWS_REQUEST_PAYER",
                "AWS_ALLOW_HTTP",
                "AWS_SERVER_SIDE_ENCRYPTION",
                "AWS_SSE_KMS_KEY_ID",
                "AWS_SSE_BUCKET_KEY_ENABLED",
                "AWS_SSE_CUSTOMER_KEY_BASE64",
                "AWS_BUCKET",
                "AWS_PROFILE",
                "AWS_DEFAULT_PROFILE",
                "AWS_CONFIG_FILE",
                "AWS_SHARED_CREDENTIALS_FILE",
                "AWS_TIMEOUT",
                "AWS_USER_AGENT",
                "AWS_PROXY_URL",
                "AWS_PROXY_CA_CERTIFICATE",
                "AWS_PROXY_EXCLUDES",
                "AWS_DEFAULT_CONTENT_TYPE",
                "AWS_HTTP1_ONLY",
                "AWS_HTTP2_MAX_FRAME_SIZE",
                "AWS_POOL_MAX_IDLE_PER_HOST",
            ],
        ),
        (
            "az://container/ds",
            &[
                "AZURE_STORAGE_ACCOUNT_NAME",
                "AZURE_STORAGE_ACCOUNT_KEY",
                "AZURE_STORAGE_ENDPOINT",
                "AZURE_STORAGE_SAS_TOKEN",
                "AZURE_STORAGE_TOKEN",
                "AZURE_STORAGE_USE_EMULATOR",
                "AZURE_MSI_ENDPOINT",
                "IDENTITY_ENDPOINT",
                "AZURE_FEDERATED_TOKEN_FILE",
                "AZURE_USE_FABRIC_ENDPOINT",
                "AZURE_SKIP_SIGNATURE",
                "AZURE_CREDENTIAL_TYPE",
                "AZURE_STORAGE_ENCRYPTION_KEY",
                "AZURE_AUTHORITY_HOST",
                "AZURE_USER_AGENT",
            ],
        ),
        (
            "gs://bucket/ds",
            &[
                "GOOGLE_SERVICE_ACCOUNT",
                "SERVICE_ACCOUNT",
                "GOOGLE_SERVICE_ACCOUNT_KEY",
                "GOOGLE_BASE_URL",
                "GOOGLE_APPLICATION_CREDENTIALS",
                "GOOGLE_BEARER_TOKEN",
                "GOOGLE_SKIP_SIGNATURE",
                "GOOGLE_BUCKET",
            ],
        ),
    ];

    fn values() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            prop::collection::vec(any::<u8>(), 0..12),
            "[ -~]{0,12}".prop_map(String::into_bytes),
            "(http|https|HTTP|s3|)(://|:|)(127.0.0.1|localhost|[::1]|)(:[0-9]{0,6}|)(/[ -~]{0,4}|)"
                .prop_map(String::into_bytes),
            prop::sample::select(vec![
                "true",
                "1s",
                "0",
                "18446744073709551615",
                "AES256",
                "{}",
                "/dev/null",
                "multipart"
            ])
            .prop_map(|text| text.as_bytes().to_vec()),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

        /// No value of a variable makes a library panic. If a value is refused, the error names the
        /// variable.
        #[test]
        fn any_value_of_a_variable_is_used_or_named(store in 0..3_usize, name in any::<prop::sample::Index>(), value in values()) {
            #[cfg(unix)]
            let value: OsString = std::os::unix::ffi::OsStringExt::from_vec(value);
            #[cfg(not(unix))]
            let value = OsString::from(String::from_utf8_lossy(&value).into_owned());
            let (address, names) = NAMES[store];
            let base = [S3, AZURE, GOOGLE][store];
            let name = *name.get(names);
            // an empty variable counts as unset
            let unset = value.is_empty().then(|| failure(address, &environment_without(base, name)));
            let error = failure(address, &environment(base, name, value));
            let text = error.to_string();
            prop_assert!(!text.contains(PANICKED), "{name}: {text}");
            if error.kind() == io::ErrorKind::InvalidInput {
                match unset {
                    Some(unset) => prop_assert_eq!(text, unset.to_string(), "{}", name),
                    None => prop_assert!(text.contains(name) || name.ends_with("FILE"), "{name}: {text}"),
                }
            }
        }
    }
}
