//! The vectors of `format-spec/ORDER.md`, written by a second implementation.

use serde_json::Value;
use tensilo_data::{
    Component, Division, EpochOrder, LastBatch, Mixture, Order, Permutation, Receipt, SampleList, Split, State,
    WindowSizes, substitute_candidate,
};

fn vectors(group: &str) -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../format-spec/vectors/order.json");
    let text = std::fs::read_to_string(path).expect("the vectors");
    let groups: Value = serde_json::from_str(&text).expect("JSON");
    let members = groups[group].as_array().cloned().unwrap_or_default();
    assert!(!members.is_empty(), "{group}");
    members
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| value.as_str().and_then(|text| text.parse().ok()).expect("a number"))
}

fn hex(value: &Value) -> u64 {
    u64::from_str_radix(value.as_str().expect("hex"), 16).expect("hex")
}

fn numbers(value: &Value) -> Vec<u64> {
    value.as_array().expect("a list").iter().map(number).collect()
}

fn mode(value: &Value) -> Order {
    match value[0].as_str() {
        Some("sequential") => Order::Sequential,
        Some("shuffled") => Order::Shuffled,
        _ => {
            let [run, window, streams] = [1, 2, 3].map(|i| number(&value[i]) as u32);
            Order::Windowed(WindowSizes::new(run, window).unwrap().with_streams(streams).unwrap())
        }
    }
}

#[test]
fn permutations_are_those_of_the_vectors() {
    for vector in vectors("permutations") {
        let permutation = Permutation::new(hex(&vector["key"]), number(&vector["n"]));
        let found: Vec<u64> = (0..=permutation.member_count()).map_while(|p| permutation.at(p)).collect();
        assert_eq!(found, numbers(&vector["order"]), "{vector}");
    }
    for vector in vectors("large_permutations") {
        let permutation = Permutation::new(hex(&vector["key"]), number(&vector["n"]));
        for pair in vector["pairs"].as_array().unwrap() {
            let (p, member) = (number(&pair[0]), number(&pair[1]));
            assert_eq!((permutation.at(p), permutation.position_of(member)), (Some(member), Some(p)), "{vector}");
        }
    }
}

#[test]
fn orders_are_those_of_the_vectors() {
    for vector in vectors("orders") {
        let n = number(&vector["n"]);
        let order = EpochOrder::new(mode(&vector["mode"]), n, hex(&vector["seed"]), number(&vector["epoch"]));
        let found: Vec<u64> = (0..=n).map_while(|p| order.sample_at(p)).collect();
        assert_eq!(found, numbers(&vector["order"]), "{vector}");
    }
}

#[test]
fn large_orders_are_those_of_the_vectors() {
    for vector in vectors("large_orders") {
        let (n, epoch) = (number(&vector["n"]), number(&vector["epoch"]));
        let order = EpochOrder::new(mode(&vector["mode"]), n, hex(&vector["seed"]), epoch);
        for pair in vector["pairs"].as_array().unwrap() {
            let (p, sample) = (number(&pair[0]), number(&pair[1]));
            assert_eq!((order.sample_at(p), order.position_of(sample)), (Some(sample), Some(p)), "{n}");
        }
    }
}

fn last_batch(value: &Value) -> LastBatch {
    match value.as_str() {
        Some("drop") => LastBatch::Drop,
        Some("pad") => LastBatch::Pad,
        _ => LastBatch::Exact,
    }
}

#[test]
fn divisions_are_those_of_the_vectors() {
    for vector in vectors("divisions") {
        let (n, world_size, start) = (number(&vector["n"]), number(&vector["world"]) as u32, number(&vector["start"]));
        let division = Division::new(number(&vector["batch"]) as u32, world_size, last_batch(&vector["tail"])).unwrap();
        let steps = vector["steps"].as_array().unwrap();
        let order = EpochOrder::new(mode(&vector["mode"]), n, 3, 4);
        assert_eq!(division.steps(n, start), steps.len() as u64, "{vector}");
        for (step, ranks) in (0..).zip(steps) {
            for rank in 0..world_size {
                let start = start + step * division.step_samples();
                let mut positions = Vec::new();
                division.positions(&order, start, rank, &mut positions).unwrap();
                assert_eq!(positions, numbers(&ranks[rank as usize]), "{vector}: step {step}, rank {rank}");
            }
        }
    }
}

#[test]
fn views_are_those_of_the_vectors() {
    for vector in vectors("splits") {
        let split =
            Split::new(number(&vector["n"]), hex(&vector["seed"]), number(&vector["from"])..number(&vector["to"]))
                .unwrap();
        let found: Vec<u64> = (0..=split.sample_count()).map_while(|v| split.sample(v)).collect();
        assert_eq!((found, split.identity()), (numbers(&vector["samples"]), hex(&vector["identity"])), "{vector}");
    }
    for vector in vectors("lists") {
        let list = SampleList::new(numbers(&vector["samples"]));
        let found: Vec<u64> = (0..=list.sample_count()).map_while(|v| list.sample(v)).collect();
        assert_eq!((found, list.identity()), (numbers(&vector["samples"]), hex(&vector["identity"])), "{vector}");
    }
    for vector in vectors("mixtures") {
        let component = |item: &Value| Component {
            dataset_id: bytes(&item["dataset_id"]).try_into().unwrap(),
            view_id: hex(&item["view"]),
            sample_count: number(&item["samples"]),
            weight: number(&item["weight"]) as u32,
        };
        let components: Vec<Component> = vector["components"].as_array().unwrap().iter().map(component).collect();
        let (n, epoch) = (number(&vector["n"]), number(&vector["epoch"]));
        let mixture = Mixture::new(&components, n, hex(&vector["seed"]), number(&vector["run"]) as u32).unwrap();
        assert_eq!(mixture.identity(), hex(&vector["identity"]), "{vector}");
        for expected in vector["samples"].as_array().unwrap().iter().map(numbers) {
            assert_eq!(
                mixture.sample(expected[0], epoch),
                Some((expected[1] as usize, expected[2])),
                "{vector}: {expected:?}"
            );
        }
        assert_eq!(mixture.sample(n, epoch), None);
    }
}

fn bytes(value: &Value) -> Vec<u8> {
    let text = value.as_str().expect("hex");
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex")).collect()
}

#[test]
fn states_are_those_of_the_vectors() {
    for vector in vectors("states") {
        let (n, epoch, position) = (number(&vector["n"]), number(&vector["epoch"]), number(&vector["position"]));
        let (mode, seed) = (mode(&vector["mode"]), hex(&vector["seed"]));
        let (order, mut receipt) = (EpochOrder::new(mode, n, seed, epoch), Receipt::default());
        (0..position).for_each(|position| receipt.add(order.sample_at(position).unwrap(), epoch));
        assert_eq!(receipt.0, hex(&vector["receipt"]), "{vector}");
        let state = State {
            dataset_id: bytes(&vector["dataset_id"]).try_into().unwrap(),
            dataset_version: number(&vector["dataset_version"]),
            view_id: hex(&vector["view"]),
            sample_count: n,
            order: mode,
            last_batch: last_batch(&vector["tail"]),
            seed,
            epoch,
            position,
            receipt,
        };
        assert_eq!(state.to_bytes().as_slice(), bytes(&vector["bytes"]), "{vector}");
        assert_eq!(State::from_bytes(&state.to_bytes()).ok(), Some(state));
    }
    for vector in vectors("broken_states") {
        assert!(State::from_bytes(&bytes(&vector["bytes"])).is_err(), "{vector}");
    }
}

#[test]
fn substitutes_are_those_of_the_vectors() {
    for vector in vectors("substitutes") {
        let of = |name: &str| number(&vector[name]);
        let (n, sample, epoch, seed) = (of("n"), of("sample"), of("epoch"), hex(&vector["seed"]));
        for (attempt, expected) in (0..).zip(numbers(&vector["attempts"])) {
            assert_eq!(substitute_candidate(n, seed, epoch, sample, attempt), Some(expected), "{vector}");
        }
        assert_eq!(substitute_candidate(0, seed, epoch, sample, 0), None);
    }
}
