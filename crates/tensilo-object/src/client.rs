//! Clients of stores, with the credentials that the tools of each ecosystem find.

use crate::address::{Address, Scheme};
use crate::aws_profile::Profile;
use crate::options::ObjectOptions;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::{BackoffConfig, ClientConfigKey, Error, ObjectStore, Result, RetryConfig};
use std::str::FromStr;
use std::sync::Arc;

/// Makes a client for the store of an address. Sends nothing.
pub(crate) fn client(address: &Address, options: &ObjectOptions) -> Result<Arc<dyn ObjectStore>> {
    let retries = RetryConfig {
        backoff: BackoffConfig::default(),
        max_retries: options.retries,
        retry_timeout: options.retry_timeout,
    };
    let stall = (ClientConfigKey::ReadTimeout, format!("{} ms", options.stall_timeout.as_millis()));
    let root = address.root();
    Ok(match address.scheme() {
        Scheme::S3 => {
            let builder = AmazonS3Builder::from_env().with_url(root).with_retry(retries);
            let builder = builder.with_config(AmazonS3ConfigKey::Client(stall.0), stall.1);
            let builder = set(builder, options, AmazonS3Builder::with_config)?;
            let builder = Profile::of_environment().into_iter().fold(builder, add_profile);
            Arc::new(allow_http(builder).build()?)
        }
        Scheme::Google => {
            let builder = GoogleCloudStorageBuilder::from_env().with_url(root.replacen("gcs://", "gs://", 1));
            let builder = builder.with_retry(retries).with_config(GoogleConfigKey::Client(stall.0), stall.1);
            Arc::new(set(builder, options, GoogleCloudStorageBuilder::with_config)?.build()?)
        }
        Scheme::Azure => {
            let builder = MicrosoftAzureBuilder::from_env().with_url(root).with_retry(retries);
            let builder = builder.with_config(AzureConfigKey::Client(stall.0), stall.1);
            Arc::new(set(builder, options, MicrosoftAzureBuilder::with_config)?.build()?)
        }
        Scheme::Http => {
            let builder = HttpBuilder::new().with_url(root).with_retry(retries);
            let builder = builder.with_config(stall.0, stall.1).with_config(ClientConfigKey::AllowHttp, "true");
            Arc::new(set(builder, options, HttpBuilder::with_config)?.build()?)
        }
    })
}

/// Adds the settings of the options.
fn set<B, K: FromStr<Err = Error>>(
    builder: B,
    options: &ObjectOptions,
    with_config: impl Fn(B, K, String) -> B,
) -> Result<B> {
    let mut settings = options.settings.iter();
    settings.try_fold(builder, |builder, (name, value)| Ok(with_config(builder, name.parse()?, value.clone())))
}

/// Adds what a profile says and the environment does not.
fn add_profile(builder: AmazonS3Builder, profile: Profile) -> AmazonS3Builder {
    let has = |builder: &AmazonS3Builder, key| builder.get_config_value(&key).is_some();
    let has_keys = has(&builder, AmazonS3ConfigKey::AccessKeyId);
    profile.settings.into_iter().fold(builder, |builder, (key, value)| match key {
        // keys of different sources do not belong together
        AmazonS3ConfigKey::AccessKeyId | AmazonS3ConfigKey::SecretAccessKey | AmazonS3ConfigKey::Token if has_keys => {
            builder
        }
        key if has(&builder, key) => builder,
        key => builder.with_config(key, value),
    })
}

/// Allows `http` if the endpoint asks for it, as the tools of Amazon do.
fn allow_http(builder: AmazonS3Builder) -> AmazonS3Builder {
    let keys = [AmazonS3ConfigKey::S3Endpoint, AmazonS3ConfigKey::Endpoint];
    let endpoint = keys.iter().find_map(|key| builder.get_config_value(key));
    match endpoint.is_some_and(|endpoint| endpoint.starts_with("http://")) {
        true => builder.with_allow_http(true),
        false => builder,
    }
}
