// A thread `cycle` that makes a vector in each of its periods.
use std::thread;
use std::time::Duration;

#[inline(never)]
fn append(round: usize) -> usize {
    let values: Vec<usize> = (0..100 + round % 2).collect();
    std::hint::black_box(&values)[0]
}

fn main() {
    let worker = thread::Builder::new()
        .name("cycle".to_string())
        .spawn(|| {
            for round in 0.. {
                thread::sleep(Duration::from_millis(1));
                append(round);
            }
        })
        .unwrap();
    worker.join().unwrap();
}
