//! Epochs through a proxy that injects faults: every value is correct, or there is an error.

use crate::datasets::{create, epoch};
use crate::server::{azure, azure_options, host, s3, s3_options};
use std::net::SocketAddr;
use std::time::Duration;
use tensilo_data::{DatasetOptions, Order};
use tensilo_object::ObjectOptions;
use tensilo_testing::{FaultProxy, Folder, env_or, random_faults};

/// Reads epochs through a proxy in front of a server.
fn check(server: SocketAddr, options: impl Fn(SocketAddr) -> (ObjectOptions, String)) {
    let proxy = FaultProxy::start(server);
    let epochs = env_or("TENSILO_FAULTY_EPOCHS", 30);
    let (mut right, mut failed) = (0, 0);
    for seed in 0..epochs {
        proxy.set_faults(random_faults(seed, 8));
        let (options, folder) = options(proxy.address());
        let options = options.retries(2, Duration::from_secs(5)).stall_timeout(Duration::from_millis(100));
        let mode = [Order::Sequential, Order::Shuffled][seed as usize % 2];
        let read = DatasetOptions::new().object_options(options).open(folder).and_then(|dataset| epoch(&dataset, mode));
        match read {
            Ok(samples) => {
                assert_eq!(samples, 231, "seed {seed}");
                right += 1;
            }
            Err(_) => failed += 1,
        }
    }
    println!("{epochs} epochs with faults: {right} correct, {failed} ended with an error");
    assert!(right > 0);
}

#[test]
fn epochs_from_s3_with_faults() {
    let Some(server) = s3() else { return };
    create(DatasetOptions::new().object_options(s3_options(server.address)), "s3://bucket/train");
    check(server.address, |proxy| (s3_options(proxy), "s3://bucket/train".to_owned()));
}

#[test]
fn epochs_from_azure_with_faults() {
    let Some(server) = azure() else { return };
    create(DatasetOptions::new().object_options(azure_options(server.address)), "az://container/train");
    check(server.address, |proxy| (azure_options(proxy), "az://container/train".to_owned()));
}

#[test]
fn epochs_from_a_host_with_faults() {
    let folder = Folder::new();
    create(DatasetOptions::new(), folder.path("train").to_str().unwrap());
    let Some(server) = host(folder.root()) else { return };
    check(server.address, |proxy| (ObjectOptions::new(), format!("http://{proxy}/train")));
}
