//! States survive encoding and decoding, and damaged ones are refused.

use proptest::prelude::*;
use tensilo_data::{LastBatch, Order, Receipt, State, WindowSizes};

fn any_state() -> impl Strategy<Value = State> {
    let size = || any::<u32>().prop_map(|size| size.max(1));
    let windowed = (size(), size(), 0..=10_u32).prop_map(|(run, window, bits)| {
        Order::Windowed(WindowSizes::new(run, window).unwrap().with_streams(1 << bits).unwrap())
    });
    let order = prop_oneof![Just(Order::Sequential), Just(Order::Shuffled), windowed];
    let words = any::<[u64; 5]>();
    let last_batch = prop_oneof![Just(LastBatch::Drop), Just(LastBatch::Pad), Just(LastBatch::Exact)];
    let n = 1..=1_u64 << 63;
    (order, last_batch, any::<[u8; 16]>(), words, n, any::<u64>()).prop_map(
        |(order, last_batch, dataset_id, words, n, position)| {
            let [dataset_version, view, seed, epoch, receipt] = words;
            let (position, receipt) = (position % n, Receipt(receipt));
            State {
                dataset_id,
                dataset_version,
                view_id: view,
                sample_count: n,
                order,
                last_batch,
                seed,
                epoch,
                position,
                receipt,
            }
        },
    )
}

proptest! {
    #[test]
    fn a_state_comes_back(state in any_state()) {
        prop_assert_eq!(State::from_bytes(&state.to_bytes()).ok(), Some(state));
    }

    #[test]
    fn no_flipped_bit_and_no_other_length_is_accepted(state in any_state(), byte in 0..State::BYTES, bit in 0..8, length in 0..200_usize) {
        let mut bytes = state.to_bytes().to_vec();
        bytes[byte] ^= 1_u8 << bit;
        prop_assert!(State::from_bytes(&bytes).is_err());
        bytes[byte] ^= 1_u8 << bit;
        bytes.resize(length, 0);
        prop_assert_eq!(State::from_bytes(&bytes).is_ok(), length == State::BYTES);
    }
}
